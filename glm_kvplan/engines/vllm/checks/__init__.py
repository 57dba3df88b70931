"""vLLM's answer to `kvplan check`."""
