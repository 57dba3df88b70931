#!/bin/bash
SCRIPT_DIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
set -a
source "$SCRIPT_DIR/serve.env"
set +a
exec sglang serve "$MODEL" --tp "$TP" --kv-cache-dtype "${KV:-auto}"
