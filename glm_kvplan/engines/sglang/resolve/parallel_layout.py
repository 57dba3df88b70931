"""How the ranks of a stage are divided: tensor, attention-data, context and expert parallelism."""

from glm_kvplan.engines.sglang.resolve.arguments import Arguments, Reason, Site, switched_on
from glm_kvplan.errors import RefusedError

_GROUPS = Reason(
    "--dp-size with --enable-dp-attention splits attention into {a.attn_dp_size} groups, one request each at a time",
    "runtime_context.py:73-76 at 0.5.23",
)
_REWRITTEN = Reason(
    "--dp-size with --enable-dp-attention is read as --attn-dp-size {a.attn_dp_size}, one engine",
    "arg_groups/parallel_hook.py:39-60 at 0.5.23",
)
_ON = Reason("attention runs in {a.attn_dp_size} groups", "server_args.py:316-330 at 0.5.23")
_JOINS = Reason("these ranks join a server of attention groups", "runtime_context.py:190-199 at 0.5.23")
_ONE_GROUP = Reason(
    "one attention group is no attention DP: the flag is cleared", "arg_groups/overrides.py:1367-1370 at 0.5.23"
)
_CONTEXT_WIDTH = Reason(
    "prefill CP spans every rank of an attention group",
    "arg_groups/model_overrides/deepseek_v2.py:126-134 at 0.5.23",
)
_ALL_EXPERTS = Reason(
    "{a.moe_a2a_backend} spreads the experts over the whole TP group", "arg_groups/overrides.py:1611-1620 at 0.5.23"
)
_MEGAMOE = Reason("--moe-runner-backend megamoe is an exchange", "arg_groups/mega_moe_hook.py:258-276 at 0.5.23")
_WATERFILL = Reason("--enable-waterfill balances over deepep or megamoe", "arg_groups/overrides.py:1592-1607 at 0.5.23")
_ASCEND = Reason("ascend_tp is no exchange of its own", "arg_groups/moe_hook.py:463-469 at 0.5.23")
_ZIGZAG = Reason("zigzag prefill CP needs deepep", "arg_groups/model_overrides/deepseek_v2.py:115-122 at 0.5.23")
_CHUNK = Reason(
    "{a.undivided_chunk_size} divided by {a.attn_dp_size} attention groups",
    "arg_groups/parallel_hook.py:327-331 at 0.5.23",
)

_NORMAL_DISPATCH = Reason("deepep's normal dispatch runs without graphs", "arg_groups/moe_hook.py:383-398 at 0.5.23")
_DWDP = Reason(
    "--dwdp-size fetches experts from the ranks that hold them", "arg_groups/parallel_hook.py:462-507 at 0.5.23"
)
_EXPERT_SPANNING = frozenset(
    (
        *("megamoe", "deepep", "deepep_v2", "mooncake", "nixl", "mori", "pplx"),
        *("ascend_fuseep", "flashinfer"),
    )
)


def attention_groups(a: Arguments, site: Site) -> None:
    """Turn the release's data-parallel flags into an attention-DP width and a number of engine replicas.

    Source: arg_groups/parallel_hook.py:39-60 at 0.5.23; before, dp_size counts the groups
    (runtime_context.py:73-78 at 0.5.21). Experts that are fetched from their ranks (DWDP) make each rank a group of its
    own, without graphs (arg_groups/parallel_hook.py:462-507 at 0.5.23).
    """
    fetched = a.given.get("dwdp_size", 1)
    if isinstance(fetched, int) and fetched > 1:
        a.dp_size = a.ep_size = fetched
        a.attn_dp_size = a.moe_dp_size = a.moe_dense_tp_size = 1
        a.enable_dp_attention = a.enable_dp_lm_head = a.disable_cuda_graph = True
        a.moe_a2a_backend = "none"
        a.because["ep_size"] = a.because["moe_a2a_backend"] = a.because["moe_dense_tp_size"] = _DWDP
    if site.profile.attention_dp_size_flag:
        if a.enable_dp_attention and a.attn_dp_size == 1:
            a.attn_dp_size, a.dp_size = a.dp_size, 1
            a.because["attn_dp_size"] = a.because["dp_size"] = _REWRITTEN
        a.enable_dp_attention = a.attn_dp_size > 1 or _joins(a)
        if a.enable_dp_attention:
            a.because["enable_dp_attention"] = _JOINS if a.attn_dp_size == 1 else _ON
        a.replicas = a.dp_size
    else:
        if a.enable_dp_attention:
            a.attn_dp_size = a.dp_size
            a.because["attn_dp_size"] = _GROUPS
        a.replicas = 1 if a.enable_dp_attention else a.dp_size


