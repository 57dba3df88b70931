"""The language of what a command prints: `--lang NAME` beside any command, or KVPLAN_LANG."""

import os
from contextvars import ContextVar

from glm_kvplan.errors import InputError
from glm_kvplan.show.said import ENGLISH, Words

LANGUAGES = ("en", "zh")
_OPTION, _VARIABLE = "--lang", "KVPLAN_LANG"
_asked: ContextVar[str | None] = ContextVar("language", default=None)


def take_language(words: list[str]) -> list[str]:
    """The words without `--lang NAME`, which is kept for `spoken`: it goes with every command, in any place."""
    _asked.set(None)  # of an earlier command of this process
    left, name = [], None
    rest = iter(words)
    for word in rest:
        if word == _OPTION:
            name = next(rest, None)
            if name is None:
                raise InputError("--lang needs a language: en or zh")
        elif word.startswith(f"{_OPTION}="):
            name = word.partition("=")[2]
        else:
            left.append(word)
    _asked.set(name)
    return left


def spoken() -> Words:
    """The words to print in. Raises InputError for a language that there is not."""
    name, source = _asked.get(), _OPTION
    if name is None:
        name, source = os.environ.get(_VARIABLE) or ENGLISH.language, _VARIABLE
    if name == ENGLISH.language:
        return ENGLISH
    from glm_kvplan.show.languages import load_words

    return load_words(name, source)
