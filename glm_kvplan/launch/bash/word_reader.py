"""Words of a shell script's text, and its here-documents."""

import re

from glm_kvplan.launch.bash.dollar_reader import DollarReader
from glm_kvplan.launch.bash.given_pieces import GIVEN
from glm_kvplan.launch.bash.syntax import Given, Part, Text, WordNode
from glm_kvplan.launch.bash.tilde_words import with_home
from glm_kvplan.launch.bash.values import missing

_PLAIN = re.compile(rf"[^ \t\n;&|<>()$`\"'\\{GIVEN}]+")
_IN_DOCUMENT = re.compile(rf"[^$`\\{GIVEN}]+")
_ENDS_WORD = " \t\n;&|<>()"


class WordReader(DollarReader):
    """Words and here-documents. Statements are the subclass's."""

    def word(self, assigned: bool = False) -> WordNode | None:
        """The word that starts here; None where none does. `assigned`: it is the value of an assignment."""
        line = self.line
        parts: list[Part] = []
        while self.at < len(self.text):
            if text := self.take(_PLAIN):
                parts.append(Text(text, False))
            elif (char := self.text[self.at]) == "(" and self.pattern_list(parts):
                continue
            elif char in _ENDS_WORD:
                if char in "<>" and not parts and self.text[self.at + 1 : self.at + 2] == "(":
                    self.at += 2
                    self.substituted(f"{char}(")
                    parts.append(Given(missing(f"{char}(...)")[0], True))
                    continue
                break
            else:
                parts += self.special(quoted=False)
        self.count(parts)
        if any(isinstance(part, Text) and "~" in part.text for part in parts):
            parts = list(with_home(parts, assigned))
        return WordNode(tuple(parts), line) if parts else None

    def pattern_list(self, parts: list[Part]) -> bool:
        """`@(a|b)` and its kin belong to the word; what they match is not worked out here."""
        last = parts[-1] if parts else None
        if not isinstance(last, Text) or last.quoted or last.text[-1] not in "@*+?!":
            return False
        end = self.text.find(")", self.at)
        if end < 0 or "\n" in self.text[self.at : end]:
            return False
        self.at = end + 1
        parts.append(Given(missing("(...|...)")[0], False))
        return True

    def read_pending_documents(self) -> None:
        """The here-documents that start after the line just ended."""
        pending, self.documents = self.documents, []
        for document, delimiter, literal, tabs in pending:
            line, lines = self.line, []
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                row = self.text[self.at : end]
                self.at = end + 1
                row = row.lstrip("\t") if tabs else row
                if row == delimiter:
                    break
                lines.append(row + "\n")
            body = "".join(lines)
            document.parts = tuple(self.literal(body)) if literal else self.document_parts(body, line)

    def document_parts(self, body: str, line: int) -> tuple[Part, ...]:
        reader = type(self)(body, self.given, line, self.numbered)
        reader.depth = self.depth
        parts: list[Part] = []
        while reader.at < len(body):
            if text := reader.take(_IN_DOCUMENT):
                parts.append(Text(text, True))
            else:
                parts += reader.special(quoted=True)
        self.count(parts)
        return tuple(parts)
