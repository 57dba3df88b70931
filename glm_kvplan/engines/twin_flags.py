"""A deployment of one engine said in the flags of another: only where a flag and its twin mean exactly the same."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from glm_kvplan.engines.flag import Flag, check_value, option_of
from glm_kvplan.engines.protocol import Engine, Given, Release
from glm_kvplan.engines.twins import twin_in
from glm_kvplan.errors import InputError

_Flags = Mapping[str, object]
# SGLang's field and vLLM's: the same value means the same to both. Without data parallelism a worker's requests are
# the deployment's; with it there is no exact twin, because vLLM spreads the experts over its engines.
_SAME = (
    ("tp_size", "tensor_parallel_size"),
    ("context_length", "max_model_len"),
    ("max_running_requests", "max_num_seqs"),
    ("kv_cache_dtype", "kv_cache_dtype"),
    ("mamba_ssm_dtype", "mamba_ssm_cache_dtype"),
)
_PREFIXES = ("disable_radix_cache", "enable_prefix_caching")
_STEPS, _DRAFTS = "speculative_num_steps", "speculative_num_draft_tokens"
_SPECULATION = ("speculative_algorithm", _STEPS, "speculative_eagle_topk", _DRAFTS)
_CONFIG = "speculative_config"


def check_twins(engine: Engine, other: Engine, names: Iterable[str]) -> None:
    """Raise InputError for a flag or switch of `engine` without an exact twin in `other`."""
    for name in names:
        if engine is not other and name not in _known(engine):
            raise _without(name, engine, other)


def translated(given: Given, release: Release) -> Given:
    """What was given, on a release of any engine. Raises InputError for a flag or value without an exact twin.

    Flags that move no memory but may keep the one engine from starting say nothing of the other, and are left out.
    """
    engine: Engine = given.profile.engine
    if release.engine is engine:
        return replace(given, profile=release)
    check_twins(engine, release.engine, (*given.flags, *given.environment))
    left, right = (0, 1) if engine.name == "sglang" else (1, 0)
    flags: dict[str, object] = {pair[right]: given.flags[pair[left]] for pair in _SAME if pair[left] in given.flags}
    kept = given.flags.get(_PREFIXES[left])
    if kept is not None:
        flags[_PREFIXES[right]] = not kept
    if flags.get("kv_cache_dtype") == "bf16":
        flags["kv_cache_dtype"] = "bfloat16"  # SGLang has both words for it
    speculation = _to_config(given.flags) if left == 0 else _from_config(given.flags)
    found = {flag.name: flag for flag in release.engine.flags}
    for name, value in flags.items():
        _check(found[name], value, release)
    flags = {name: value for name, value in flags.items() if value is not False or found[name].kind == "switch"}
    return replace(given, profile=release, flags={**flags, **speculation}, checked={})


def _known(engine: Engine) -> tuple[str, ...]:
    side = 0 if engine.name == "sglang" else 1
    return (*(pair[side] for pair in _SAME), _PREFIXES[side], *(_SPECULATION if side == 0 else (_CONFIG,)))


def _check(flag: Flag, value: object, release: Release) -> None:
    choices = flag.choices_in(release.base_release)
    try:
        check_value(flag, value)
    except InputError as error:
        raise InputError(f"on {release.engine.title}: {error}") from None
    if choices is not None and value not in choices:
        raise InputError(f"on {release.engine.title}: {flag.option} {value} is not accepted by {release.base_release}")


def _to_config(flags: _Flags) -> dict[str, object]:
    """SGLang's drafts with the checkpoint's own layer as vLLM's configuration: a chain of so many tokens."""
    algorithm, steps = flags.get(_SPECULATION[0]), flags.get(_STEPS)
    if algorithm is None:
        return {}
    if algorithm not in ("EAGLE", "NEXTN"):
        raise InputError(f"--speculative-algorithm {algorithm} has no exact twin in vLLM; EAGLE and NEXTN have")
    if not isinstance(steps, int):
        raise InputError(
            "--speculative-algorithm alone leaves its drafts to SGLang; for vLLM, too, say --speculative-num-steps N "
            "--speculative-eagle-topk 1 --speculative-num-draft-tokens N+1"
        )
    if flags.get("speculative_eagle_topk") != 1 or flags.get(_DRAFTS) != steps + 1:
        one_chain = f"--speculative-eagle-topk 1 --speculative-num-draft-tokens {steps + 1}"
        raise InputError(f"vLLM drafts one chain: for it, too, say {one_chain}")
    return {_CONFIG: {"method": "mtp", "num_speculative_tokens": steps}}


def _from_config(flags: _Flags) -> dict[str, object]:
    """vLLM's drafts with the MTP layer as SGLang's: a chain, its last token verified beside them."""
    config: Any = flags.get(_CONFIG)
    if config is None:
        return {}
    tokens = config.get("num_speculative_tokens")
    if config != {"method": "mtp", "num_speculative_tokens": tokens} or not isinstance(tokens, int):
        raise InputError(
            "--speculative-config has an exact twin in SGLang only as "
            '{"method": "mtp", "num_speculative_tokens": N}; leave the rest out'
        )
    return dict(zip(_SPECULATION, ("NEXTN", tokens, 1, tokens + 1), strict=True))


def _without(name: str, engine: Engine, other: Engine) -> InputError:
    flag = next((flag for flag in engine.flags if flag.name == name), None)
    word = name if name in engine.switches else option_of(name) if flag is None else flag.option
    twin = twin_in(other.name, word)
    near = f" (nearest: {twin})" if twin else ""
    return InputError(
        f"{word} of {engine.title} has no exact twin in {other.title}{near}: leave it out, or sweep each engine alone"
    )
