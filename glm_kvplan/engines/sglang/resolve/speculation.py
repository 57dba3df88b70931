"""Speculative decoding: what the algorithm's name, steps, top-k and draft tokens become."""

from glm_kvplan.engines.sglang.resolve import draft_model
from glm_kvplan.engines.sglang.resolve.arguments import Arguments, Reason, Site
from glm_kvplan.errors import InputError, RefusedError

_HOOK = "arg_groups/speculative_hook.py"
_ALIAS = Reason("NEXTN is EAGLE with the checkpoint's own draft layer", f"{_HOOK}:80-117 at 0.5.21")
_REQUESTS = Reason("speculation is on and none was given", f"{_HOOK}:973-982 at 0.5.21")
_DEFAULTS = Reason("the engine's choice for this model", f"{_HOOK}:1318-1349 at 0.5.21")
_STEPS_PLUS_ONE = Reason("top-k 1 verifies one token more than it drafts", f"{_HOOK}:1143-1155 at 0.5.21")
_ADAPTIVE = Reason("the middle of the adaptive candidates 0, 1, 3, 5, 7", f"{_HOOK}:1262-1315 at 0.5.21")
_ADAPTIVE_OFF = Reason(
    "needs EAGLE or EAGLE3 with top-k 1, without attention DP", "speculative/adaptive_spec_params.py:55-93 at 0.5.21"
)
_LARGEST = Reason("room for the largest adaptive candidate, 7 steps", "speculative/spec_info.py:267-288 at 0.5.21")
_STRAY = Reason("given without an algorithm: buffers are sized by it", "speculative/spec_info.py:267-288 at 0.5.21")
_BLOCK = Reason("the block the draft model verifies at once", f"{_HOOK}:330-385 at 0.5.21")
_ONE = Reason("block drafts take one step of one branch", f"{_HOOK}:297-325 at 0.5.21")

_CANDIDATES = (0, 1, 3, 5, 7)  # DEFAULT_ADAPTIVE_CONFIG, speculative/adaptive_spec_params.py:27-52
_RUNNING_REQUESTS = 48
_DFLASH_BLOCK, _DSPARK_BLOCK = 16, 7
_NGRAM = "NGRAM"
_MODELLED = ("EAGLE", "EAGLE3", "STANDALONE", "DFLASH", "DSPARK")
_STEPPED = ("EAGLE", "EAGLE3", "STANDALONE")  # draft token by token; the others a block at once
_PAGED_TREES = ("flashinfer", "fa3", "triton")


def speculation(a: Arguments, site: Site) -> None:
    """Resolve the speculative flags, last but for the checks: nothing before it sees 48 requests or 4 drafts.

    Source: arg_groups/speculative_hook.py:119-240, 961-1170, 1262-1349 at 0.5.21.
    """
    if a.speculative_algorithm is None:
        _stray_drafts(a)
        return
    name = a.speculative_algorithm.upper()
    if name == "NEXTN":
        name = "EAGLE"
        a.because["speculative_algorithm"] = _ALIAS
    if name == _NGRAM:
        raise RefusedError(
            f"NGRAM speculation drafts {a.speculative_eagle_topk or 10} branches, and this model's paged sparse "
            "attention takes one",
            f"{_HOOK}:1249 at 0.5.21",
        )
    if name not in _MODELLED:
        raise InputError(
            f"--speculative-algorithm {a.speculative_algorithm[:40]!r} is not modelled; these are: "
            f"NEXTN, {', '.join(_MODELLED)}"
        )
    a.speculative_algorithm = name
    _check_decode_radix(a, site, name)
    draft_model.find(a, site)
    if a.speculative_adaptive:
        _adaptive(a)
    if name in _STEPPED:
        _eagle(a)
        _check_own_draft(a, site, name)
    else:
        _block_draft(a, site)
    if a.max_running_requests is None:
        a.max_running_requests = _RUNNING_REQUESTS
        a.because["max_running_requests"] = _REQUESTS
    a.max_draft_tokens = a.speculative_num_draft_tokens
    if a.speculative_adaptive:
        a.max_draft_tokens = max(_CANDIDATES) + 1
        a.because["max_draft_tokens"] = _LARGEST
    draft_model.check(a, site)
    draft_model.cache_dtype(a, site)


