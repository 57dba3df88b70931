#!/usr/bin/env bash
exec sglang serve --model-path zai-org/GLM-5.3-Flash --quantization modelopt_fp4 \
  --tp 4 --ep 4 --speculative-algorithm EAGLE \
  --context-length 524288 --host 0.0.0.0 --port 30000
