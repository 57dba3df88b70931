#!/usr/bin/env bash
# One script for both halves of a deployment: MODE says which half this host is.
set -euo pipefail
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$HERE/mode.env"

ARGS=(--model-path zai-org/GLM-5.3-Flash --tp "$TP" --mem-fraction-static "${FRACTION:-0.8}")
if [[ "$MODE" == "prefill" ]]; then
  ARGS+=(--disaggregation-mode prefill)
else
  ARGS+=(--disaggregation-mode decode --max-running-requests 256)
fi
[[ "${MTP:-0}" == "1" ]] && ARGS+=(--speculative-algorithm EAGLE)
exec python3 -m sglang.launch_server "${ARGS[@]}" --host 0.0.0.0
