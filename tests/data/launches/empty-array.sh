EXTRA=()
[ "${MTP:-0}" = 1 ] && EXTRA+=(--speculative-algorithm EAGLE)
sglang serve zai-org/GLM-5.3-Flash --tp 4 "${EXTRA[@]}"
