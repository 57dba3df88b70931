vllm serve zai-org/GLM-5.3-Flash --tp-size 4
