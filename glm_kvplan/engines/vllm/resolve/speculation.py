"""Speculative decoding: which drafts the planner knows, and how many tokens they draft."""

from collections.abc import Mapping
from typing import NamedTuple

from glm_kvplan.engines.vllm.flags import FLAG
from glm_kvplan.engines.vllm.resolve.site import Decisions
from glm_kvplan.errors import InputError

# Methods that draft with the checkpoint's own MTP layer: `mtp` and its older names (config/speculative.py).
_MTP_ENDING = "mtp"
_WITHOUT_LAYERS = ("ngram", "[ngram]", "ngram_gpu", "suffix")
_SHORT_FLAGS = (("spec_method", "method"), ("spec_model", "model"), ("spec_tokens", "num_speculative_tokens"))


class Speculation(NamedTuple):
    """How many tokens are drafted, and how many cache layers the draft adds."""

    method: str | None
    tokens: int
    draft_layers: int


def speculation(given: Decisions) -> Speculation:
    """What --speculative-config and its short flags say.

    Raises RefusedError for what vLLM refuses, InputError for a draft whose own cache is not planned here.
    """
    config = {key.replace("-", "_"): value for key, value in given.table("speculative_config").items()}
    for flag, key in _SHORT_FLAGS:
        if given.value(flag) is None:
            continue
        if key in config:
            given.refuse(f"{FLAG[flag].option} and {key} of --speculative-config exclude each other", "speculation")
        config[key] = given.value(flag)
    if not config:
        return Speculation(None, 0, 0)
    tokens = config.get("num_speculative_tokens")
    if tokens is not None and (not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1):
        raise InputError(f"--speculative-config: num_speculative_tokens {tokens!r} must be a whole number above 0")
    if config.get("num_speculative_tokens_per_batch_size") is not None:
        raise InputError("--speculative-config: num_speculative_tokens_per_batch_size is not planned here")
    method = config.get("method")
    if method is None:
        method = "ngram" if config.get("model") in ("ngram", "[ngram]") else "draft_model"
    if not isinstance(method, str):
        raise InputError(f"--speculative-config: method {method!r} must be a word such as mtp")
    if method.endswith(_MTP_ENDING):
        layers = given.site.geometry.num_nextn_predict_layers
        if layers != 1:
            raise InputError(f"the checkpoint has {layers} MTP layers; drafting with one is what is planned here")
        if tokens is None and config.get("model") is None:
            given.refuse("--speculative-config says method mtp without num_speculative_tokens", "speculation")
        return _drafting(given, config, Speculation("mtp", tokens or layers, layers))
    if tokens is None:
        given.refuse(f"--speculative-config says method {method} without num_speculative_tokens", "speculation")
    if method in _WITHOUT_LAYERS:
        return _drafting(given, config, Speculation(method, tokens, 0))
    raise InputError(
        f"--speculative-config: the cache of a {method[:40]} draft is not planned for vLLM; method mtp is, and "
        "drafts without a model (ngram, suffix)"
    )


def _drafting(given: Decisions, config: Mapping[str, object], found: Speculation) -> Speculation:
    kept = "one MTP layer, run once a token" if found.draft_layers else "a draft without layers of its own"
    reason = f"given: method {found.method}, {kept}; one more state a token"
    given.decide("speculative_config", dict(config), reason, "states")
    return found
