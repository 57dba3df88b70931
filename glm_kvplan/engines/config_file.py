"""Flags kept in a YAML mapping: an engine's own --config file, or a recipe's; read as words of the command line."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from glm_kvplan.engines.option_words import Options, OptionTable, laid_over, read_options
from glm_kvplan.errors import InputError
from glm_kvplan.launch.forms import LARGEST_TEXT
from glm_kvplan.launch.launch import Launch, Settings
from glm_kvplan.launch.marked_words import Word, defined, printable
from glm_kvplan.reading.guarded_file import inside, read_text
from glm_kvplan.reading.secret_words import Concealed
from glm_kvplan.reading.unreadable import UnreadableError
from glm_kvplan.reading.yaml_text import read_yaml


class Key(NamedTuple):
    """A key of the mapping, its value, and where they stand."""

    name: str
    value: object
    place: str
    own: bool  # in a file that the engine itself reads

    @property
    def text(self) -> str:
        """The value as one word. Raises InputError for a mapping with keys that are no text."""
        if isinstance(self.value, bool):
            return str(self.value).lower()
        if not isinstance(self.value, dict):
            return str(self.value)
        try:
            return json.dumps(self.value, default=str)
        except TypeError:
            raise InputError(f"{self.place}: {printable(self.name)}: a key in its value is not text") from None

    @property
    def items(self) -> list[str]:
        """The texts of a list's elements."""
        return [self._replace(value=item).text for item in self.value] if isinstance(self.value, list) else [self.text]


class Rules(NamedTuple):
    """How an engine makes words of such a mapping."""

    suffixes: tuple[str, ...]
    any_case: bool  # of the suffix
    words: Callable[[Key, OptionTable], list[str]]  # raises InputError
    notes: Callable[[list[str]], list[str]] = lambda keys: []  # on the keys of a file of its own
    plain: Callable[[Sequence[Word]], Sequence[Word]] = lambda words: words  # the engine's own spellings made plain


def read_settings(name: str, rules: Rules, within: Path | None = None) -> Settings:
    """The --config file called `name`.

    Raises InputError for a file that cannot be read, is not YAML by its name or content, or is not one mapping. With
    `within` the name is relative to that folder, the file must lie in it, and no message quotes its values: somebody
    else chose it.
    """
    shown = f"--config {printable(name, 200)}"
    path = Path(name) if within is None else inside(within, name, shown)
    shown = f"--config {printable(str(path), 200)}"
    if (path.suffix.lower() if rules.any_case else path.suffix) not in rules.suffixes:
        raise InputError(f"{shown}: the engine takes a .yaml or .yml file only")
    text = read_text(path, shown, most=LARGEST_TEXT, advice="a config file is a few KiB")
    hidden = within is not None
    try:
        documents = read_yaml(text)
    except UnreadableError as error:
        place = f" at line {error.line}" if error.line else ""
        raise InputError(f"{shown}: not YAML{place}: {error.unquoted if hidden else error.problem}") from None
    if len(documents) > 1:
        raise InputError(f"{shown}: not YAML at line {documents[1].line}: several documents; keep one")
    data = documents[0].data if documents else None
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise InputError(f"{shown}: must be a mapping of flag to value, not a {type(data).__name__}")
    return Settings(data, printable(path.name), hidden)


def settings_options(settings: Settings, rules: Rules, table: OptionTable) -> Options:
    """The options that the mapping spells. Raises InputError that names the key."""
    words: list[Word] = []
    text_of: type[str] = Concealed if settings.hidden else str
    for name, value in settings.data.items():
        if not isinstance(name, str):
            raise InputError(f"{settings.place}: the key {str(name)[:60]!r} is not a flag's name")
        key = Key(name, value, settings.place, settings.own)
        words += [Word(text_of(text), settings.place) for text in rules.words(key, table)]
    options = read_options(rules.plain(words), table)
    if settings.own:
        keys = [key for key in settings.data if isinstance(key, str)]
        options.repeated += [f"{settings.place}: {note}" for note in rules.notes(keys)]
    return options


def config_word(words: Sequence[Word]) -> Word | None:
    """The file that `--config FILE` names: the exact word with a blank after it. Raises InputError for two of them."""
    at = [place for place, word in enumerate(words) if word.text == "--config"]
    if len(at) > 1:
        raise InputError("--config is given twice; the engine takes one file")
    if not at:
        return None
    if at[0] + 1 >= len(words):
        raise InputError(f"{words[at[0]].place}: --config needs a file; none follows it")
    return words[at[0] + 1]


def with_settings(
    options: Options, launch: Launch, rules: Rules, table: OptionTable, within: Path | None = None
) -> Options:
    """A launch's own options laid over those of its --config file and of its settings. Raises InputError."""
    below = [] if launch.settings is None else [launch.settings]
    name = config_word(launch.words)
    if name is not None:
        below.insert(0, read_settings(defined(name, "--config"), rules, within))
    for settings in below:
        options = laid_over(options, settings_options(settings, rules, table))
    return options
