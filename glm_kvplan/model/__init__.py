"""What the checkpoint is: its config.json, the geometry that follows, its weights by name."""
