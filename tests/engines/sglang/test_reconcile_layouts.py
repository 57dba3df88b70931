"""Boots with HiCache, PD roles, pipeline stages, attention DP and replicas."""

from pathlib import Path

from boots import edited, held, printed, read_log

from glm_kvplan.engines.boot_logs import BesideLog
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.boot_log.plan_file import plan_document
from glm_kvplan.engines.sglang.boot_log.reconciliation import reconcile
from glm_kvplan.engines.sglang.sizing.solver import attempt
from glm_kvplan.units import GIB


def test_an_automatic_ratio_is_held_between_its_printed_ends() -> None:
    """0.5.21 at ratio 1.234 (printed with three decimals): 2,561,600 or so tokens, whole pages plus one."""
    name = "example-a-0.5.21"
    tokens = (int(2076032 * 1.2341) // 64 + 1) * 64
    slots = int(159 * 1.2341) + 1
    line = "HiCache auto-sizing: ratio 2.000 -> 1.234; 90.0 GiB host memory per rank "
    line += "(fraction 0.80, 8 ranks on this host), host pools 55.0 GiB."
    edits = (
        ("'hicache_host_memory_fraction': None", "'hicache_host_memory_fraction': 0.8"),
        ("4152128 tokens, 46.77 GB", f"{tokens} tokens, {tokens * 11 * 1024 / 1e9:.2f} GB"),
        ("Allocating 47.09 GB", f"Allocating {slots * 147_619_840 / 1e9:.2f} GB"),
        ("Attached hybrid", f"{line}\n[2026-05-14 08:12:00 DP0 TP0] Attached hybrid"),
    )
    assert edited(name, *edits).explained
    far = edited(name, *edits[:1], *edits[2:])
    assert far.first_unexplained is not None
    assert far.first_unexplained.name == "host KV tokens"


def test_hicache_off_by_the_flags_but_on_in_the_log() -> None:
    answer = edited("example-a-0.5.21", ("'enable_hierarchical_cache': True", "'enable_hierarchical_cache': False"))
    assert answer.first_unexplained is not None
    row = answer.first_unexplained
    assert (row.name, row.predicted, row.printed, row.basis) == ("HiCache", "off", "on", "flags")


def decode_log(slots: int) -> list[str]:
    """A PD decode server of 32 requests, TP8: 64 more rows for transfers, so 96 slots where 32 were sized."""
    arguments = {
        "tp_size": 8,
        "kv_cache_dtype": "bfloat16",
        "dsa_prefill_backend": "flashmla_sparse",
        "dsa_decode_backend": "fa3",
        "mem_fraction_static": 0.9,
        "max_running_requests": 32,
        "disable_radix_cache": True,
        "mamba_radix_cache_strategy": "auto",
        "disaggregation_mode": "decode",
        "disaggregation_decode_extra_slots": 64,
    }
    conv, ssm = (34 * (slots + 1) * layer // 8 / GIB for layer in (147456, 4194304))
    messages = (
        "mamba_size (32) is less than decode side's max_slots_needed (96 = 96 reqs * 1 slots/req), "
        "raising effective_mamba_size to 96",
        f"Mamba Cache is allocated. max_mamba_cache_size: {slots}, conv_state size: {conv:.2f}GB, "
        f"ssm_state size: {ssm:.2f}GB ",
    )
    return [f"server_args={arguments!r}", *(f"[2026-05-14 08:11:02 TP0] {message}" for message in messages)]


def test_pd_decode_raises_its_slots_after_the_sizing() -> None:
    load = [
        "[2026-05-14 08:11:01 TP0] Load weight begin. avail mem=138.00 GB",
        "[2026-05-14 08:11:01 TP0] Load weight end. elapsed=1.00 s, type=Glm, avail mem=90.00 GB, mem usage=48.00 GB.",
    ]
    head, *rest = decode_log(96)
    answer = reconcile(read_log([head, *load, *rest])[0], BesideLog(engine="0.5.21"))
    assert answer.explained, answer.first_unexplained
    rows = printed(answer)
    assert rows["state pool slots"] == ("96", "96")
    assert rows["decode slots: requests"] == ("96", "96")
    basis = {row.name: row.basis for row in answer.rows}
    assert basis["decode slots: requests"] == "printed sizes" and basis["decode slots: slots per request"] == "flags"
    head, *rest = decode_log(32)
    answer = reconcile(read_log([head, *load, *rest])[0], BesideLog(engine="0.5.21"))
    assert answer.first_unexplained is not None
    assert answer.first_unexplained.name == "state pool slots"


def test_pipeline_stages_are_held_each_against_its_own_layers() -> None:
    """Two stages of TP4: layers 0-21 with 5 full-attention layers, 22-44 with 6; 64-token pages, bf16 rows."""
    arguments = {
        "tp_size": 4,
        "pp_size": 2,
        "kv_cache_dtype": "bfloat16",
        "dsa_prefill_backend": "flashmla_sparse",
        "dsa_decode_backend": "fa3",
        "mem_fraction_static": 0.8,
        "disable_overlap_schedule": True,
        "mamba_radix_cache_strategy": "extra_buffer",
        "max_mamba_cache_size": 40,
        "max_total_tokens": 100_096,
    }
    lines = [f"server_args={arguments!r}"]
    for stage, layers in enumerate((5, 6)):
        for rank in range(4):
            stamp = f"[2026-05-14 08:11:02 PP{stage} TP{rank}] "
            size = layers * (100_160 * 1024 + 1565 * 8448) / GIB
            lines += [
                f"{stamp}Load weight begin. avail mem=138.00 GB",
                f"{stamp}Load weight end. elapsed=1.00 s, type=Glm, avail mem=90.00 GB, mem usage=48.00 GB.",
                f"{stamp}Mamba Cache is allocated. max_mamba_cache_size: 40, "
                f"conv_state size: {17 * 41 * 36864 / GIB:.2f}GB, ssm_state size: {17 * 41 * 1048576 / GIB:.2f}GB ",
                f"{stamp}KV Cache is allocated. dtype: torch.bfloat16, #tokens: 100096, KV size: {size:.2f} GB",
            ]
    answer = reconcile(read_log(lines)[0], BesideLog(engine="0.5.21"))
    assert answer.explained, answer.first_unexplained
    sizes = [(row.rank, row.printed) for row in answer.rows if row.name == "token pool size"]
    assert [rank for rank, _ in sizes] == ["TP0", "PP1 TP0"]
    assert sizes[0][1] != sizes[1][1]


def test_replicas_are_sized_each_on_its_own_memory() -> None:
    """Plain data parallelism: two copies with different free memory print different sizes, and both are explained."""
    arguments = {
        "tp_size": 1,
        "dp_size": 2,
        "kv_cache_dtype": "bfloat16",
        "dsa_prefill_backend": "flashmla_sparse",
        "dsa_decode_backend": "fa3",
        "mem_fraction_static": 0.9,
        "max_mamba_cache_size": 40,
    }
    made = plan({"mem_fraction_static": 0.9, "max_mamba_cache_size": 40}, gpu="h200", engine="0.5.21")
    lines = [f"server_args={arguments!r}"]
    for copy, memory in enumerate((60.0, 61.0)):
        tokens = attempt(made, 138.0, memory).tokens
        size = 11 * ((tokens + 64) * 1024 + (tokens // 64 + 1) * 8448) / GIB
        lines += [
            f"[2026-05-14 08:11:02 DP{copy}] {message}"
            for message in (
                "Load weight begin. avail mem=138.00 GB",
                f"Load weight end. elapsed=1.00 s, type=Glm, avail mem={memory:.2f} GB, mem usage=48.00 GB.",
                f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {tokens}, KV size: {size:.2f} GB",
            )
        ]
    answer = reconcile(read_log(lines)[0], BesideLog(engine="0.5.21"))
    assert answer.explained, answer.first_unexplained
    assert {row.rank for row in answer.rows if row.name == "max_total_num_tokens"} == {"DP0", "DP1"}


def test_attention_dp_under_either_name() -> None:
    """The engine prints the width as dp_size up to 0.5.21 and as attn_dp_size from 0.5.22 on, the chunk divided."""
    for name in ("example-a-0.5.20", "example-a-0.5.22"):
        answer = held(name)
        assert answer.plan.deployment.attn_dp_size == 8
        assert answer.plan.deployment.chunked_prefill_size == 1024


PATCHED = {
    "tp_size": 2,
    "max_total_tokens": 65536,
    "kv_cache_dtype": "fp8_e4m3",
    "dsa_prefill_backend": "tilelang",
    "dsa_decode_backend": "tilelang",
    "mamba_ssm_dtype": "bfloat16",
    "max_mamba_cache_size": 20,
    "max_running_requests": 4,
    "speculative_algorithm": "EAGLE",
    "speculative_num_steps": 5,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 6,
}


def test_a_patched_build_is_explained_by_a_profile_of_its_own(tmp_path: Path) -> None:
    """ormandj/sglang-glm53-flash-sm120 rc.24: raw FP8 rows as in 0.5.22, index keys of 132 bytes as before it."""
    kv = "[2026-05-14 08:11:02 TP0] KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 65536, KV size: "
    boot = read_log([f"server_args={PATCHED!r}", f"{kv}0.43 GB", f"{kv}0.04 GB"])[0]
    answer = reconcile(boot, BesideLog(gpu="rtxpro6000"))
    assert not answer.explained
    assert {fit.engine: bool(fit.refused) for fit in answer.fits} == {
        "0.5.20": True,
        "0.5.21": True,
        "0.5.22": False,
        "0.5.23": False,
    }
    profile = tmp_path / "rc24.toml"
    profile.write_text('base = "0.5.22"\nindex_rows_pooled = false\n', encoding="utf-8")
    answer = reconcile(boot, BesideLog(gpu="rtxpro6000", engine=str(profile)))
    assert answer.explained, answer.first_unexplained
    assert plan_document(answer, "log")["engine"] == str(profile)
