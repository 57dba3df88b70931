"""Flags as one would paste them into a shell."""

import shlex
from collections.abc import Mapping

from glm_kvplan.engines.flag import flag
from glm_kvplan.engines.sglang.flags import FLAG


def flag_word(name: str, value: object) -> str:
    """`--tp-size 8`, `--enable-dp-attention`; empty for a switch that is off and has no spelling for it."""
    return (FLAG.get(name) or flag(name, "str", None, "")).words(value)


def flag_lines(flags: Mapping[str, object], environment: Mapping[str, str] | None = None) -> str:
    """All flags, one a line and joined by backslashes; the environment's variables on a line of their own above."""
    words = [word for name, value in flags.items() if (word := flag_word(name, value))]
    text = " \\\n".join(words)
    if not environment:
        return text
    switches = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
    return f"export {switches}\n{text}"
