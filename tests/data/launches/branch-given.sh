ARGS=(--tp 8)
if [ "$MODE" = prefill ]; then
  ARGS+=(--disaggregation-mode prefill)
else
  ARGS+=(--disaggregation-mode decode --max-running-requests 256)
fi
sglang serve zai-org/GLM-5.3-Flash "${ARGS[@]}"
