"""GPUs, and what is taken before the pools: measured or estimated."""
