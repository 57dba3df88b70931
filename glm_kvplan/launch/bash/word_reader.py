"""Words of a shell script's text, and its here-documents."""

import re

from glm_kvplan.launch.bash.dollar_reader import DollarReader
from glm_kvplan.launch.bash.given_pieces import GIVEN
from glm_kvplan.launch.bash.syntax import Given, Part, Text, WordNode
from glm_kvplan.launch.bash.tilde_words import with_home
from glm_kvplan.launch.bash.values import missing

_PLAIN = re.compile(rf"[^ \t\n;&|<>()$`\"'\\{GIVEN}]+")
_IN_DOCUMENT = re.compile(rf"[^$`\\{GIVEN}]+")
_PATTERNS = re.compile(r"\([^\n)]*\)")  # of `@(a|b)` and its kin
_PROCESS = re.compile(r"[<>]\(")
_ROW = re.compile(r"[^\n]*\n|[^\n]+")
_ENDS_WORD = " \t\n;&|<>()"


class WordReader(DollarReader):
    """Words and here-documents. Statements are the subclass's."""

    def word(self, assigned: bool = False) -> WordNode | None:
        """The word that starts here; None where none does. `assigned`: it is the value of an assignment."""
        line = self.line
        parts: list[Part] = []
        while True:
            if text := self.take(_PLAIN):
                parts.append(Text(text, False))
                if text[-1] in "@*+?!" and self.take(_PATTERNS):  # what they match is not worked out here
                    parts.append(Given(missing("(...|...)")[0], False))
            elif opening := self.take(_PROCESS):
                self.substituted(opening)
                parts.append(Given(missing(f"{opening}...)")[0], True))
            elif self.peek() in _ENDS_WORD:  # or the text's end
                break
            else:
                parts += self.special(quoted=False)
        self.count(parts)
        return WordNode(tuple(with_home(parts, assigned)), line) if parts else None

    def read_pending_documents(self) -> None:
        """The here-documents that start after the line just ended."""
        pending, self.documents = self.documents, []
        for document, delimiter, literal, tabs in pending:
            here, body = self.here, ""
            while row := self.take(_ROW):
                row = row.removesuffix("\n").lstrip("\t" if tabs else "")
                if row == delimiter:
                    break
                body += row + "\n"
            reader = type(self)(body, self.given, here, self.numbered)
            reader.depth = self.depth
            document.parts = tuple(self.literal(body)) if literal else reader.text_parts()

    def text_parts(self) -> tuple[Part, ...]:
        """The parts of the whole text, read as a here-document's."""
        parts: list[Part] = []
        while self.at < len(self.text):
            if text := self.take(_IN_DOCUMENT):
                parts.append(Text(text, True))
            else:
                parts += self.special(quoted=True)
        self.count(parts)
        return tuple(parts)
