"""The languages of a page: English is in the code, the others are files of phrases by their English templates."""

import tomllib
from functools import cache
from importlib.resources import files

from glm_kvplan.errors import InputError
from glm_kvplan.show.said import ENGLISH, Words

LANGUAGES = ("en", "zh")


@cache
def load_words(language: str, source: str = "--lang") -> Words:
    """The words of "en" or "zh". Raises InputError, which names `source`, for another language."""
    if language not in LANGUAGES:
        raise InputError(f"{source} {language[:40]!r}: kvplan speaks {' or '.join(LANGUAGES)}")
    if language == ENGLISH.language:
        return ENGLISH
    text = (files(__package__) / f"words_{language}.toml").read_text(encoding="utf-8")
    return Words(language, tomllib.loads(text))
