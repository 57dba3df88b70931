"""`kvplan diff`: two deployments or two releases side by side."""
