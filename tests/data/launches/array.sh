#!/usr/bin/env bash
# flags in an array, one a line
ARGS=(
  --model-path zai-org/GLM-5.3-Flash
  --tp 8            # one host
  --kv-cache-dtype fp8_e4m3
)
ARGS+=(--mem-fraction-static 0.82)
exec python3 -m sglang.launch_server "${ARGS[@]}" --host 0.0.0.0 --port 30000
