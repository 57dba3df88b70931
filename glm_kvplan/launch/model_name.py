"""What a model's name or path gives away: another family."""

import re

from glm_kvplan.errors import InputError
from glm_kvplan.reading.secret_words import quoted

_OTHER_FAMILIES = frozenset(
    (
        *("qwen", "qwq", "deepseek", "llama", "codellama", "mistral", "mixtral", "ministral", "pixtral", "gemma"),
        *("kimi", "minimax", "nemotron", "hunyuan", "ernie", "internlm", "internvl", "baichuan", "olmo", "exaone"),
        *("granite", "chatglm", "gpt-oss"),
    )
)
_WORD = r"gpt-oss|[a-z]+"
_OTHER_GLM = r"glm[-_ ]?\d"
_NUMBERED = rf"(?:{'|'.join(sorted(_OTHER_FAMILIES))})[-_ ]?[a-z]?\d"  # Qwen3, DeepSeek-V3, Kimi-K2


def base_name(model: str) -> str:
    """The last part of a Hub id or path, in lower case; in a Hub cache folder the repository's name."""
    parts = [part for part in model.replace("\\", "/").split("/") if part]
    cached = next((part for part in parts if part.startswith("models--")), None)
    return (cached or (parts[-1] if parts else "")).rpartition("--")[2].lower()


def refuse_other_model(model: str) -> None:
    """Raise InputError when the name is clearly another family's; any other id or path passes.

    A folder of one's own may be called after anything (/data/llama-tuning): it has to name a model with its number.
    """
    name = base_name(model)
    squeezed = re.sub(r"[^a-z0-9]", "", name)
    if "glm53flash" in squeezed or "glm5next" in squeezed:
        return
    private = model.startswith(("/", ".", "~")) and "models--" not in model
    named = re.search(_NUMBERED, name) if private else _OTHER_FAMILIES.intersection(re.findall(_WORD, name))
    if named or re.search(_OTHER_GLM, name):
        raise InputError(
            f"model {quoted(model, most=80)} is another model; GLM-5.3-Flash and copies of it are planned here: "
            "if it is one, give its config.json with --model"
        )
