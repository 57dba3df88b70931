"""Weight bytes of a rank: estimated from the published checkpoint's tensors, always labelled as an estimate."""
