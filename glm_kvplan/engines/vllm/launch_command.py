"""vLLM's launch command as an operator has it: words or a text in, its flags and switches out."""

from collections.abc import Sequence
from pathlib import Path

from glm_kvplan.engines.config_file import config_word, with_settings
from glm_kvplan.engines.launches import LaunchCommand, one_launch
from glm_kvplan.engines.option_words import others, read_options, refuse_unknown, warnings_of
from glm_kvplan.engines.vllm.config_keys import CONFIG
from glm_kvplan.engines.vllm.environment import ENVIRONMENT
from glm_kvplan.engines.vllm.flexible_words import plain_words
from glm_kvplan.engines.vllm.option_lists import option_table
from glm_kvplan.launch.launch import Launch
from glm_kvplan.launch.marked_words import Word, defined


def read_launch_command(words: Sequence[str] | str, release: str, within: Path | None = None) -> LaunchCommand:
    """Read a launch command: its words (already split by a shell), or a text of any form (launch/forms.py).

    Raises InputError for no launch, several, another engine, and what `command_of` raises it for.
    """
    launch, notes = one_launch(words, "vllm")
    return command_of(launch, release, within, notes)


def command_of(
    launch: Launch,
    release: str,
    within: Path | None = None,
    notes: Sequence[str] = (),
    *,
    patched: bool = False,
) -> LaunchCommand:
    """One launch read, its own YAML --config file included: the command line wins over it.

    Only the exact word --config with a blank after it names a file (utils/argparse_utils.py at 0.33.0). An option that
    `release` does not have is refused, as its parser does; of a `patched` build, and where another program's flags may
    stand among the words, it is left out. Raises InputError for that, for a variable that is not defined in the text
    where its value matters, a wrong, missing or superfluous value, and a file that cannot be read (or lies outside
    `within`).
    """
    table = option_table(release)
    given = list(launch.words)
    model: Word | None = None
    if launch.serve and given and not given[0].text.startswith("-"):
        model = given.pop(0)
    warnings = [*notes, *launch.image_notes(release)]
    plain = plain_words(_without_config(given))
    options = with_settings(read_options(plain, table), launch, CONFIG, table, within)
    if not (patched or launch.wrapped):
        refuse_unknown(options, table)
    named = options.other.get("--model")
    if model is None:
        model = named
    elif named is not None:
        warnings.append(f"{named.place}: --model is ignored beside the model itself")
    if model is not None:
        defined(model, "the model")
    elif launch.engine and not launch.wrapped:
        warnings.append("the launch names no model; vLLM then serves one of its own, and this plans GLM-5.3-Flash")
    environment = {name: defined(launch.environment[name], name) for name in ENVIRONMENT if name in launch.environment}
    revision = options.other.get("--revision")
    return LaunchCommand(
        flags={name: value for name, value in options.flags.items() if value is not None},
        environment=environment,
        model=None if model is None else model.text,
        revision=None if revision is None else defined(revision, "--revision"),
        ignored=options.ignored,
        unknown=tuple(options.unknown),
        warnings=(*warnings, *warnings_of(options, table)),
        positions=options.positions,
        others=others(options, table),
    )


def _without_config(words: list[Word]) -> list[Word]:
    """The words that vLLM's option parser sees: it takes `--config FILE` out first."""
    found = config_word(words)
    if found is None:
        return words
    at = next(at for at, word in enumerate(words) if word.text == "--config")
    return [*words[:at], *words[at + 2 :]]
