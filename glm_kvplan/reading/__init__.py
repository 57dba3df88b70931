"""Files and data of strangers, read with bounds: bytes, time, nodes, depth, digits."""
