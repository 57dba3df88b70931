sglang serve Qwen/Qwen3-235B-A22B --tp 8
