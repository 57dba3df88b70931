serve() {
  local tp=$1; shift
  python3 -m sglang.launch_server --model-path "$MODEL" --tp "$tp" "$@"
}
MODEL=zai-org/GLM-5.3-Flash
serve 4 --context-length 131072
