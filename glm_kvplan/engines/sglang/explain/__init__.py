"""`kvplan explain`: how a number comes about."""
