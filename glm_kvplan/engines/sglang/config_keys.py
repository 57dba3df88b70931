"""What SGLang makes of the keys of its --config file (utils/server_args_config_parser.py at 0.5.23)."""

from glm_kvplan.engines.config_file import Key, Rules
from glm_kvplan.engines.option_words import OptionTable
from glm_kvplan.errors import InputError
from glm_kvplan.launch.marked_words import printable


def _words(key: Key, table: OptionTable) -> list[str]:
    """Booleans switch flags on, lists spread, mappings are JSON."""
    option = "--" + key.name.replace("_", "-")
    if key.own and key.name.replace("-", "_") in table.not_in_yaml:
        raise InputError(
            f"{key.place}: {printable(key.name)}: engine {table.release} takes {option} on the command line only"
        )
    if key.value is None:
        raise InputError(f"{key.place}: {printable(key.name)}: has no value")
    if isinstance(key.value, bool) and table.takes.get(option, 0) == 0:
        return [option] if key.value else []
    if isinstance(key.value, list):
        return [option, *key.items] if key.value else []
    return [f"{option}={key.text}"]


def _notes(keys: list[str]) -> list[str]:
    underscored = [printable(key) for key in keys if "_" in key]
    if not underscored:
        return []
    return [f"{', '.join(underscored[:6])}: the engine wants dashes in these keys and stops at underscores"]


CONFIG = Rules((".yaml", ".yml"), True, _words, _notes)
