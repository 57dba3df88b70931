tmux new-session -d -s glm "sglang serve zai-org/GLM-5.3-Flash --tp 8 --chunked-prefill-size 8192"
