"""The words of a report in its language: our own sentences by key, and the library's names for things."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from glm_kvplan.errors import InputError

LANGUAGES = ("en", "zh")


class Words(NamedTuple):
    """`words("key", name=value)` is a sentence; `words.term("state slots")` is a name of the library's, translated.

    What has no translation (reasons, formulas and sources of the engine) stays in English.
    """

    language: str
    texts: dict[str, str]
    terms: dict[str, str]

    def __call__(self, key: str, /, **values: object) -> str:
        return self.texts[key].format(**values)

    def term(self, name: str) -> str:
        return self.terms.get(name, name)


@cache
def load_words(language: str) -> Words:
    """The words of "en" or "zh". Raises InputError for another language."""
    if language not in LANGUAGES:
        raise InputError(f"--lang {language!r}: a report speaks {' or '.join(LANGUAGES)}")
    data = tomllib.loads((files(__package__) / f"words_{language}.toml").read_text(encoding="utf-8"))
    return Words(language, data["texts"], data["terms"])
