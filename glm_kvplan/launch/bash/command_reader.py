"""Simple commands of a shell script's text: assignments, words and redirections."""

import re
from abc import abstractmethod

from glm_kvplan.launch.bash.dollar_reader import NAME
from glm_kvplan.launch.bash.syntax import Assignment, Document, Redirect, Simple, Statement, Text, WordNode
from glm_kvplan.launch.bash.word_reader import WordReader

_REDIRECT = re.compile(r"([0-9]*|\{[A-Za-z_]\w*\})(&>>|&>|<<<|<<-|<<|<>|<&|>>|>&|>\||<|>)(?!\()")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\n]{0,400}?\])?\+?=")
_ASSIGNS = re.compile(r"\+?=")
_KEYED = re.compile(r"\[[^\n]{0,400}?\]\+?=")
FUNCTION = re.compile(r"[ \t]*\([ \t]*\)")


class CommandReader(WordReader):
    """Simple commands. Everything that is made of them is the subclass's."""

    def newlines(self) -> None:
        """Past blank lines and comments; here-documents start after the first."""
        while True:
            self.blanks()
            if self.peek() != "\n":
                return
            self.at += 1
            self.read_pending_documents()

    def simple(self, line: int) -> Statement:
        assignments: list[Assignment] = []
        words: list[WordNode | Assignment] = []
        redirects: list[Redirect] = []
        while True:
            self.blanks()
            redirect = self.redirect()
            if redirect is not None:
                redirects.append(redirect)
                continue
            start = self.at
            assigned = self.assignment()
            if assigned is not None and (not words or not isinstance(assigned.value, WordNode)):
                (words if words else assignments).append(assigned)
                continue
            self.at = start
            word = self.word()
            if word is None:
                break
            if not words and not assignments and FUNCTION.match(self.text, self.at):
                return self.function("".join(part.text for part in word.parts if isinstance(part, Text)))
            words.append(word)
        if not (assignments or words or redirects):
            raise self.fail(f"{self.peek()!r} is not expected here" if self.peek() else "the text ends in a command")
        return Simple(tuple(assignments), tuple(words), tuple(redirects), line)

    def assignment(self, listed: str = "") -> Assignment | None:
        """`name=value`, `name[index]=value` or `name=(values)`; in the list `listed`, `[index]=value`."""
        start = self.at
        if (_KEYED if listed else _ASSIGNMENT).match(self.text, start):
            name = listed or self.take(NAME)
            index = self.subscript() if self.peek() == "[" else None
            if operator := self.take(_ASSIGNS):
                value: WordNode | tuple[WordNode | Assignment, ...]
                if not listed and self.peek() == "(":
                    self.at += 1
                    value = self.array(name)
                else:
                    value = self.word(assigned=True) or WordNode((), self.line)
                return Assignment(name, index, operator == "+=", value)
        self.at = start
        return None

    def array(self, name: str) -> tuple[WordNode | Assignment, ...]:
        line = self.line
        found: list[WordNode | Assignment] = []
        while True:
            self.newlines()
            if self.peek() == ")":
                self.at += 1
                return tuple(found)
            word = self.assignment(name) or self.word()
            if word is None:
                if self.peek():
                    raise self.fail(f"{self.peek()!r} is not expected in the list {name}=(")
                raise self.fail(f"the list {name}=( is never closed with )", line)
            found.append(word)

    def redirect(self) -> Redirect | None:
        match = _REDIRECT.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        number, operator = match.groups()
        self.blanks()
        target = self.word()
        if target is None:
            raise self.fail(f"{operator} needs a file")
        document = Document() if operator in ("<<", "<<-") else None
        if document is not None:
            delimiter = "".join(part.text for part in target.parts if isinstance(part, Text))
            literal = any(isinstance(part, Text) and part.quoted for part in target.parts)
            self.documents.append((document, delimiter, literal, operator == "<<-"))
        return Redirect(operator, target, number, document)

    @abstractmethod
    def function(self, name: str) -> Statement:
        """The definition of a function whose name is read."""
