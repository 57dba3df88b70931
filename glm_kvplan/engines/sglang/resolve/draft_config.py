"""A draft model of its own: which config it has, the engine's checks of it, and the type its cache is kept in."""

from glm_kvplan.engines.sglang.environment import switched_on
from glm_kvplan.engines.sglang.resolve.arguments import Arguments, Reason, Site
from glm_kvplan.errors import RefusedError
from glm_kvplan.model.draft import DraftModel

_TARGET = Reason(
    "the served checkpoint itself: its own draft layer", "arg_groups/speculative_hook.py:1213-1242 at 0.5.23"
)
_BACKEND = Reason("what runs a block draft here", "arg_groups/speculative_hook.py:878-991 at 0.5.23")
_FA4 = Reason("fa4 keeps a block draft's cache in the model's own type", "mem_cache/kv_cache_dtype.py:97 at 0.5.23")
_TARGETS = Reason("as the target's", "mem_cache/kv_cache_dtype.py:97 at 0.5.23")
_GIVEN = Reason("--speculative-draft-kv-cache-dtype", "mem_cache/kv_cache_dtype.py:97 at 0.5.23")

_BLOCKS = ("DFLASH", "DSPARK")
_KERNELS = ("flashinfer", "fa3", "fa4", "triton", "ascend", "trtllm_mha", "intel_xpu")
_OWN_ARCHITECTURE = "Glm5Next"
_STORED = {"bf16": "bfloat16", "bfloat16": "bfloat16", "fp8_e4m3": "uint8", "fp8_e5m2": "uint8"}

UNKNOWN = (
    "the draft model's config.json cannot be read ({why}), so its cache and its weights are not counted: every "
    "number of tokens is an upper bound. Give it with --draft-config FILE"
)


def find(a: Arguments, site: Site) -> None:
    """Whose draft it is: the checkpoint's own layer, or a model of its own with the config that was found."""
    if a.speculative_draft_model_path is None:
        return
    if isinstance(site.draft, DraftModel):
        if a.speculative_algorithm not in _BLOCKS and site.draft.architecture.startswith(_OWN_ARCHITECTURE):
            a.speculative_draft_model_path = None
            a.because["speculative_draft_model_path"] = _TARGET
            return
        a.draft_model = site.draft
        return
    a.warnings.append(UNKNOWN.format(why=site.draft or "none was looked for"))


def check(a: Arguments, site: Site) -> None:
    """Refuse what the engine refuses once it has read the draft's config."""
    draft = a.draft_model
    if draft is None:
        return
    if a.speculative_algorithm == "DSPARK" and not draft.markov_rank:
        raise RefusedError(
            "DSPARK needs a markov_rank above 0 in the draft's config.json",
            "model_executor/model_runner_components/spec_aux_hidden_state.py:269 at 0.5.23",
        )
    ranks = a.tp_size // a.attn_dp_size // a.attn_cp_size
    if a.speculative_algorithm in _BLOCKS and (
        draft.attention_heads % ranks or (draft.kv_heads % ranks and ranks % draft.kv_heads)
    ):
        raise RefusedError(
            f"the draft model's {draft.attention_heads} attention and {draft.kv_heads} KV heads do not divide over "
            f"{ranks} ranks",
            "models/dflash.py:215-228 at 0.5.23",
        )
    longest = a.context_length or 0
    if longest > draft.longest_context and not switched_on(
        site.environment, "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"
    ):
        raise RefusedError(
            f"the draft model's context of {draft.longest_context} tokens is shorter than the {longest} served; give "
            f"--context-length {draft.longest_context} or less, or SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1",
            "configs/model_config.py:1314 at 0.5.23",
        )


def cache_dtype(a: Arguments, site: Site) -> None:
    """The type of the cache of a draft model of its own, as torch stores it.

    Source: mem_cache/kv_cache_dtype.py:97 at 0.5.23; the kernels: arg_groups/speculative_hook.py:878-991 at 0.5.23.
    """
    block = a.speculative_algorithm in _BLOCKS
    kernels = _kernels(a, site) if block else None
    if a.speculative_algorithm == "DFLASH" and kernels != a.speculative_draft_attention_backend:
        a.speculative_draft_attention_backend = kernels
        a.because["speculative_draft_attention_backend"] = _BACKEND
    asked, draft = a.speculative_draft_kv_cache_dtype, a.draft_model
    if draft is None:
        if asked is not None and a.speculative_draft_model_path is None:
            a.warnings.append(
                "--speculative-draft-kv-cache-dtype: the draft layer's rows are planned in the target's type"
            )
        return
    if kernels == "fa4":
        a.draft_kv_dtype, why = draft.dtype, _FA4
    elif asked is None:
        a.draft_kv_dtype, why = _STORED[a.kv_cache_dtype or "bfloat16"], _TARGETS
    else:
        a.draft_kv_dtype, why = draft.dtype if asked == "auto" else _STORED[asked], _GIVEN
    a.because["draft_kv_dtype"] = why


def _kernels(a: Arguments, site: Site) -> str:
    """Attention kernels of a block draft: those named, or the target's prefill ones, where they can run it."""
    asked = a.speculative_draft_attention_backend or a.prefill_attention_backend or a.attention_backend
    draft = a.draft_model
    windowed = draft is not None and (draft.sliding_only or draft.causal)
    if asked not in _KERNELS or (asked == "trtllm_mha" and not windowed):
        return "flashinfer" if site.gpu.vendor == "cuda" else "triton"
    return asked