def _joins(a: Arguments) -> bool:
    """Whether these ranks join a server that runs: attention DP all the same, be they one group."""
    return a.given.get("elastic_ep_join_mode") == "scale"


def expert_exchange(a: Arguments, site: Site) -> None:
    """The expert kernels named megamoe are an expert exchange, before anything reads either."""
    if a.moe_runner_backend == "megamoe":
        a.moe_runner_backend, a.moe_a2a_backend = "auto", "megamoe"
        a.because["moe_a2a_backend"] = _MEGAMOE


def decode_context_parallel(a: Arguments, site: Site) -> None:
    """Decode context parallelism: refused where pooled index keys would span ranks, unwired before."""
    if a.dcp_size == 1:
        return
    if site.profile.decode_context_parallel_refused:
        raise RefusedError(
            f"--dcp-size {a.dcp_size}: a pooled index key (index_kpool {site.geometry.index_kpool}) would span decode "
            f"context-parallel ranks; drop it, or, {site.profile.otherwise(decode_context_parallel_refused=False)}",
            "arg_groups/model_overrides/deepseek_v2.py:163-168 at 0.5.23",
        )
    a.warnings.append(
        "--dcp-size: this release neither refuses decode context parallelism for this model nor wires its index "
        "pool for it; the numbers below are those without it"
    )


def context_parallel(a: Arguments, site: Site) -> None:
    """The widths and backends that prefill context parallelism forces.

    Source: arg_groups/model_overrides/deepseek_v2.py:105-143 at 0.5.23.
    """
    if not a.enable_prefill_cp:
        return
    if site.gpu.vendor != "cuda":
        raise RefusedError("--enable-prefill-cp: not on ROCm", "arg_groups/parallel_hook.py:821-827 at 0.5.23")
    if a.tp_size > 8:
        raise RefusedError(
            f"--enable-prefill-cp stays on one machine: --tp-size {a.tp_size} is above 8",
            "arg_groups/model_overrides/deepseek_v2.py:123-125 at 0.5.23",
        )
    if site.profile.context_parallel_shards_state:
        if a.attn_dp_size > 1 and a.dp_size > 1:
            raise _replicas_and_groups(a)
        a.attn_dp_size, a.dp_size, a.replicas = a.attn_dp_size * a.dp_size, 1, 1
        a.enable_dp_attention = a.attn_dp_size > 1
        keep_width = a.cp_strategy == "interleave" and a.attn_cp_size > 1
    else:
        if a.cp_strategy != "zigzag" and a.dp_size != 1:
            raise RefusedError(
                "--cp-strategy interleave does not run with attention DP",
                "arg_groups/model_overrides/deepseek_v2.py:97-100 at 0.5.21",
            )
        a.enable_dp_attention, a.attn_dp_size, a.replicas = True, a.dp_size, 1
        keep_width = False
    if a.cp_strategy == "zigzag":
        a.moe_a2a_backend, a.ep_size = "deepep", a.tp_size
        a.because["moe_a2a_backend"] = a.because["ep_size"] = _ZIGZAG
    if not keep_width:
        a.attn_cp_size = a.tp_size // a.attn_dp_size
        a.because["attn_cp_size"] = _CONTEXT_WIDTH


