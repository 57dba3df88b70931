"""`kvplan sweep`: many points of one deployment."""
