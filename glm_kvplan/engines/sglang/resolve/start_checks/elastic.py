"""Start-up checks of elastic expert parallelism: its options together, and a server that more ranks may join."""

from glm_kvplan.engines.sglang.resolve.start_checks.start_check import Check, Launch


def _elastic(a: Launch) -> bool:
    """Options of elastic expert parallelism that stand without the one they belong to."""
    joins = a.elastic_ep_join_mode
    alone = (joins is not None or a.max_ep_size is not None) and a.elastic_ep_backend is None
    rank = a.elastic_ep_join_rank_offset != 0 and joins != "scale"
    scale = joins == "scale" and (a.node_rank != 1 or a.elastic_ep_join_rank_offset <= 0)
    return bool(
        alone
        or rank
        or scale
        or (a.max_ep_size is not None and a.max_ep_size <= 0)
        or (a.elastic_ep_initial_size is not None and not _grows(a))
        or (a.elastic_ep_backend is not None and a.pp_size > 1)
    )


def _grows(a: Launch) -> bool:
    """The server may be joined by more ranks than it starts with."""
    return a.elastic_ep_backend is not None and a.max_ep_size is not None and bool(a.max_ep_size > a.tp_size)


def _joins_wrongly(a: Launch) -> bool:
    """What a joining group, or the group that is joined, says of the sizes."""
    first, offset = a.elastic_ep_initial_size, a.elastic_ep_join_rank_offset
    if a.elastic_ep_join_mode != "scale":
        return first not in (None, a.tp_size)
    if first is None or first <= 0 or first > offset or offset + a.tp_size > a.max_ep_size:
        return True
    return bool(a.tp_size == 1 and a.moe_dense_tp_size != 1)


def _growth_wants(a: Launch) -> bool:
    """Everything that a server which may grow needs, or does without, in every release."""
    balance = a.load_balance_method
    uneven = a.disaggregation_mode == "prefill" if balance == "auto" else balance != "round_robin"
    return bool(
        _joins_wrongly(a)
        or a.elastic_ep_scale_timeout <= 0
        or a.tokenizer_worker_num != 1
        or a.use_ray
        or a.enable_elastic_expert_backup
        or uneven
        or a.elastic_ep_backend != "mooncake"
        or a.prefill_graph != "disabled"
        or not a.enable_dp_attention
        or not a.enable_dp_lm_head
        or a.attn_cp_size > 1
        or a.ep_size != a.tp_size
        or a.moe_a2a_backend != "nixl"
    )


def _recaptures_wrongly(a: Launch) -> bool:
    """Decode graphs are captured again after growth: whole ones, and nothing beside plain decoding."""
    if a.decode_graph != "full":
        return bool(a.decode_graph != "disabled")
    beside = (a.speculative_algorithm, a.is_embedding, a.dllm_algorithm, a.encoder_only, a.forward_hooks)
    return a.site.gpu.vendor != "cuda" or any(beside) or bool(a.enable_pdmux)


def _replicas_break(a: Launch) -> bool:
    """Sizes are whole attention groups, whose dense layers are not split."""
    inside = a.tp_size // (a.attn_dp_size * a.attn_cp_size)
    sizes = [a.max_ep_size, a.elastic_ep_initial_size or a.tp_size]
    sizes += [a.elastic_ep_join_rank_offset] if a.elastic_ep_join_mode == "scale" else []
    return bool(
        any(size % (inside * a.attn_cp_size) for size in sizes)
        or (inside > 1 and a.moe_dense_tp_size != 1)
        or inside % a.dcp_size
    )


CHECKS = (
    Check(
        "elastic",
        _elastic,
        "options of elastic expert parallelism do not fit together",
        "arg_groups/parallel_hook.py:520-578 at 0.5.23",
    ),
    Check(
        "elastic_growth",
        lambda a: _grows(a) and _growth_wants(a),
        "--max-ep-size {a.max_ep_size} above --tp-size {a.tp_size} (a server that more ranks may join) needs the "
        "mooncake backend, attention DP with --enable-dp-lm-head, --moe-a2a-backend nixl, no prefill graph, "
        "round_robin balance and sizes that fit; no pipeline stages, context or MoE parallelism, expert backup, Ray "
        "nor several tokenizers",
        "arg_groups/parallel_hook.py:583-750 at 0.5.23",
    ),
    Check(
        "elastic_graphs",
        lambda a: _grows(a) and a.decode_graph != "disabled",
        "--max-ep-size {a.max_ep_size} above --tp-size {a.tp_size} runs without decode graphs here",
        "arg_groups/parallel_hook.py:501-510 at 0.5.20",
    ),
    Check(
        "elastic_recapture",
        lambda a: _grows(a) and _recaptures_wrongly(a),
        "--max-ep-size {a.max_ep_size} above --tp-size {a.tp_size} takes full decode graphs or none; full ones without "
        "speculation, embeddings, forward hooks and PD multiplexing",
        "arg_groups/parallel_hook.py:692-722 at 0.5.23",
    ),
    Check(
        "elastic_one_group",
        lambda a: _grows(a) and a.attn_dp_size != a.tp_size,
        "--max-ep-size {a.max_ep_size} above --tp-size {a.tp_size} needs an attention group of one GPU each",
        "arg_groups/parallel_hook.py:679-682 at 0.5.22",
    ),
    Check(
        "elastic_replicas",
        lambda a: _grows(a) and _replicas_break(a),
        "--max-ep-size {a.max_ep_size} above --tp-size {a.tp_size}: sizes must be whole attention groups, groups of "
        "several GPUs need --moe-dense-tp-size 1, and --dcp-size must divide them",
        "arg_groups/parallel_hook.py:583-616, 685-690 at 0.5.23",
    ),
)
