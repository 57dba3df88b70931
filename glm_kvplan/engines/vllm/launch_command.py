"""vLLM's launch command as an operator has it: words or a script in, its flags and switches out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from glm_kvplan.engines.launches import LARGEST_TEXT, one_launch
from glm_kvplan.engines.option_words import OptionTable, read_options, warnings_of
from glm_kvplan.engines.vllm.environment import ENVIRONMENT
from glm_kvplan.engines.vllm.flexible_words import plain_words
from glm_kvplan.engines.vllm.option_lists import option_table
from glm_kvplan.errors import InputError
from glm_kvplan.launch.model_name import refuse_other_model
from glm_kvplan.launch.words import Word, defined, printable
from glm_kvplan.reading.guarded_file import read_text
from glm_kvplan.reading.unreadable import UnreadableError
from glm_kvplan.reading.yaml_text import read_yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchCommand:
    """One launch of vLLM, read but not resolved.

    `flags` are the memory flags by vLLM's field names, `environment` what ENVIRONMENT lists. `ignored` counts the flags
    that touch no memory, `unknown` names those that the release does not have, `positions` says where each flag stood.
    """

    flags: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None
    revision: str | None = None
    ignored: int = 0
    unknown: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    positions: Mapping[str, str] = field(default_factory=dict)
    checked: Mapping[str, object] = field(default_factory=dict)  # none: what keeps vLLM from starting is a memory flag

    @property
    def notes(self) -> tuple[str, ...]:
        """What was read otherwise than it stood there, or left out."""
        if not self.ignored:
            return self.warnings
        left = "1 flag of the launch command touches" if self.ignored == 1 else None
        left = left or f"{self.ignored} flags of the launch command touch"
        return (*self.warnings, f"{left} no memory")


def read_launch_command(words: Sequence[str] | str, release: str) -> LaunchCommand:
    """Read a launch command, its own YAML `--config` file included: the command line wins over it.

    Raises InputError for no launch, several, another engine or model, a variable that is not defined in the text where
    its value matters, a wrong, missing or superfluous value, and a file that cannot be read.
    """
    table = option_table(release)
    launch, warnings = one_launch(words, "vllm")
    given = list(launch.words)
    model: Word | None = None
    if launch.serve and given and not given[0].text.startswith("-"):
        model = given.pop(0)
    given = _with_config(given, table)
    options = read_options(plain_words(given), table)
    named = options.other.get("--model")
    if model is None:
        model = named
    elif named is not None:
        warnings.append(f"{named.place}: --model is ignored beside the model itself")
    if model is not None:
        defined(model, "the model")
        refuse_other_model(model.text)
    environment = {name: defined(launch.environment[name], name) for name in ENVIRONMENT if name in launch.environment}
    revision = options.other.get("--revision")
    return LaunchCommand(
        flags={name: value for name, value in options.flags.items() if value is not None},
        environment=environment,
        model=None if model is None else model.text,
        revision=None if revision is None else defined(revision, "--revision"),
        ignored=options.ignored,
        unknown=tuple(dict.fromkeys(options.unknown)),
        warnings=(*warnings, *warnings_of(options, table)),
        positions=options.positions,
    )


def _with_config(words: list[Word], table: OptionTable) -> list[Word]:
    """The words of the `--config` file in front of the others. Only the exact word is one, with a blank after it.

    Source: utils/argparse_utils.py at 0.33.0 (_pull_args_from_config).
    """
    at = [place for place, word in enumerate(words) if word.text == "--config"]
    if not at:
        return words
    if len(at) > 1:
        raise InputError("--config is given twice; vLLM takes one file")
    if at[0] + 1 >= len(words):
        raise InputError(f"{words[at[0]].place}: --config needs a file; none follows it")
    path = defined(words[at[0] + 1], "--config")
    return [*_config_words(Path(path), table), *words[: at[0]], *words[at[0] + 2 :]]


def _config_words(path: Path, table: OptionTable) -> list[Word]:
    """The words vLLM makes of a YAML file: true is the flag, false its opposite where it has one, mappings are JSON."""
    shown = f"--config {printable(str(path), 200)}"
    if path.suffix not in (".yaml", ".yml"):
        raise InputError(f"{shown}: vLLM takes a .yaml or .yml file only")
    text = read_text(path, shown, most=LARGEST_TEXT, advice="a config file is a few KiB")
    try:
        documents = read_yaml(text)
    except UnreadableError as error:
        at = f" at line {error.line}" if error.line else ""
        raise InputError(f"{shown}: not YAML{at}: {error.problem}") from None
    data = documents[0].data if len(documents) == 1 else None
    if not isinstance(data, dict):
        raise InputError(f"{shown}: must be one mapping of flag to value")
    place, words = printable(path.name), []
    for key, value in data.items():
        option = f"--{key}"
        if isinstance(value, bool):
            negative = f"--no-{key}"
            known = value or negative.replace("_", "-") in table.takes
            words += [Word(option if value else negative, place)] if known else []
        elif isinstance(value, list):
            words += [Word(item, place) for item in (option, *map(str, value))] if value else []
        else:
            shown_value = json.dumps(value) if isinstance(value, dict) else str(value)
            words += [Word(option, place), Word(shown_value, place)]
    return words
