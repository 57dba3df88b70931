"""Many deployments at once: axes, their points, and what to keep of them."""
