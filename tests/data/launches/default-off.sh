ENABLE_DP="${ENABLE_DP:-0}"
CMD=(sglang serve --model-path zai-org/GLM-5.3-Flash --tp 8)
if [[ "$ENABLE_DP" == "1" ]]; then
  CMD+=(--dp 8 --enable-dp-attention)
fi
exec "${CMD[@]}"
