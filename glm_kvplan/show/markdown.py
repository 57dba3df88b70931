"""Text for Markdown that shows as it stands."""

import re

_SPECIAL = re.compile(r"([\\`*{}\[\]<>#|~]|(?<!\w)_|_(?!\w))")


def plain(text: str) -> str:
    """Text on one line that formats nothing; an @ addresses nobody, a # and an address link nothing."""
    text = _SPECIAL.sub(r"\\\1", " ".join(text.split()))
    return text.replace("@", "@\u200b").replace("&", "&amp;").replace("://", "&#58;//")