def _stray_drafts(a: Arguments) -> None:
    """Draft tokens without an algorithm size buffers all the same, although nothing speculates.

    Source: speculative/spec_info.py:267-288, mem_cache/kv_cache_configurator.py:1140-1156 at 0.5.21.
    """
    drafts = a.speculative_num_draft_tokens
    if drafts is None:
        return
    a.max_draft_tokens = max(_CANDIDATES) + 1 if a.speculative_adaptive else drafts
    a.because["max_draft_tokens"] = _STRAY
    a.warnings.append(
        f"--speculative-num-draft-tokens {drafts} without --speculative-algorithm: nothing speculates, yet the engine "
        "allocates verify snapshots for it that no budget pays for; leave it out"
    )


def _adaptive(a: Arguments) -> None:
    if (
        a.speculative_algorithm not in ("EAGLE", "EAGLE3")
        or a.speculative_eagle_topk not in (None, 1)
        or a.enable_dp_attention
        or a.enable_multi_layer_eagle
        or a.enable_two_batch_overlap
        or a.enable_pdmux
    ):
        a.speculative_adaptive = False
        a.because["speculative_adaptive"] = _ADAPTIVE_OFF
        return
    if a.speculative_adaptive_config is not None:
        a.warnings.append(
            "--speculative-adaptive-config is not read; the built-in candidates 0, 1, 3, 5, 7 are assumed"
        )
    if a.speculative_eagle_topk is None:
        a.speculative_eagle_topk = 1
        a.because["speculative_eagle_topk"] = _DEFAULTS
    if a.speculative_num_steps is None:
        a.speculative_num_steps = _CANDIDATES[len(_CANDIDATES) // 2]
        a.because["speculative_num_steps"] = _ADAPTIVE
    if a.speculative_num_steps not in _CANDIDATES:
        raise RefusedError(
            f"--speculative-num-steps {a.speculative_num_steps} is none of the adaptive candidates 0, 1, 3, 5, 7",
            f"{_HOOK}:1305 at 0.5.21",
        )
    a.speculative_num_draft_tokens = a.speculative_num_steps + 1
    a.because["speculative_num_draft_tokens"] = _STEPS_PLUS_ONE


def _eagle(a: Arguments) -> None:
    if a.speculative_algorithm == "STANDALONE" and a.enable_dp_attention:
        raise RefusedError("STANDALONE speculation does not run with attention DP", f"{_HOOK}:964-971 at 0.5.21")
    if a.speculative_num_steps is None:
        if a.speculative_eagle_topk is not None or a.speculative_num_draft_tokens is not None:
            raise RefusedError(
                "speculative top-k or draft tokens without --speculative-num-steps: give all three or none",
                f"{_HOOK}:1049 at 0.5.21",
            )
        a.speculative_num_steps, a.speculative_eagle_topk, a.speculative_num_draft_tokens = 3, 1, 4
        for name in ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens"):
            a.because[name] = _DEFAULTS
    if a.speculative_eagle_topk is None:
        raise RefusedError(
            "--speculative-num-steps without --speculative-eagle-topk stops the engine: give all three or none",
            f"{_HOOK}:1162 at 0.5.21",
        )
    if a.speculative_eagle_topk == 1:
        if a.speculative_num_draft_tokens != a.speculative_num_steps + 1:
            a.speculative_num_draft_tokens = a.speculative_num_steps + 1
            a.because["speculative_num_draft_tokens"] = _STEPS_PLUS_ONE
    elif (a.page_size or 1) > 1 and a.attention_backend not in _PAGED_TREES:
        raise RefusedError(
            f"--speculative-eagle-topk {a.speculative_eagle_topk}: this model's paged sparse attention takes top-k 1",
            f"{_HOOK}:1161-1170 at 0.5.21",
        )
    elif a.speculative_num_draft_tokens is None:
        raise RefusedError(
            "--speculative-eagle-topk above 1 needs --speculative-num-draft-tokens", f"{_HOOK}:1143 at 0.5.21"
        )


def _check_own_draft(a: Arguments, site: Site, name: str) -> None:
    """The checkpoint's own draft is one MTP layer; the engine stops while it loads any other number."""
    layers = site.geometry.num_nextn_predict_layers
    if name == "EAGLE" and a.speculative_draft_model_path is None and layers != 1:
        raise RefusedError(
            f"{name} speculation drafts with one MTP layer of the checkpoint, and this one has {layers} "
            "(num_nextn_predict_layers); leave it out or give --speculative-draft-model-path",
            "models/glm5_next.py:1551-1560 at 0.5.21",
        )


def _block_draft(a: Arguments, site: Site) -> None:
    name = a.speculative_algorithm
    if a.speculative_draft_model_path is None:
        raise RefusedError(f"{name} speculation needs --speculative-draft-model-path", f"{_HOOK}:285 at 0.5.21")
    if name == "DFLASH":
        _check_dflash(a, site)
        block, extra, fallback = a.speculative_dflash_block_size, 0, _DFLASH_BLOCK
        own = a.draft_model and a.draft_model.block_size
    else:
        _check_dspark(a, site)
        block, extra, fallback = a.speculative_dspark_block_size, 1, _DSPARK_BLOCK
        own = a.draft_model and a.draft_model.dspark_block_size
        block = block or own
    drafts = a.speculative_num_draft_tokens
    if block is not None and drafts is not None and drafts != block + extra:
        raise RefusedError(
            f"--speculative-num-draft-tokens {drafts} does not match the {name} block of {block}",
            f"{_HOOK}:333-345, 726-737 at 0.5.21",
        )
    if drafts is None:
        if block is None and a.draft_model is None:
            a.warnings.append(f"{name}: the draft's own block size is not known; the engine's {fallback} is assumed")
        a.speculative_num_draft_tokens = (block or own or fallback) + extra
        a.because["speculative_num_draft_tokens"] = _BLOCK
    if name == "DSPARK" and (a.speculative_num_draft_tokens or 0) < 2:
        raise RefusedError("DSPARK verifies at least two tokens at once", f"{_HOOK}:747 at 0.5.21")
    window, least = a.speculative_draft_window_size, a.speculative_num_draft_tokens or 0
    if name == "DFLASH" and window is not None and window < least:
        raise RefusedError(
            f"--speculative-draft-window-size {window} is smaller than the {least} tokens verified at once",
            f"{_HOOK}:327 at 0.5.20",
        )
    a.speculative_num_steps = a.speculative_eagle_topk = 1
    a.because["speculative_num_steps"] = a.because["speculative_eagle_topk"] = _ONE


def _check_dflash(a: Arguments, site: Site) -> None:
    if a.enable_dp_attention and not (site.profile.dflash_with_attention_dp and a.enable_dp_lm_head):
        what = "needs --enable-dp-lm-head with attention DP"
        if not site.profile.dflash_with_attention_dp:
            what = f"does not run with attention DP here; {site.profile.otherwise(dflash_with_attention_dp=True)}"
        raise RefusedError(f"DFLASH speculation {what}", f"{_HOOK}:274 at 0.5.21, :303 at 0.5.23")
    if a.enable_dp_attention and a.attn_cp_size > 1:
        raise RefusedError("DFLASH with attention DP does not run with prefill CP", f"{_HOOK}:305 at 0.5.23")
    if a.pp_size > 1:
        raise RefusedError("DFLASH speculation runs without pipeline stages only", f"{_HOOK}:280-283 at 0.5.21")


def _check_dspark(a: Arguments, site: Site) -> None:
    if a.enable_dp_attention and not a.enable_dp_lm_head:
        raise RefusedError("DSPARK with attention DP needs --enable-dp-lm-head", f"{_HOOK}:592-594 at 0.5.21")
    if a.pp_size > 1 and not (site.profile.pipeline_speculation and a.disaggregation_mode == "prefill"):
        raise RefusedError(
            "DSPARK speculation runs with pipeline stages on a PD prefill server only, and not before 0.5.21",
            f"{_HOOK}:631 at 0.5.21, :566 at 0.5.20",
        )


def _check_decode_radix(a: Arguments, site: Site, name: str) -> None:
    if a.disaggregation_mode != "decode" or not a.disaggregation_decode_enable_radix_cache:
        return
    if name not in site.profile.decode_radix_speculation.split():
        raise RefusedError(
            f"--disaggregation-decode-enable-radix-cache does not run with {name} speculation in this release; "
            + site.profile.otherwise(decode_radix_speculation=name),
            "arg_groups/pd_disaggregation_hook.py:97-102 at 0.5.21 (speculative_hook.py:163-172 at 0.5.23)",
        )
