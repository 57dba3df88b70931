"""The languages of a page: English is in the code, the others are files of phrases by their English templates."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from glm_kvplan.errors import InputError
from glm_kvplan.show.said import ENGLISH, Words
from glm_kvplan.show.sentences import Sentences

LANGUAGES = ("en", "zh")
_NAME = re.compile(r"\{(\w+)\}")
_WORD = re.compile(r"[A-Za-z]{2,}")
_WORDS, _WHOLE = 3, 2  # fewer would be found in any text; of a phrase without values


@cache
def load_words(language: str, source: str = "--lang") -> Words:
    """The words of "en" or "zh". Raises InputError, which names `source`, for another language."""
    if language not in LANGUAGES:
        raise InputError(f"{source} {language[:40]!r}: kvplan speaks {' or '.join(LANGUAGES)}")
    if language == ENGLISH.language:
        return ENGLISH
    phrases, sentences = (_read(f"{name}_{language}.toml") for name in ("words", "sentences"))
    nouns = sentences.pop("counts")
    return Words(language, phrases, Sentences({**_unnamed(phrases), **sentences}, nouns).said)


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((files(__package__) / name).read_text(encoding="utf-8"))


def _unnamed(phrases: Mapping[str, str]) -> dict[str, str]:
    """The phrases of several words as templates of plain text: an English sentence may be quoted in another."""
    found = {}
    for english, phrase in phrases.items():
        names = _NAME.findall(english)
        least = _WORDS if names else _WHOLE
        if len(_WORD.findall(_NAME.sub(" ", english))) >= least and len({*names}) == len(names):
            places = {name: f"{{{place}}}" for place, name in enumerate(names)}
            found[_NAME.sub("{}", english)] = _NAME.sub(lambda name: places[name[1]], phrase)  # noqa: B023
    return found
