"""The launch command as an operator has it: words or a shell script in, the engine's flags and switches out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from glm_kvplan.engines.launches import one_launch
from glm_kvplan.engines.option_words import Options, OptionTable, read_options, warnings_of
from glm_kvplan.engines.sglang.environment import ENVIRONMENT
from glm_kvplan.engines.sglang.option_lists import memory_table, option_table
from glm_kvplan.engines.sglang.profile import BASELINE
from glm_kvplan.errors import InputError
from glm_kvplan.launch.model_name import refuse_other_model
from glm_kvplan.launch.server_commands import Launch
from glm_kvplan.launch.words import Word, defined


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchCommand:
    """One launch of the engine, read but not resolved.

    `flags` are the memory flags by the engine's field names, `checked` those that move no memory but can keep the
    server from starting, `environment` the switches of ENVIRONMENT.
    `ignored` counts the engine's flags that touch no memory; `unknown` names those that the release does not have.
    `positions` says where each memory flag stood ("word 5", "line 3", "server.yaml").
    """

    flags: Mapping[str, object] = field(default_factory=dict)
    checked: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None
    revision: str | None = None
    config_file: str | None = None
    ignored: int = 0
    unknown: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    positions: Mapping[str, str] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was read otherwise than it stood there, or left out."""
        if not self.ignored:
            return self.warnings
        left = "1 flag of the launch command touches" if self.ignored == 1 else None
        left = left or f"{self.ignored} flags of the launch command touch"
        return (*self.warnings, f"{left} no memory")


def parse_flags(argv: Sequence[str]) -> dict[str, object]:
    """The memory flags that `argv` spells, by the engine's field names. Raises InputError for any other word."""
    words = [Word(text, f"word {number}") for number, text in enumerate(argv, 1)]
    return read_options(words, memory_table()).flags


def read_launch_command(words: Sequence[str] | str, release: str = BASELINE) -> LaunchCommand:
    """Read a launch command: its words (already split by a shell), or the text of a shell script.

    In front of the engine's own words there may be assignments, `env`, `exec`, docker, kubectl, numactl, srun,
    `bash -c "..."` and the like; the engine's flags may also stand alone. No file is opened here: the engine's
    own `--config` file is named in `config_file` (launch_file.with_config_file reads it).

    Raises InputError for no launch, several launches, another engine or model, a variable that is not defined in
    the text where its value matters, a quote never closed, and a wrong, missing or superfluous value.
    """
    launch, warnings = one_launch(words, "sglang")
    return _read(launch, option_table(release), warnings)


def _read(launch: Launch, table: OptionTable, warnings: list[str]) -> LaunchCommand:
    words = list(launch.words)
    model: str | None = None
    if launch.serve:
        if words and not words[0].text.startswith("-"):
            model = defined(words.pop(0), "the model")
        words = _without_model_type(words)
    options = read_options(words, table)
    model = _value(options, "--model-path") or model
    if model is not None:
        refuse_other_model(model)
    environment = {name: defined(launch.environment[name], name) for name in ENVIRONMENT if name in launch.environment}
    return LaunchCommand(
        flags=options.flags,
        checked=options.checked,
        environment=environment,
        model=model,
        revision=_value(options, "--revision"),
        config_file=_config_file(options, words, warnings),
        ignored=options.ignored,
        unknown=tuple(dict.fromkeys(options.unknown)),
        warnings=(*warnings, *warnings_of(options, table)),
        positions=options.positions,
    )


def _value(options: Options, option: str) -> str | None:
    return defined(options.other[option], option) if option in options.other else None


def _config_file(options: Options, words: Sequence[Word], warnings: list[str]) -> str | None:
    """The --config file. The engine looks for the exact word: --config=FILE and --conf FILE read no file there."""
    exact = sum(word.text == "--config" for word in words)
    if exact > 1:
        raise InputError("--config is given twice; the engine takes one file")
    name = _value(options, "--config")
    if name is not None and not exact:
        warnings.append("the engine reads no file for this spelling of --config; write --config FILE with a blank")
        return None
    return name


def _without_model_type(words: list[Word]) -> list[Word]:
    """`sglang serve` takes --model-type itself, before the engine's parser (cli/serve.py:30-58 at 0.5.21)."""
    kept: list[Word] = []
    skip = False
    for word in words:
        if skip or word.text.startswith("--model-type="):
            skip = False
        elif word.text == "--model-type":
            skip = True
        else:
            kept.append(word)
    return kept
