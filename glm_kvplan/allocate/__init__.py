"""The tensors made real with torch, and measured."""
