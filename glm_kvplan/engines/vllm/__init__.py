"""vLLM: its flags, releases, kinds of memory, blocks, and what its log prints."""
