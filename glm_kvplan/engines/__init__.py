"""The engines that serve the model, one folder each."""
