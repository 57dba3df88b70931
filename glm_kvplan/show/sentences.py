"""Sentences that reach a page as plain text, known again by their English: reasons, refusals, errors, counts.

An engine's rule says why it refuses in one f-string, where it refuses; nothing of its values is kept. In another
language the text is held against the templates of all of them, and what stands in it is said in turn.
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache

_BLANK = "{}"
_CITED = re.compile(r"(.+?)( \([^()]*\.\w+[^()]* at \d[\d.]*\w*[^()]*\))", re.DOTALL)
_NUMBER = r"(~?\d[\d,.-]*)"
_COUNT = re.compile(r"(~?\d[\d,.]*(?: to ~?\d[\d,.]*)?) ([A-Za-z-]+(?: [A-Za-z-]+)*)")
_LONGEST, _PARTS = 2000, 20  # no sentence of ours is longer
_JOIN = re.compile("; ")
_NAMED = re.compile(r"([^:]{1,200}): (.+)", re.DOTALL)


class Sentences:
    """Templates with `{}` for values, and what they are in the other language with `{}` or `{0}`.

    Counts stand by their noun, or with `{}` where only a number may stand. Where several templates fit a text, the one
    with the most letters of its own is meant.
    """

    def __init__(self, phrases: Mapping[str, str], nouns: Mapping[str, str]) -> None:
        self._phrases, self._nouns = phrases, nouns
        blanks = (template for template in phrases if _BLANK in template)
        self._templates = sorted(blanks, key=lambda template: -len(template.replace(_BLANK, "")))
        self._numbers = [
            (re.compile(_NUMBER.join(map(re.escape, key.split(_BLANK)))), phrase)
            for key, phrase in nouns.items()
            if _BLANK in key
        ]
        self._longest = [max(template.split(_BLANK), key=len) for template in self._templates]
        self._known = lru_cache(maxsize=4096)(self._find)

    def said(self, text: str) -> str:
        """The text in the other language; as it stands where it is not known."""
        return self._known(text) or text

    def _find(self, text: str) -> str | None:
        if not text.strip() or len(text) > _LONGEST or text.count("; ") + text.count(": ") > _PARTS:
            return None
        if (phrase := self._phrases.get(text)) is not None:
            return phrase
        if (cited := _CITED.fullmatch(text)) is not None and (found := self._known(cited[1])) is not None:
            return found + cited[2].replace(" (", "（", 1).removesuffix(")") + "）"
        return self._template(text) or self._count(text) or self._composed(text)

    def _template(self, text: str) -> str | None:
        for template, longest in zip(self._templates, self._longest, strict=True):
            if longest in text and (found := _pattern(template).fullmatch(text)):
                return self._phrases[template].format(*map(self.said, found.groups()))
        return None

    def _count(self, text: str) -> str | None:
        """`64 requests`, `~1,000 to 2,000 tokens`; `line 8` where only a number may stand."""
        for pattern, phrase in self._numbers:
            if (numbers := pattern.fullmatch(text)) is not None:
                return phrase.format(*numbers.groups())
        found = _COUNT.fullmatch(text)
        if found is None:
            return None
        number, noun = found.groups()
        unit = self._nouns.get(noun) or self._nouns.get(noun.removesuffix("s"))
        return None if unit is None else f"{number.replace(' to ', '–')} {unit}"

    def _composed(self, text: str) -> str | None:
        """Sentences joined, or one behind a name."""
        named = _NAMED.fullmatch(text)
        if named is not None and (found := self._phrases.get(named[2]) or self._template(named[2])) is not None:
            return f"{self.said(named[1])}：{found}"
        ends = [found.start() for found in _JOIN.finditer(text)]
        for end in reversed(ends):  # a template may hold a semicolon of its own
            head, tail = text[:end], text[end + len("; ") :]
            if (found := self._known(head)) is not None or self._known(tail) is not None:
                return f"{found or head}；{self.said(tail)}"
        if ", " in text and all(parts := [self._known(part) for part in text.split(", ")]):
            return "、".join(filter(None, parts))
        if named is not None and (found := self._known(named[2])) is not None:
            return f"{self.said(named[1])}：{found}"
        return None


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """A blank holds a sentence of several parts only where a colon, a semicolon or a parenthesis introduces it."""
    first, *others = template.split(_BLANK)
    made, before = re.escape(first), first
    for part in others:
        made += ("(.*?)" if before.endswith((": ", "; ", "(")) else "((?:(?!; ).)*?)") + re.escape(part)
        before = part
    return re.compile(made, re.DOTALL)
