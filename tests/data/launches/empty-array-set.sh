MORE=()
[ "${MTP:-0}" = 1 ] && MORE+=(--speculative-algorithm EAGLE)
sglang serve zai-org/GLM-5.3-Flash --tp 4 "${MORE[@]}"
