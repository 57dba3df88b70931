"""What a quantization_config leaves as it was: the modules of each role that its exclude list names."""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Any

from glm_kvplan.model.checkpoints import ROLES

_LONGEST_PATTERN = 400
_MOST_WILD = 4  # repetitions, optional parts among them, in one regular expression: more may take for ever on a name
_NESTED = re.compile(r"[)\]}][*+{]")
# Modules that stand for a role: (layer ids, leaf names). The layers are the published checkpoint's.
_TARGET: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {
    "experts": ((3, 24, 44), ("mlp.experts.0.gate_proj", "mlp.experts.7.down_proj")),
    "shared": ((3, 24, 44), ("mlp.shared_experts.gate_proj", "mlp.shared_experts.down_proj")),
    "mlp": ((0, 1, 2), ("mlp.gate_proj", "mlp.down_proj")),
    "attn": ((3, 23, 43), ("self_attn.q_b_proj", "self_attn.o_proj")),
    "kda": ((0, 22, 44), ("self_attn.q_proj", "self_attn.o_proj")),
}
_DRAFT_LAYER = 45
_DRAFT_ROLES = ("experts", "shared", "attn")


def modules_of(role: str, draft: bool) -> tuple[str, ...]:
    """Names of some modules of a role, as the published checkpoint spells them."""
    layers, leaves = _TARGET[role]
    return tuple(
        f"model.language_model.layers.{layer}.{leaf}"
        for layer in ((_DRAFT_LAYER,) if draft else layers)
        for leaf in leaves
    )


def packed_roles(excluded: Iterable[object], draft: bool) -> frozenset[str]:
    """The roles most of whose modules are on no exclude list, in the MTP layer where `draft`."""
    patterns = [pattern for pattern in excluded if isinstance(pattern, str) and len(pattern) <= _LONGEST_PATTERN]
    found = set()
    for role in _DRAFT_ROLES if draft else ROLES:
        modules = modules_of(role, draft)
        left_out = sum(any(names(pattern, module) for pattern in patterns) for module in modules)
        if 2 * left_out < len(modules):
            found.add(role)
    return frozenset(found)


def exclude_list(declared: Mapping[str, Any]) -> Sequence[object] | None:
    """The modules that are not quantized, whatever the producer calls the list; None where there is none."""
    nested = declared.get("quantization")
    for holder in (declared, nested if isinstance(nested, Mapping) else {}):
        for key in ("ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers", "exclude"):
            found = holder.get(key)
            if isinstance(found, list):
                return found
    return None


def names(pattern: str, module: str) -> bool:
    """A pattern of an exclude list means `module`: it names it or what it is in, as a glob or (`re:`) an expression.

    The prefixes that loaders add or take away (`model.`, `language_model.`) do not count.
    """
    expression = _compiled(pattern)
    if expression is None:
        return False
    if pattern.startswith("re:"):
        return any(expression.match(spelling) for spelling in _spellings(module))
    if "*" not in pattern and "." not in pattern:
        return pattern in module.split(".")
    return any(
        expression.fullmatch(spelling[:end])
        for spelling in _spellings(module)
        for end in (*(at.start() for at in re.finditer(r"\.", spelling)), len(spelling))
    )


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """None for an expression that cannot be read, or that could take for ever."""
    if not pattern.startswith("re:"):
        return re.compile(translate(pattern))
    text = pattern.removeprefix("re:")
    if _NESTED.search(text) or sum(text.count(sign) for sign in "*+{?") > _MOST_WILD:
        return None
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return None


def _spellings(module: str) -> tuple[str, ...]:
    bare = module.removeprefix("model.").removeprefix("language_model.")
    return module, f"model.{bare}", f"language_model.{bare}", f"language_model.model.{bare}", bare
