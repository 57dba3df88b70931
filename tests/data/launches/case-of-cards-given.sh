GPU=${GPU:-h200}
case "$GPU" in
  h200|h100) FRAC=0.85; TP=8 ;;
  b200)      FRAC=0.8;  TP=4 ;;
  *) echo "unknown card $GPU" >&2; exit 1 ;;
esac
python -m sglang.launch_server --model-path zai-org/GLM-5.3-Flash --tp-size $TP --mem-fraction-static $FRAC
