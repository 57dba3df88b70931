"""JSON on standard output."""

import json
from typing import Any


def print_json(document: dict[str, Any]) -> None:
    """Print a document; NaN and infinity never appear, bytes are plain ints."""
    print(json.dumps(document, indent=2, allow_nan=False))
