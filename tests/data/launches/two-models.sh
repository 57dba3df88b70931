sglang serve zai-org/GLM-5.3-Flash --tp 8 &
sglang serve /models/GLM-5.3-Flash-NVFP4 --tp 8 --port 30001 &
wait
