vllm serve --config vllm.yaml --max-num-seqs 64
