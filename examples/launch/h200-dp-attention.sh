#!/usr/bin/env bash
exec python3 -m sglang.launch_server \
  --model-path zai-org/GLM-5.3-Flash \
  --tp-size 8 --dp-size 8 --enable-dp-attention \
  --host 0.0.0.0 --port 30000
