"""What must not be quoted in a message: a value after a key-like name, a file that a stranger names, a password in an
address. Whoever quotes foreign words in a message quotes them by `quoted`."""

import json
import re
from collections.abc import Mapping

# Patterns are text here: re compiles and keeps each when it is first needed, which most answers never do.
_PARTS = (
    "[a-z0-9]*(?:token|secrets?|passwords?|passwd|passphrase|credentials?)|(?:[a-z0-9]*(?:api|access|auth|private|secret))?"
    "keys?|keyfile|pwd|pat|auth|bearer|authorization"
)
# As a part of a name: --api-key, HF_TOKEN, hfToken, admin.password; not max_total_tokens, --tokenizer-path.
_KEY_LIKE = rf"(?i)(?<![a-z0-9])(?:{_PARTS})(?![a-z0-9])"
# user:password in front of a host; a password may hold slashes, which a port does not. And ?token=... behind a path.
_USERINFO = r"//(?:[^/@\s]*|[^/@\s:]*:(?!\d+/)[^@\s]*)@"
_QUERY = rf"(?i)([?&](?:[\w.-]*[_.-])?(?:{_PARTS}|sig|signature)=)[^&\s'\"]+"
HIDDEN = "a value that is not shown"


class Concealed(str):
    """Text of a file that may hold anything: computed with, never quoted."""

    def __repr__(self) -> str:
        return HIDDEN


class ConcealedName(Concealed):
    """The same of an option whose very name may hold it: matched like any other, and not named where it is unknown."""


def like(text: str, original: str) -> str:
    """`text`, a part of `original`: concealed if that is."""
    return type(original)(text) if isinstance(original, Concealed) else text


def option_shown(option: str) -> str:
    """An option as a message names it."""
    return "--..." if isinstance(option, ConcealedName) else option


def key_like(name: str) -> bool:
    """Whether a flag, a variable or a key of this name holds a secret: `--api-key`, `HF_TOKEN`, `db.password`."""
    return re.search(_KEY_LIKE, name) is not None


def public(value: object) -> object:
    """A flag's value as it is kept and shown: without texts behind a key-like name, without passwords in addresses."""
    if isinstance(value, Mapping):
        return {name: public(one) for name, one in value.items() if not (_textual(one) and key_like(str(name)))}
    if isinstance(value, list | tuple):
        return type(value)(map(public, value))
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith(("{", "[")) and key_like(value):
        try:
            return json.dumps(public(json.loads(value)))
        except (ValueError, RecursionError):
            return HIDDEN
    return without_userinfo(value)


def _textual(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list | tuple) and any(map(_textual, value)))


def quoted(text: object, name: str = "", most: int = 60) -> str:
    """`text`, as a message may quote it: on one line, not endless, not at all where it may hold a secret.

    `name` is the flag, variable or key that it stands after.
    """
    shown = repr(text)
    if isinstance(text, Concealed) or key_like(name) or key_like(shown[:4096]):
        return HIDDEN
    shown = without_userinfo(shown)
    return shown if len(shown) <= most else shown[: most - 3] + "..."


def without_userinfo(text: str) -> str:
    """Addresses without the user, the password and the keys in them."""
    if "@" in text:
        text = re.sub(_USERINFO, "//", text)
    return re.sub(_QUERY, r"\1...", text) if "?" in text else text
