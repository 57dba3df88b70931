"""The launch command as an operator has it: words or a text in, the engine's flags and switches out."""

from collections.abc import Sequence
from pathlib import Path

from glm_kvplan.engines.config_file import with_settings
from glm_kvplan.engines.launches import LaunchCommand, one_launch
from glm_kvplan.engines.option_words import Options, others, read_options, refuse_unknown, warnings_of
from glm_kvplan.engines.sglang.config_keys import CONFIG
from glm_kvplan.engines.sglang.environment import ENVIRONMENT
from glm_kvplan.engines.sglang.option_lists import option_table
from glm_kvplan.engines.sglang.profile import BASELINE
from glm_kvplan.launch.launch import Launch
from glm_kvplan.launch.marked_words import Word, defined


def read_launch_command(
    words: Sequence[str] | str, release: str = BASELINE, within: Path | None = None
) -> LaunchCommand:
    """Read a launch command: its words (already split by a shell), or a text of any form (launch/forms.py).

    Raises InputError for no launch, several launches, another engine, and what `command_of` raises it for.
    """
    launch, notes = one_launch(words, "sglang")
    return command_of(launch, release, within, notes)


def command_of(
    launch: Launch,
    release: str = BASELINE,
    within: Path | None = None,
    notes: Sequence[str] = (),
    *,
    patched: bool = False,
) -> LaunchCommand:
    """One launch read, its own --config file included: the command line wins over it.

    An option that `release` does not have is refused, as its parser does; of a `patched` build, and where another
    program's flags may stand among the words, it is left out. Raises InputError for that, for a variable that is not
    defined in the text where its value matters, a wrong, missing or superfluous value, and a file that cannot be read
    (or lies outside `within`).
    """
    table = option_table(release)
    words = list(launch.words)
    model: str | None = None
    if launch.serve:
        if words and not words[0].text.startswith("-"):
            model = defined(words.pop(0), "the model")
        words = _without_model_type(words)
    warnings = [*notes, *launch.image_notes(release)]
    options = read_options(words, table)
    if "--config" in options.other and not any(word.text == "--config" for word in words):
        warnings.append("the engine reads no file for this spelling of --config; write --config FILE with a blank")
    options = with_settings(options, launch, CONFIG, table, within)
    if not (patched or launch.wrapped):
        refuse_unknown(options, table)
    model = _value(options, "--model-path") or model
    if model is None and launch.engine and not launch.wrapped:
        warnings.append("the launch names no model; SGLang does not start without, and this plans GLM-5.3-Flash")
    environment = {name: defined(launch.environment[name], name) for name in ENVIRONMENT if name in launch.environment}
    role = str(options.flags.get("disaggregation_mode", "null"))
    return LaunchCommand(
        flags=options.flags,
        checked=options.checked,
        environment=environment,
        model=model,
        revision=_value(options, "--revision"),
        ignored=options.ignored,
        unknown=tuple(options.unknown),
        warnings=(*warnings, *warnings_of(options, table)),
        positions=options.positions,
        others=others(options, table),
        role=None if role == "null" else role,
    )


def _value(options: Options, option: str) -> str | None:
    return defined(options.other[option], option) if option in options.other else None


def _without_model_type(words: list[Word]) -> list[Word]:
    """`sglang serve` takes --model-type itself, before the engine's parser (cli/serve.py:36-64 at 0.5.23)."""
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
