sglang serve zai-org/GLM-5.3-Flash --tp 8 --port 30000 &
vllm serve zai-org/GLM-5.3-Flash -tp 8 --port 8000 &
wait
