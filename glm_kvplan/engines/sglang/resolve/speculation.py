"""Speculative decoding: what the algorithm's name, steps, top-k and draft tokens become."""

from glm_kvplan.engines.sglang.resolve import draft_config
from glm_kvplan.engines.sglang.resolve.arguments import Arguments, Reason, Site
from glm_kvplan.errors import InputError, RefusedError

_ALIAS = Reason(
    "NEXTN is EAGLE with the checkpoint's own draft layer", "arg_groups/speculative_hook.py:81-118 at 0.5.23"
)
_REQUESTS = Reason("speculation is on and none was given", "arg_groups/speculative_hook.py:1086-1095 at 0.5.23")
_DEFAULTS = Reason("the engine's choice for this model", "arg_groups/speculative_hook.py:1430-1461 at 0.5.23")
_STEPS_PLUS_ONE = Reason(
    "top-k 1 verifies one token more than it drafts", "arg_groups/speculative_hook.py:1255-1267 at 0.5.23"
)
_ADAPTIVE = Reason(
    "the middle of the adaptive candidates 0, 1, 3, 5, 7", "arg_groups/speculative_hook.py:1374-1427 at 0.5.23"
)
_ADAPTIVE_OFF = Reason(
    "needs EAGLE or EAGLE3 with top-k 1, without attention DP", "speculative/adaptive_spec_params.py:57-104 at 0.5.23"
)
_LARGEST = Reason("room for the largest adaptive candidate, 7 steps", "speculative/spec_info.py:268-289 at 0.5.23")
_STRAY = Reason("given without an algorithm: buffers are sized by it", "speculative/spec_info.py:268-289 at 0.5.23")
_BLOCK = Reason("the block the draft model verifies at once", "arg_groups/speculative_hook.py:369-424 at 0.5.23")
_ONE = Reason("block drafts take one step of one branch", "arg_groups/speculative_hook.py:336-364 at 0.5.23")
_STATES_ONLY = Reason(
    "it names the hidden states to return; nothing speculates", "arg_groups/validation_hook.py:697-754 at 0.5.23"
)

_CANDIDATES = (0, 1, 3, 5, 7)  # DEFAULT_ADAPTIVE_CONFIG, speculative/adaptive_spec_params.py:28-53 at 0.5.23
_RUNNING_REQUESTS = 48
_DFLASH_BLOCK, _DSPARK_BLOCK = 16, 7
_NGRAM = "NGRAM"
_MODELLED = ("EAGLE", "EAGLE3", "STANDALONE", "DFLASH", "DSPARK")
_STEPPED = ("EAGLE", "EAGLE3", "STANDALONE")  # draft token by token; the others a block at once
_PAGED_TREES = ("flashinfer", "fa3", "triton")


def states_only(a: Arguments) -> None:
    """Where hidden states are returned the algorithm names which, and nothing speculates; before all other rules."""
    if a.given.get("enable_return_aux_hidden_states") and a.speculative_algorithm is not None:
        a.speculative_algorithm = None
        a.because["speculative_algorithm"] = _STATES_ONLY


def speculation(a: Arguments, site: Site) -> None:
    """Resolve the speculative flags, last but for the checks: nothing before it sees 48 requests or 4 drafts.

    Source: arg_groups/speculative_hook.py:120-270, 1072-1282, 1374-1461 at 0.5.23.
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
            "arg_groups/speculative_hook.py:1361 at 0.5.23",
        )
    if name not in _MODELLED:
        raise InputError(
            f"--speculative-algorithm {a.speculative_algorithm[:40]!r} is not modelled; these are: "
            f"NEXTN, {', '.join(_MODELLED)}; the model's own MTP layer is EAGLE"
        )
    a.speculative_algorithm = name
    _check_decode_radix(a, site, name)
    draft_config.find(a, site)
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
    draft_config.check(a, site)
    draft_config.cache_dtype(a, site)


def _stray_drafts(a: Arguments) -> None:
    """Draft tokens without an algorithm size buffers all the same, although nothing speculates.

    Source: speculative/spec_info.py:268-289, mem_cache/kv_cache_configurator.py:1721-1734 at 0.5.23.
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
            "arg_groups/speculative_hook.py:1417 at 0.5.23",
        )


def _eagle(a: Arguments) -> None:
    if a.speculative_algorithm == "STANDALONE" and a.enable_dp_attention:
        raise RefusedError(
            "STANDALONE speculation does not run with attention DP",
            "arg_groups/speculative_hook.py:1077-1084 at 0.5.23",
        )
    if a.speculative_num_steps is None:
        if a.speculative_eagle_topk is not None or a.speculative_num_draft_tokens is not None:
            raise RefusedError(
                "speculative top-k or draft tokens without --speculative-num-steps: give all three or none",
                "arg_groups/speculative_hook.py:1162 at 0.5.23",
            )
        a.speculative_num_steps, a.speculative_eagle_topk, a.speculative_num_draft_tokens = 3, 1, 4
        for name in ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens"):
            a.because[name] = _DEFAULTS
    if a.speculative_eagle_topk is None:
        raise RefusedError(
            "--speculative-num-steps without --speculative-eagle-topk stops the engine: give all three or none",
            "arg_groups/speculative_hook.py:1274 at 0.5.23",
        )
    if a.speculative_eagle_topk == 1:
        if a.speculative_num_draft_tokens != a.speculative_num_steps + 1:
            a.speculative_num_draft_tokens = a.speculative_num_steps + 1
            a.because["speculative_num_draft_tokens"] = _STEPS_PLUS_ONE
    elif (a.page_size or 1) > 1 and a.attention_backend not in _PAGED_TREES:
        raise RefusedError(
            f"--speculative-eagle-topk {a.speculative_eagle_topk}: this model's paged sparse attention takes top-k 1",
            "arg_groups/speculative_hook.py:1273-1282 at 0.5.23",
        )
    elif a.speculative_num_draft_tokens is None:
        raise RefusedError(
            "--speculative-eagle-topk above 1 needs --speculative-num-draft-tokens: the engine ends without them as it "
            "sizes the state",
            "mem_cache/kv_cache_configurator.py:3299-3300 at 0.5.23",
        )


