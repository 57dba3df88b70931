"""Flags as one would paste them into a shell."""

import json
import shlex
from collections.abc import Mapping

from glm_kvplan.engines.sglang.flags import FLAGS

_FLAGS = {flag.name: flag for flag in FLAGS}


def flag_word(name: str, value: object) -> str:
    """`--tp-size 8`, `--enable-dp-attention`; empty for a switch that is off and has no spelling for it."""
    flag = _FLAGS.get(name)
    option = flag.options[0] if flag is not None else f"--{name.replace('_', '-')}"
    if value is True:
        return option
    if value is False:
        return flag.negative[0] if flag is not None and flag.negative else ""
    if isinstance(value, list | tuple):
        return " ".join([option, *(shlex.quote(str(item)) for item in value)])
    if isinstance(value, dict):
        return f"{option} {shlex.quote(json.dumps(value))}"
    return f"{option} {shlex.quote(str(value))}"


def flag_lines(flags: Mapping[str, object], environment: Mapping[str, str] | None = None) -> str:
    """All flags, one a line and joined by backslashes; the environment's variables on a line of their own above."""
    words = [word for name, value in flags.items() if (word := flag_word(name, value))]
    text = " \\\n".join(words)
    if not environment:
        return text
    switches = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
    return f"export {switches}\n{text}"
