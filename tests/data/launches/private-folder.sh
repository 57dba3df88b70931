sglang serve /data/llama-tuning --tp 8
