docker run --gpus all --shm-size 32g -p 30000:30000 \
  -v ~/.cache/huggingface:/root/.cache/huggingface \
  --env "HF_TOKEN=$HF_TOKEN" -e SGLANG_MAMBA_CONV_DTYPE=float32 --ipc=host \
  lmsysorg/sglang:v0.5.21 \
  python3 -m sglang.launch_server --model-path zai-org/GLM-5.3-Flash --tp 8 --host 0.0.0.0
