"""What vLLM makes of its flags: one file a subject."""
