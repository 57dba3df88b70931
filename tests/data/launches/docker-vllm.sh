docker run --runtime nvidia --gpus all -p 8000:8000 --ipc=host \
  vllm/vllm-openai:v0.33.0 \
  --model zai-org/GLM-5.3-Flash --tensor-parallel-size 8 --max-model-len 131072
