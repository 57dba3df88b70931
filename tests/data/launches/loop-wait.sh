sglang serve zai-org/GLM-5.3-Flash --tp 8 --max-running-requests 96 &
PID=$!
until curl -sf localhost:30000/health; do
  kill -0 $PID || exit 1
  sleep 5
done
wait $PID
