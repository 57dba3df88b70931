"""Deployment files: read strictly, planned, and held against what their authors expect of them."""
