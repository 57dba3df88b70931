"""Which line of a launch's own file makes a deployment fall short: where CI puts its mark, beside the expectation."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

from glm_kvplan.answers.check.deployment_file import DeploymentFile
from glm_kvplan.answers.check.file_plan import command_of, launch_text
from glm_kvplan.engines.flag import Flag
from glm_kvplan.errors import InputError
from glm_kvplan.reading.secret_words import without_userinfo
from glm_kvplan.show.judged import Place

_LINE = re.compile(r"line (\d{1,9})")
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")


class LaunchLines:
    """The lines of one deployment's launch file, and the flags that stand there."""

    def __init__(self, file: DeploymentFile, engine: str | None, root: Path | None) -> None:
        self._name = str(file.content.launch_file)
        self._path = without_userinfo(PurePath(file.folder, self._name).as_posix())
        self._lines: list[str] = []
        self._places: dict[str, str] = {}
        self._flags: dict[str, Flag] = {}
        self._container = (file.content.container or "").rpartition("/")[2]
        if file.content.launch_file is None:
            return
        try:
            self._lines = launch_text(file, root).splitlines()
            command = command_of(file, engine, root)
        except InputError:
            return
        if command is not None:
            self._places = dict(command.positions)
            own = file.flags  # these win over the launch's
            self._flags = {flag.name: flag for flag in file.engine.flags if flag.name in {*command.flags} - {*own}}

    def said(self, message: str) -> Place | None:
        """The line that a message of the launch's reader begins with."""
        begin = message.removeprefix(f"launch_file {self._name}: ").removeprefix(f"{self._name}: ")
        found = _LINE.match(begin)
        return Place(self._path, int(found[1])) if found and int(found[1]) <= len(self._lines) else None

    def of(self, texts: Iterable[str], turned: Iterable[str] = ()) -> Place | None:
        """The line of the first flag that was given there: of those `turned`, else of those that the texts name."""
        texts = tuple(texts)
        for name in (*turned, *self._named(texts)):
            flag = self._flags.get(name)
            if flag is not None and (line := self._line(flag)) is not None:
                return Place(self._path, line)
        options = (option for text in texts for option in _OPTION.findall(text))  # one that the engine does not have
        rows = (row for option in options for row in self._rows(re.compile(rf"(?<![\w-]){option}(?![\w-])")))
        return next((Place(self._path, row) for row in rows), None)

    def _named(self, texts: Iterable[str]) -> Iterator[str]:
        """The given flags that texts speak of, the first mentioned first."""
        for text in texts:
            at = {name: found.start() for name, flag in self._flags.items() if (found := _word(flag).search(text))}
            yield from sorted(at, key=lambda name: at[name])

    def _line(self, flag: Flag) -> int | None:
        """Where it was read, if it stands there in a spelling of its own; else the one line that has it."""
        word = _word(flag)
        rows = self._rows(word)
        place = _LINE.fullmatch(self._places.get(flag.name, ""))
        if place is not None and int(place[1]) in rows:
            return int(place[1])
        if len(rows) > 1 and self._container:
            start = next((n for n, text in enumerate(self._lines, 1) if self._begins(text)), 0)
            rows = [row for row in rows if row > start]
        return rows[0] if rows else None

    def _rows(self, word: re.Pattern[str]) -> list[int]:
        """The lines that have a word, comments aside."""
        return [number for number, text in enumerate(self._lines, 1) if word.search(re.split(r"(?:^|\s)#", text)[0])]

    def _begins(self, text: str) -> bool:
        """A line that begins the container: `- name: worker`, or a service's own key."""
        name = re.escape(self._container)
        return re.fullmatch(rf"\s*(?:- +)?(?:name: +[\"']?{name}[\"']?|[\"']?{name}[\"']?:)\s*", text) is not None


def _word(flag: Flag) -> re.Pattern[str]:
    """The flag as launches spell it, options and keys alike."""
    names = {*flag.options, flag.name, flag.name.replace("_", "-")}
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})(?![\w-])")