def _check_own_draft(a: Arguments, site: Site, name: str) -> None:
    """The checkpoint's own draft is one MTP layer; the engine stops while it loads any other number."""
    layers = site.geometry.num_nextn_predict_layers
    if name == "EAGLE" and a.speculative_draft_model_path is None and layers != 1:
        raise RefusedError(
            f"{name} speculation drafts with one MTP layer of the checkpoint, and this one has {layers} "
            "(num_nextn_predict_layers); leave it out or give --speculative-draft-model-path",
            "models/glm5_next.py:1682-1691 at 0.5.23",
        )


def _block_draft(a: Arguments, site: Site) -> None:
    name = a.speculative_algorithm
    if a.speculative_draft_model_path is None:
        raise RefusedError(
            f"{name} speculation needs --speculative-draft-model-path", "arg_groups/speculative_hook.py:324 at 0.5.23"
        )
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
            "arg_groups/speculative_hook.py:372-384, 824-835 at 0.5.23",
        )
    if drafts is None:
        if block is None and a.draft_model is None:
            a.warnings.append(f"{name}: the draft's own block size is not known; the engine's {fallback} is assumed")
        a.speculative_num_draft_tokens = (block or own or fallback) + extra
        a.because["speculative_num_draft_tokens"] = _BLOCK
    if name == "DSPARK" and (a.speculative_num_draft_tokens or 0) < 2:
        raise RefusedError(
            "DSPARK verifies at least two tokens at once", "arg_groups/speculative_hook.py:845 at 0.5.23"
        )
    window, least = a.speculative_draft_window_size, a.speculative_num_draft_tokens or 0
    if name == "DFLASH" and window is not None and window < least:
        raise RefusedError(
            f"--speculative-draft-window-size {window} is smaller than the {least} tokens verified at once",
            "arg_groups/speculative_hook.py:430 at 0.5.23",
        )
    a.speculative_num_steps = a.speculative_eagle_topk = 1
    a.because["speculative_num_steps"] = a.because["speculative_eagle_topk"] = _ONE


def _check_dflash(a: Arguments, site: Site) -> None:
    if a.enable_dp_attention and not (site.profile.dflash_with_attention_dp and a.enable_dp_lm_head):
        what = "needs --enable-dp-lm-head with attention DP"
        if not site.profile.dflash_with_attention_dp:
            what = f"does not run with attention DP here; {site.profile.otherwise(dflash_with_attention_dp=True)}"
        raise RefusedError(f"DFLASH speculation {what}", "arg_groups/speculative_hook.py:274 at 0.5.21, :303 at 0.5.23")
    if a.enable_dp_attention and a.attn_cp_size > 1:
        raise RefusedError(
            "DFLASH with attention DP does not run with prefill CP", "arg_groups/speculative_hook.py:305 at 0.5.23"
        )
    if a.pp_size > 1:
        raise RefusedError(
            "DFLASH speculation runs without pipeline stages only", "arg_groups/speculative_hook.py:319-322 at 0.5.23"
        )


def _check_dspark(a: Arguments, site: Site) -> None:
    if a.enable_dp_attention and not a.enable_dp_lm_head:
        raise RefusedError(
            "DSPARK with attention DP needs --enable-dp-lm-head", "arg_groups/speculative_hook.py:674-676 at 0.5.23"
        )
    if a.pp_size > 1 and not (site.profile.pipeline_speculation and a.disaggregation_mode == "prefill"):
        raise RefusedError(
            "DSPARK speculation runs with pipeline stages on a PD prefill server only, and not before 0.5.21",
            "arg_groups/speculative_hook.py:713-718 at 0.5.23, :565-568 at 0.5.20",
        )


def _check_decode_radix(a: Arguments, site: Site, name: str) -> None:
    if a.disaggregation_mode != "decode" or not a.disaggregation_decode_enable_radix_cache:
        return
    if name not in site.profile.decode_radix_speculation.split():
        raise RefusedError(
            f"--disaggregation-decode-enable-radix-cache does not run with {name} speculation in this release; "
            + site.profile.otherwise(decode_radix_speculation=name),
            "arg_groups/pd_disaggregation_hook.py:97-102 at 0.5.21, arg_groups/speculative_hook.py:163-172 at 0.5.23",
        )
