"""What people misread about vLLM's blocks for this model, answered with a deployment's own numbers."""
