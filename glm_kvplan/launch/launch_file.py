"""Launch commands kept in files: a script or manifest (`--launch FILE`), and the engine's own `--config` YAML."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from glm_kvplan.engines.launches import LARGEST_TEXT
from glm_kvplan.engines.option_words import OptionTable, read_options, warnings_of
from glm_kvplan.engines.sglang.launch_command import LaunchCommand, read_launch_command
from glm_kvplan.engines.sglang.option_lists import option_table
from glm_kvplan.engines.sglang.profile import BASELINE
from glm_kvplan.errors import InputError
from glm_kvplan.launch.model_name import refuse_other_model
from glm_kvplan.launch.words import Word, printable
from glm_kvplan.reading.guarded_file import inside, read_stdin, read_text
from glm_kvplan.reading.secret_words import Concealed
from glm_kvplan.reading.unreadable import UnreadableError
from glm_kvplan.reading.yaml_text import read_yaml
from glm_kvplan.units import GIB

ADVICE = "a launch script is a few KiB"  # about a large one
# What a deployment file needs, at the left margin, in YAML and in TOML: no shell script has it there.
_DEPLOYMENT_FILE = re.compile(r"(?m)^(?:launch|launch_file|flags)(?:: | = |:$)|^\[flags\]$")


def read_launch_file(path: str | Path, release: str = BASELINE) -> LaunchCommand:
    """The launch in a shell script or a Kubernetes manifest; "-" reads standard input. The engine's own --config file
    is merged in.

    Raises InputError for a file that cannot be read, is larger than 10 MiB or is not UTF-8 text, for a deployment file
    (its engine, GPU and memory would be lost), and for everything `read_launch_command`, `read_manifest` and
    `with_config_file` raise it for.
    """
    from glm_kvplan.launch.manifest import is_manifest, read_manifest

    shown = "--launch " + printable(str(path), 200)
    if str(path) == "-":
        text = read_stdin(shown, most=LARGEST_TEXT, advice=ADVICE)
    else:
        text = read_text(path, shown, most=LARGEST_TEXT, advice=ADVICE)
    if is_manifest(text):
        command, container = read_manifest(text, shown, release=release)
        if container.memory_bytes is not None and command.flags.get("enable_hierarchical_cache"):
            limit = f"{container.memory_bytes / GIB:.10g}"
            note = (
                f"the container's memory limit is not applied here: --pod-gib {limit} holds the host pools against it"
            )
            command = replace(command, warnings=(*command.warnings, note))
        return command
    if _DEPLOYMENT_FILE.search(text):
        raise InputError(
            f"{shown}: is a deployment file; `kvplan check` reads it, --launch takes a launch command's file"
        )
    return with_config_file(read_launch_command(text, release), release)


def with_config_file(command: LaunchCommand, release: str = BASELINE, within: Path | None = None) -> LaunchCommand:
    """The command with its --config file's flags put in front of its own: the command line wins.

    Source: utils/server_args_config_parser.py at 0.5.21 (ConfigArgumentMerger). Raises InputError for a file that
    cannot be read, is not YAML by its name or content, is not a mapping, or holds a wrong value. With `within` the
    file's name is relative to that folder, it must lie in it, and no message quotes its values: somebody else chose it.
    """
    if command.config_file is None:
        return command
    path = Path(command.config_file)
    if within is not None:
        path = inside(within, command.config_file, f"--config {printable(command.config_file, 200)}")
    if path.suffix.lower() not in (".yaml", ".yml"):
        raise InputError(f"--config {printable(str(path), 200)}: the engine takes a .yaml or .yml file only")
    table = option_table(release)
    warnings: list[str] = []
    hidden = within is not None
    words = _words_of(_mapping(path, hidden), printable(path.name), table, warnings, hidden)
    options = read_options(words, table)
    model = command.model
    if model is None and "--model-path" in options.other:
        model = options.other["--model-path"].text
        refuse_other_model(model)
    revision = options.other["--revision"].text if "--revision" in options.other else None
    return replace(
        command,
        flags={**options.flags, **command.flags},
        checked={**options.checked, **command.checked},
        positions={**options.positions, **command.positions},
        model=model,
        revision=command.revision or revision,
        ignored=command.ignored + options.ignored,
        unknown=tuple(dict.fromkeys((*options.unknown, *command.unknown))),
        warnings=(*command.warnings, *warnings, *warnings_of(options, table)),
    )


def _mapping(path: Path, hidden: bool) -> Mapping[object, object]:
    shown = f"--config {printable(str(path), 200)}"
    text = read_text(path, shown, most=LARGEST_TEXT, advice="a config file is a few KiB")
    try:
        documents = read_yaml(text)
    except UnreadableError as error:
        place = f" at line {error.line}" if error.line else ""
        raise InputError(f"{shown}: not YAML{place}: {error.unquoted if hidden else error.problem}") from None
    if len(documents) > 1:
        raise InputError(f"{shown}: not YAML at line {documents[1].line}: several documents; keep one")
    data = documents[0].data if documents else None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise InputError(f"{shown}: must be a mapping of flag to value, not a {type(data).__name__}")
    return data


def _words_of(
    config: Mapping[object, object], place: str, table: OptionTable, warnings: list[str], hidden: bool
) -> list[Word]:
    """The words the engine would make of the file: booleans switch flags on, lists spread, mappings are JSON."""
    words: list[Word] = []
    underscored: list[str] = []
    text_of: type[str] = Concealed if hidden else str
    for key, value in config.items():
        if not isinstance(key, str):
            raise InputError(f"{place}: the key {str(key)[:60]!r} is not a flag's name")
        option = "--" + key.replace("_", "-")
        if key.replace("-", "_") in table.not_in_yaml:
            raise InputError(
                f"{place}: {printable(key)}: engine {table.release} takes {option} on the command line only"
            )
        if "_" in key:
            underscored.append(key)
        if value is None:
            raise InputError(f"{place}: {printable(key)}: has no value")
        if isinstance(value, bool) and table.takes.get(option, 0) == 0:
            words += [Word(option, place)] if value else []
            continue
        if isinstance(value, list):
            items = [text_of(_text(item)) for item in value]
            words += [Word(text, place) for text in (option, *items)] if items else []
            continue
        try:
            words.append(Word(text_of(f"{option}={_text(value)}"), place))
        except TypeError:
            raise InputError(f"{place}: {printable(key)}: a key in its value is not text") from None
    if underscored:
        named = ", ".join(printable(key) for key in underscored[:6])
        warnings.append(f"{place}: {named}: the engine wants dashes in these keys and stops at underscores")
    return words


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, default=str) if isinstance(value, dict) else str(value)
