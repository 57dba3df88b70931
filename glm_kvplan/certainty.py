"""The closed words of a number: how sure it is, how a memory came to be known, and whose it is."""

from typing import Literal

# From shapes, by the engine's formula, by a heuristic. A bound where something is not known at all.
Certainty = Literal["exact", "derived", "estimated", "lower bound", "upper bound"]
How = Literal["measured", "given", "derived", "calibrated", "estimated"]  # "calibrated": by another boot's log
Whose = Literal["GPU", "worker", "deployment"]
