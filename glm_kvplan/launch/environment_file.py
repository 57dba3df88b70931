"""Files of NAME=VALUE lines, as Compose and systemd read them."""

import re

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*(.*?)\s*")
_QUOTED = re.compile(r"'([^']*)'.*|\"((?:[^\"\\]|\\.)*)\".*")


def read_environment(text: str) -> dict[str, str]:
    """The values by name; comments and other lines are left out."""
    found = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        value = match[2]
        quoted = _QUOTED.fullmatch(value)
        if quoted is None:
            value = re.sub(r"\s+#.*", "", value)
        elif quoted[1] is not None:
            value = quoted[1]
        else:
            value = re.sub(r"\\(.)", r"\1", quoted[2])
        found[match[1]] = value
    return found