def divide_attention_groups(a: Arguments, site: Site) -> None:
    """Check the attention groups, and share the prefill chunk out among them.

    Source: arg_groups/parallel_hook.py:245-355 at 0.5.23, :285-367 at 0.5.23.
    """
    if site.profile.attention_dp_size_flag and a.attn_dp_size > 1 and a.dp_size > 1:
        raise _replicas_and_groups(a)
    a.undivided_chunk_size = a.chunked_prefill_size or 0
    if a.attn_dp_size == 1:
        if a.enable_dp_attention and not _joins(a):
            a.enable_dp_attention = False
            a.because["enable_dp_attention"] = _ONE_GROUP
        return
    if a.tp_size % a.attn_dp_size:
        raise RefusedError(
            f"--tp-size {a.tp_size} does not divide into {a.attn_dp_size} attention groups",
            "arg_groups/parallel_hook.py:326 at 0.5.23",
        )
    chunk = a.chunked_prefill_size = a.undivided_chunk_size // a.attn_dp_size
    a.because["chunked_prefill_size"] = _CHUNK
    most = a.prefill_graph_max_bs
    clamps = a.prefill_graph != "disabled" and not a.prefill_graph_max_bs_chosen
    if clamps and most is not None and most > chunk:
        a.prefill_graph_max_bs = chunk


def _replicas_and_groups(a: Arguments) -> RefusedError:
    return RefusedError(
        f"--dp-size {a.dp_size} with --attn-dp-size {a.attn_dp_size}: replicas of an engine that also splits "
        "attention are not supported; give one of them",
        "arg_groups/parallel_hook.py:287-293 at 0.5.23",
    )


def share_context_parallel_groups(a: Arguments, site: Site) -> None:
    """Check the context-parallel groups; in releases that share them with TP, shard the KDA state over TP.

    Source: arg_groups/parallel_hook.py:96-201, arg_groups/cp_tp_group_sharing_hook.py:27-119 at 0.5.23.
    """
    if a.enable_prefill_cp and site.profile.context_parallel_shards_state and a.attn_cp_size > 1:
        _share_groups(a, site)
    if a.enable_prefill_cp and a.cp_strategy is None:
        raise RefusedError(
            "--enable-prefill-cp needs --cp-strategy interleave", "arg_groups/parallel_hook.py:152 at 0.5.23"
        )
    source = "arg_groups/parallel_hook.py:157-191 at 0.5.23"
    groups = a.attn_dp_size if site.profile.attention_dp_size_flag else a.dp_size
    if a.attn_cp_size > 1 and (a.tp_size % a.attn_cp_size or a.tp_size % (groups * a.attn_cp_size)):
        raise RefusedError(
            f"--tp-size {a.tp_size} does not divide into {groups} x {a.attn_cp_size} attention-DP x CP ranks", source
        )
    if a.moe_dp_size > 1:
        if a.tp_size % a.moe_dp_size or a.ep_size * a.moe_dp_size > a.tp_size:
            raise RefusedError(
                f"--moe-dp-size {a.moe_dp_size}, --ep-size {a.ep_size}: do not fit in --tp-size {a.tp_size}", source
            )
        if a.pp_size > 1 or (a.ep_size > 1 and a.ep_size * a.moe_dp_size != a.tp_size):
            raise RefusedError("--moe-dp-size: ep x moe-dp must be tp, without pipeline stages", source)
        if a.attn_cp_size != a.moe_dp_size:
            raise RefusedError("--moe-dp-size: only as wide as --attn-cp-size, or 1", source)


def _share_groups(a: Arguments, site: Site) -> None:
    source = "arg_groups/cp_tp_group_sharing_hook.py:41-119 at 0.5.23"
    refused = None
    if a.attn_cp_size != a.tp_size:
        refused = f"the CP group must be the TP group: --attn-cp-size {a.attn_cp_size} is not --tp-size {a.tp_size}"
    elif a.cp_strategy != "interleave":
        refused = "this model takes --cp-strategy interleave only"
    elif a.speculative_algorithm is not None and not _speculation_shares(a, site):
        refused = "speculation must be the checkpoint's own draft layer (EAGLE or NEXTN, top-k 1)"
    elif a.enable_dsa_cache_layer_split or a.dcp_size > 1 or a.enable_mixed_chunk or a.moe_dp_size > 1:
        refused = "no cache layer split, decode CP, mixed chunks or expert copies beside it"
    elif a.disaggregation_mode != "null" and not _role_shares(a, site):
        refused = "not with PD disaggregation"
    elif a.disaggregation_mode == "prefill" and switched_on(site.environment, "SGLANG_DISAGG_STAGING_BUFFER"):
        refused = "not with SGLANG_DISAGG_STAGING_BUFFER"
    elif site.geometry.linear_num_heads % a.tp_size:
        refused = f"{site.geometry.linear_num_heads} KDA heads do not divide by --tp-size {a.tp_size}"
    if refused:
        raise RefusedError(f"--enable-prefill-cp: {refused}", source)
    a.linear_attn_tp_size = a.tp_size


