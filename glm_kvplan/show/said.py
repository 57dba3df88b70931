"""Sentences of ours, in English or another language: a template in English with its values.

What is `Said` is ours and is translated. What is a `str` in an answer or on a page is data, or a reason that is known
again by its English (sentences.py); other text is shown as it stands.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

_COMMA = ", "


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence. Its values are data, other sentences, or a tuple of them, which is listed with commas."""

    template: str
    values: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        return ENGLISH(self)


Text = str | Said


def say(template: str, /, **values: object) -> Said:
    """`say("{count} GPUs", count=8)`. A template without values is taken as it stands, braces and all."""
    return Said(template, tuple(values.items()))


class Words(NamedTuple):
    """A language: its phrases by their English templates, and how it says plain text. What is unknown stays English."""

    language: str
    phrases: Mapping[str, str]
    plain: Callable[[str], str] = str

    def __call__(self, text: Text) -> str:
        if isinstance(text, str):
            return self.plain(text)
        template = self.phrases.get(text.template)
        if not text.values:
            return template or self.plain(text.template)
        return (template or text.template).format(**{name: self._value(value) for name, value in text.values})

    def _value(self, value: object) -> object:
        if isinstance(value, Said):
            return self(value)
        if isinstance(value, tuple):
            return self.phrases.get(_COMMA, _COMMA).join(str(self._value(each)) for each in value)
        return self.plain(value) if isinstance(value, str) else value


ENGLISH = Words("en", {})
