"""`kvplan check`: a deployment file held against its expectations."""