def _speculation_shares(a: Arguments, site: Site) -> bool:
    name = (a.speculative_algorithm or "").upper()
    if name == "DFLASH":
        return site.profile.context_parallel_dflash
    own_layer = a.speculative_draft_model_path is None and a.speculative_eagle_topk in (None, 1)
    return name in ("EAGLE", "NEXTN") and own_layer


def _role_shares(a: Arguments, site: Site) -> bool:
    return (
        site.profile.context_parallel_dflash
        and a.disaggregation_mode == "prefill"
        and a.disaggregation_transfer_backend == "mooncake"
        and a.speculative_algorithm == "DFLASH"
        and (a.pp_size, a.dp_size, a.ep_size) == (1, 1, 1)
    )


def expert_ranks(a: Arguments, site: Site) -> None:
    """Expert parallelism: an all-to-all backend spans the TP group whatever --ep-size says."""
    if a.moe_a2a_backend == "ascend_tp":
        a.moe_a2a_backend = "none"
        a.because["moe_a2a_backend"] = _ASCEND
    if a.enable_waterfill and a.moe_a2a_backend not in ("deepep", "megamoe"):
        a.moe_a2a_backend = "deepep"
        a.because["moe_a2a_backend"] = _WATERFILL
    if a.moe_a2a_backend in _EXPERT_SPANNING:
        a.ep_size = a.tp_size
        a.because["ep_size"] = _ALL_EXPERTS
    if a.moe_a2a_backend == "deepep" and a.given.get("deepep_mode") == "normal":
        a.decode_graph = a.prefill_graph = "disabled"
        a.because["decode_graph"] = a.because["prefill_graph"] = _NORMAL_DISPATCH
    if a.tp_size % (a.ep_size * a.moe_dp_size):
        raise RefusedError(
            f"--ep-size {a.ep_size}: --tp-size {a.tp_size} does not divide by it",
            "distributed/parallel_state.py:2874 at 0.5.23",
        )


def check_layout(a: Arguments, site: Site) -> None:
    """The checks on the finished layout, and what the shapes of this checkpoint ask of it.

    Source: arg_groups/validation_hook.py:119-249, configs/mamba_utils.py:337-349 at 0.5.23 (head division).
    """
    geometry = site.geometry
    if a.tp_size * a.pp_size % a.nnodes:
        raise RefusedError(
            f"--tp-size {a.tp_size} x --pp-size {a.pp_size} ranks do not divide over --nnodes {a.nnodes}",
            "arg_groups/validation_hook.py:179 at 0.5.23",
        )
    if a.replicas > 1 and a.nnodes > 1:
        raise RefusedError(
            "--dp-size over several nodes needs attention DP", "arg_groups/validation_hook.py:199-202 at 0.5.23"
        )
    if a.moe_dense_tp_size not in (None, 1, a.tp_size):
        raise RefusedError(
            f"--moe-dense-tp-size {a.moe_dense_tp_size}: only 1 or --tp-size",
            "arg_groups/validation_hook.py:207 at 0.5.23",
        )
    attention_tp = a.tp_size // a.attn_dp_size // a.attn_cp_size
    if a.linear_attn_tp_size == 1:
        a.linear_attn_tp_size = attention_tp
    for heads, ranks, kind in (
        (geometry.num_attention_heads, attention_tp, "attention"),
        (geometry.linear_num_heads, a.linear_attn_tp_size, "KDA"),
    ):
        if heads % ranks:
            raise RefusedError(
                f"{heads} {kind} heads do not divide over {ranks} ranks", "configs/mamba_utils.py:347-350 at 0.5.23"
            )
