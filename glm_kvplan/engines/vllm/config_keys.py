"""What vLLM makes of the keys of its --config file (utils/argparse_utils.py at 0.33.0, load_config_file)."""

from glm_kvplan.engines.config_file import Key, Rules
from glm_kvplan.engines.option_words import OptionTable
from glm_kvplan.engines.vllm.flexible_words import plain_words


def _words(key: Key, table: OptionTable) -> list[str]:
    """True is the flag, false its opposite where it has one, lists spread, mappings are JSON."""
    option, negative = f"--{key.name}", f"--no-{key.name}"
    if isinstance(key.value, bool):
        known = key.value or negative.replace("_", "-") in table.takes
        return [option if key.value else negative] if known else []
    if isinstance(key.value, list):
        return [option, *key.items] if key.value else []
    return [option, key.text]


CONFIG = Rules((".yaml", ".yml"), False, _words, plain=plain_words)
