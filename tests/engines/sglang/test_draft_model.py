"""Draft models of their own: 644 records of the engine's functions, the public boots, and a draft nobody knows."""

import gzip
import json
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from boots import read_log
from paths import DATA

import glm_kvplan as kv
from glm_kvplan.contexts import contexts
from glm_kvplan.engines.boot_logs import BesideLog
from glm_kvplan.engines.expectations import Expectations
from glm_kvplan.engines.planner import given
from glm_kvplan.engines.sglang.answers.advise_answer import answer_advise
from glm_kvplan.engines.sglang.answers.advise_page import advise_page
from glm_kvplan.engines.sglang.answers.report_answer import answer_report
from glm_kvplan.engines.sglang.answers.report_page import report_page
from glm_kvplan.engines.sglang.answers.solve_answer import answer_solve
from glm_kvplan.engines.sglang.answers.solve_page import solve_page
from glm_kvplan.engines.sglang.boot_log.causes import causes
from glm_kvplan.engines.sglang.boot_log.host_rows import host_rows
from glm_kvplan.engines.sglang.boot_log.reconciliation import Reconciliation, reconcile
from glm_kvplan.engines.sglang.boot_log.sizing_rows import MOST_TAKEN_GIB, _within
from glm_kvplan.engines.sglang.components import tensor_specs
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.launch_command import read_launch_command
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.profile import releases
from glm_kvplan.engines.sglang.rank import Rank, ranks
from glm_kvplan.engines.sglang.sizing.attribution import attribution
from glm_kvplan.engines.sglang.sizing.failures import refusal
from glm_kvplan.engines.sglang.sizing.host_sizes import stage_plans
from glm_kvplan.engines.sglang.sizing.rank_costs import costs
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.solver import Solution, attempt, size
from glm_kvplan.engines.sglang.sizing.start import MemoryGiven, boot
from glm_kvplan.engines.sglang.weight_placement import after_load
from glm_kvplan.errors import InputError, KvplanError, RefusedError
from glm_kvplan.memory.draft_weights import draft_bytes, rope_growth
from glm_kvplan.model.draft import NoDraftError, draft_from_config, load_draft
from glm_kvplan.show.markdown import markdown
from glm_kvplan.units import GB, GIB
from glm_kvplan.workload import Demand, HostGiven

CARDS = {"B200": "b200", "H200": "h200", "GB300": "gb300:256703", "RTX PRO 6000": "rtxpro6000", "GB10": "gb10"}
IN_SUMS = ("draft.kv_data_ptrs", "draft.data_ptrs", "token_allocator.free_pages")  # no shapes in the records
SAME = {"draft._compress_tail_k": "draft.compress_tail_k", "draft._compress_tail_score": "draft.compress_tail_score"}
PUBLIC = (
    "--quantization modelopt_fp4 --context-length 1048576 --mem-fraction-static 0.85 --max-running-requests 16 "
    "--cuda-graph-max-bs-decode 16 --chunked-prefill-size 8192 --max-prefill-tokens 8192 --kv-cache-dtype fp8_e4m3 "
    "--max-mamba-cache-size 48 --speculative-algorithm DFLASH --speculative-draft-model-path /draft "
    "--speculative-draft-attention-backend fa4 --speculative-dflash-block-size 7"
)
SERVE = "sglang serve zai-org/GLM-5.3-Flash"


@cache
def records(kind: str) -> tuple[dict[str, Any], ...]:
    lines = gzip.decompress((DATA / "draft.jsonl.gz").read_bytes()).splitlines()
    return tuple(record for line in lines if (record := json.loads(line))["kind"] == kind)


@pytest.fixture(scope="module")
def configs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every draft's config.json, by the record's name for it."""
    folder = tmp_path_factory.mktemp("drafts")
    for record in (*records("sizing"), *records("weights")):
        if record["draft_config"] is not None:
            (folder / f"{record['geo']}.json").write_text(json.dumps(record["draft_config"]))
    return folder


def words(record: dict[str, Any]) -> list[str]:
    return [*SERVE.split(), *map(str, record["argv"])]


def planned(record: dict[str, Any], configs: Path) -> Plan:
    command = read_launch_command(words(record), record["version"])
    known = record["draft_config"] is not None
    flags = {"draft_config": str(configs / f"{record['geo']}.json")} if known else {}
    gpu = CARDS[record["gpu"]]
    return given(flags, launch=command, engine=record["version"], gpu=gpu, environment=record["env"]).plan()


def sized(record: dict[str, Any], configs: Path) -> tuple[Plan, Rank, Solution]:
    """The record's own rank, alone, as its process sized it."""
    plan = planned(record, configs)
    rank = ranks(plan)[record.get("sizing", {}).get("pp_rank", 0)]
    solution = size(costs(rank), record["pre_gib"], record["avail_gib"])
    if solution.failure is not None:
        raise refusal(solution)
    return plan, rank, solution


@pytest.mark.parametrize("release", releases())
def test_every_sizing_record(release: str, configs: Path) -> None:
    seen = Counter[str]()
    for record in records("sizing"):
        if record["version"] != release:
            continue
        engines = record.get("sizing", {})
        if record.get("refused") or engines.get("refused"):
            with pytest.raises(KvplanError):
                sized(record, configs)
            seen["refused"] += 1
            continue
        plan, rank, solution = sized(record, configs)
        costs = solution.costs
        assert [*solution.sizes, costs.cell_bytes, costs.target_bytes, costs.draft_bytes] == [
            engines[name]
            for name in ("max_total_num_tokens", "max_mamba_cache_size", "max_running_requests", "cell_size")
        ] + [engines["cell_target"], engines["cell_draft_charged"]], record["argv"]
        check_tensors(rank, solution, engines)
        check_arguments(plan, record)
        assert attribution(rank, solution.sizes).rest == 0
        seen["sized"] += 1
    assert seen["sized"] > 100
    assert seen["refused"] > 10


def check_tensors(rank: Rank, solution: Solution, engines: dict[str, Any]) -> None:
    ours: dict[str, list[dict[str, Any]]] = defaultdict(list)
    drafts = 0
    for spec in tensor_specs(rank, solution.sizes):
        if spec.name.startswith("draft.") and spec.name != "draft.req_to_token":
            drafts += spec.nbytes
        name = spec.name
        if name == "intermediate_conv_window":
            name += "(physical)"
        elif spec.place == "host":
            name += "(host)"
        if name == "token_allocator.free_pages":
            assert spec.nbytes == engines["alloc"][name]
        if name not in IN_SUMS:
            ours[name].append({"shape": list(spec.shape), "dtype": spec.dtype, "count": spec.count})
    theirs = {
        SAME.get(name, name): made
        for name, made in {**engines["alloc_tensors"], **engines.get("draft_tensors", {})}.items()
        if made and made[0]["shape"][0] and name not in IN_SUMS
    }
    assert ours == theirs
    assert drafts == engines.get("draft_alloc", {}).get("_all_draft_pool_bytes", 0)


def check_arguments(plan: Plan, record: dict[str, Any]) -> None:
    deployment = plan.deployment
    for name, value in record["resolved"].items():
        if hasattr(deployment, name) and name != "mamba_ssm_dtype":  # here the dtype that counts, there the flag
            assert getattr(deployment, name) == value, (name, record["argv"])


def test_every_weights_record() -> None:
    assert len(records("weights")) == 77
    for record in records("weights"):
        draft = draft_from_config(record["draft_config"])
        found = draft_bytes(draft, record["tp"])
        assert found.weights == record["param_bytes"], record["geo"]
        assert found.rope == record["buffer_bytes"]
        grown = found.rope + rope_growth(draft, 1048576 + 2 * 8 + 256)
        assert grown == record["buffer_bytes_after_reserve"]


# -- the public boots --------------------------------------------------------------------------------------------------


def public(engine: str, configs: Path | None, *more: str) -> Plan:
    flags = {} if configs is None else {"draft_config": str(configs / "d5x8x128.json")}
    launch = " ".join((SERVE, PUBLIC, *more))
    return kv.plan(flags, launch=launch, gpu="gb300:256703", engine=engine)


@pytest.mark.parametrize(
    ("engine", "more", "printed"),
    [("0.5.20", (), 577_024), ("0.5.21", ("--enable-linear-replayssm-spec",), 856_576)],
)
def test_public_gb300_boots(engine: str, more: tuple[str, ...], printed: int, configs: Path) -> None:
    answer = boot(public(engine, configs, *more), MemoryGiven(pre_gib=248.90, available_gib=69.12))
    low, high = answer.span
    assert low is not None
    assert high is not None
    assert low.tokens < printed < high.tokens
    assert answer.solution.tokens == printed
    assert answer.solution.sizes[1:] == (48, 9)
    assert answer.solution.costs.cell_bytes == 27_564
    assert answer.budget.certainty == "estimated"
    assert any(part.name.startswith("draft's RoPE") and part.how == "estimated" for part in answer.budget.parts)


def test_weights_of_the_public_draft_count(configs: Path) -> None:
    server = Server(public("0.5.20", configs), MemoryGiven(pre_gib=248.90))
    budget, weights = server.budget, server.weights
    assert weights is not None
    assert dict(weights.draft_groups[0]).keys() == {"draft model", "draft RoPE table"}
    assert budget.draft_weights_gib == pytest.approx(2.603, abs=0.001)  # printed: 2.68
    assert not any("not counted" in note for note in weights.notes)


def test_a_quantized_draft_lies_between_packed_and_plain(configs: Path, tmp_path: Path) -> None:
    """What it keeps plain was derived by nobody: the interval reaches from all of its projections packed to none."""
    config = json.loads((configs / "d5x8x128.json").read_text())
    packed = draft_from_config({**config, "quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}})
    plain, found = draft_bytes(draft_from_config(config), 2), draft_bytes(packed, 2)
    assert found.weights + found.error == plain.weights
    assert found.weights - found.error < 0.5 * plain.weights
    fp8 = draft_bytes(draft_from_config({**config, "quantization_config": {"quant_method": "fp8"}}), 2)
    assert fp8.weights - fp8.error > 0.5 * plain.weights
    (tmp_path / "config.json").write_text(json.dumps({**config, "quantization_config": {"quant_method": "fp8"}}))
    flags = {**UNKNOWN, "speculative_algorithm": "DFLASH", "draft_config": str(tmp_path)}
    server = Server(kv.plan(flags, gpu="b200"), MemoryGiven(weights_gib=44.76))
    part = next(part for part in server.budget.parts if part.name == "draft weights")
    assert part.error_gib == pytest.approx(draft_bytes(load_draft(str(tmp_path)), 4).error / GIB)
    assert server.budget.certainty == "estimated"
    assert server.weights is not None
    assert any("quantized" in note for note in server.weights.notes)


# -- a draft that nobody knows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["DFLASH", "DSPARK", "EAGLE3", "STANDALONE", "EAGLE"])
def test_unknown_draft_is_an_upper_bound(algorithm: str) -> None:
    flags = {"tp_size": 4, "speculative_algorithm": algorithm, "speculative_draft_model_path": "/nowhere/draft"}
    plan = kv.plan(flags, gpu="b200")
    assert any("upper bound" in warning and "--draft-config" in warning for warning in plan.warnings)
    answer = boot(plan, MemoryGiven(pre_gib=177.0, available_gib=126.0))
    assert answer.budget.certainty == "upper bound"
    assert answer.failure is None


@pytest.mark.parametrize("algorithm", ["DFLASH", "EAGLE3", "STANDALONE"])
def test_known_draft_never_gives_more_than_the_bound(algorithm: str, configs: Path) -> None:
    flags = {"tp_size": 4, "speculative_algorithm": algorithm, "speculative_draft_model_path": "/nowhere/draft"}
    memory = MemoryGiven(pre_gib=177.0, available_gib=126.0)
    name = {"DFLASH": "d5x8x128", "EAGLE3": "e3_1x8x128", "STANDALONE": "st28x8x128"}[algorithm]
    if algorithm == "DFLASH":
        flags["speculative_num_draft_tokens"] = 8
    unknown = boot(kv.plan(flags, gpu="b200"), memory)
    known = boot(kv.plan({**flags, "draft_config": str(configs / f"{name}.json")}, gpu="b200"), memory)
    assert known.solution.tokens <= unknown.solution.tokens
    assert known.budget.certainty != "upper bound"


def test_target_as_draft_is_its_own_layer(tmp_path: Path) -> None:
    config = json.loads((Path(kv.__file__).parent / "model/data/glm-5.3-flash.config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config))
    own = kv.plan({"tp_size": 4, "speculative_algorithm": "EAGLE"}, gpu="b200")
    named = own.with_flags(speculative_draft_model_path=str(tmp_path))
    assert named.deployment.eagle
    assert named.deployment == own.deployment


# -- reading -----------------------------------------------------------------------------------------------------------

CONFIG: dict[str, Any] = {
    **{"architectures": ["DFlashDraftModel"], "num_hidden_layers": 2, "num_attention_heads": 16, "hidden_size": 2048},
    **{"num_key_value_heads": 4, "vocab_size": 154880, "max_position_embeddings": 4096, "torch_dtype": "bfloat16"},
}


def test_config_is_read_from_a_file_or_a_directory(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    for source in (path, tmp_path):
        draft = load_draft(str(source))
        assert (draft.head_dim, draft.v_head_dim, draft.kv_heads, draft.pool_layers) == (128, 128, 4, 2)
        assert draft.longest_context == 4096


def test_rope_factor_lengthens_the_context() -> None:
    assert draft_from_config({**CONFIG, "rope_scaling": {"factor": 4}}).longest_context == 16384
    kept = {"factor": 4, "original_max_position_embeddings": 1024}
    assert draft_from_config({**CONFIG, "rope_scaling": kept}).longest_context == 4096


@pytest.mark.parametrize(
    "change", [{"num_hidden_layers": None}, {"num_key_value_heads": 0}, {"head_dim": "128"}, {"hidden_size": True}]
)
def test_broken_config_is_told(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**CONFIG, **change}))
    with pytest.raises(InputError, match=next(iter(change))):
        load_draft(str(path))


def test_a_named_config_must_be_there(tmp_path: Path) -> None:
    flags = {"speculative_algorithm": "DFLASH", "speculative_draft_model_path": "/draft"}
    with pytest.raises(NoDraftError, match="not on this machine"):
        kv.plan({**flags, "draft_config": str(tmp_path / "nothing.json")})
    with pytest.raises(NoDraftError, match=r"without config\.json"):
        kv.plan({**flags, "draft_config": str(tmp_path)})


def test_heads_must_divide(configs: Path) -> None:
    flags = {"speculative_algorithm": "DFLASH", "speculative_draft_model_path": "/draft", "tp_size": 3}
    with pytest.raises(RefusedError, match="do not divide over 3 ranks"):
        kv.plan({**flags, "draft_config": str(configs / "d5x8x128.json")})


# -- boot logs ---------------------------------------------------------------------------------------------------------

LOG = """\
[2026-01-01 00:00:01] Load weight begin. avail mem=248.90 GB
[2026-01-01 00:01:01] Load weight end. elapsed=51.04 s, type=Glm5NextForConditionalGeneration, quant=modelopt_fp4, \
avail mem=71.93 GB, mem usage=176.97 GB.
[2026-01-01 00:01:02] Load weight begin. avail mem=71.81 GB
[2026-01-01 00:01:03] Load weight end. elapsed=0.23 s, type=DFlash2DraftModel, avail mem=69.12 GB, mem usage=2.68 GB.
[2026-01-01 00:01:04] Mamba Cache is allocated. max_mamba_cache_size: 48, conv_state size: 0.24GB, \
ssm_state size: 6.70GB intermediate_ssm_state_cache size: 9.57GB intermediate_conv_window_cache size: 0.34GB
[2026-01-01 00:01:04] KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 577024, KV size: 3.81 GB
[2026-01-01 00:01:05] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 577024, K size: 5.50 GB, V size: 5.50 GB
[2026-01-01 00:02:00] max_total_num_tokens=577024, chunked_prefill_size=8192, max_prefill_tokens=8192, \
max_running_requests=9, context_len=1048576, available_gpu_mem=35.59 GB
"""
ARGUMENTS = (
    "[2026-01-01 00:00:00] server_args={'model_path': '/model', 'context_length': 1048576, 'kv_cache_dtype': "
    "'fp8_e4m3', 'mem_fraction_static': 0.85, 'max_running_requests': 16, 'chunked_prefill_size': 8192, "
    "'max_prefill_tokens': 8192, 'page_size': 64, 'tp_size': 1, 'pp_size': 1, 'dp_size': 1, 'dsa_prefill_backend': "
    "'trtllm', 'dsa_decode_backend': 'trtllm', 'speculative_algorithm': 'DFLASH', 'speculative_draft_model_path': "
    "'/draft', 'speculative_num_steps': 1, 'speculative_eagle_topk': 1, 'speculative_num_draft_tokens': 7, "
    "'speculative_dflash_block_size': 7, 'max_mamba_cache_size': 48, 'mamba_full_memory_ratio': 0.9, "
    "'mamba_radix_cache_strategy': 'extra_buffer'}\n"
)


def reconciled(text: str, known: BesideLog) -> Reconciliation:
    return reconcile(read_log(text.splitlines())[0], known)


def test_a_whole_boot_log_is_read_and_its_verdict_names_the_draft() -> None:
    answer = reconciled(ARGUMENTS + LOG, BesideLog(gpu="gb300:256703"))
    assert answer.plan.deployment.speculative_draft_model_path == "/draft"
    rows = {row.name: row.printed for row in answer.rows}
    assert rows["draft token pool K size"] == rows["draft token pool V size"] == "5.50"
    unknown = [row[2:] for row in answer.rows if row.name.startswith("draft token pool ") and "size" in row.name]
    assert unknown == [("?", "5.50", None, None, "", "of a draft model not known here")] * 2
    found = causes(answer)
    assert any("draft model's own token pool takes 11.00 GiB" in cause for cause in found)
    assert not any("another process" in cause for cause in found)


def test_a_draft_s_pool_of_latent_rows_is_told_too() -> None:
    """11 GiB of 577,024 tokens and a page: as the checkpoint's own draft prints it, without K and V apart."""
    answer = reconciled(
        ARGUMENTS + LOG.replace("K size: 5.50 GB, V size: 5.50", "KV size: 11.00"), BesideLog(gpu="gb300:256703")
    )
    each = round(11 * 2**30 / (577_024 + 64))
    assert any(f"takes 11.00 GiB, about {each:,} bytes a token" in cause for cause in causes(answer))


def test_with_the_drafts_config_every_number_is_explained(configs: Path) -> None:
    flags = read_launch_command(f"{SERVE} {PUBLIC}", "0.5.20").flags
    known = BesideLog(flags=flags, gpu="gb300:256703", draft=str(configs / "d5x8x128.json"))
    answer = reconciled(LOG, known)
    assert answer.explained
    after, memory = after_load(answer.plan.deployment), answer.sizing.memory
    assert after is not None and after.gib < 0 and memory is not None  # its buffers are taken of the last reading
    sized = attempt(answer.plan, memory.pre_gib, memory.available_gib + after.gib)
    assert answer.sizing.solution is not None and answer.sizing.solution.sizes == sized.sizes
    assert {row.name for row in answer.rows} >= {"draft token pool K size", "draft token pool V size"}
    told = reconciled(ARGUMENTS + LOG, BesideLog(gpu="gb300:256703", draft=known.draft))
    assert any("fa4" in cause for cause in causes(told))  # the log's arguments leave the draft's kernels out


@pytest.mark.parametrize("drafts", [False, True])
def test_how_much_less_may_be_free_at_the_sizing_than_the_last_reading(drafts: bool, configs: Path) -> None:
    """From nothing to what the planner takes loading to leave, each to half the last printed digit of the two readings
    and to what a draft's own buffers may be off by.
    """
    flags: dict[str, object] = {"mem_fraction_static": 0.8, "kv_cache_dtype": "fp8_e4m3"}
    if drafts:
        flags |= {"speculative_algorithm": "DFLASH", "speculative_draft_model_path": "/draft"}
        flags |= {"draft_config": str(configs / "d5x8x128.json")}
    made = kv.plan(flags, gpu="b200", engine="0.5.21")
    after = after_load(made.deployment)
    assert (after is not None) == drafts
    begins, error = (-after.gib, after.error_gib) if after is not None else (0.0, 0.0)
    printed = 0.005 + 0.005 * (1 - 0.8)  # of what was free after the load, and of the share of what was before it
    least, most = begins - printed - error, begins + MOST_TAKEN_GIB + printed + error
    assert [_within(made, taken) for taken in (least + 1e-9, most - 1e-9)] == [True, True]
    assert [_within(made, taken) for taken in (least - 1e-9, most + 1e-9)] == [False, False]


# -- an upper bound is said to be one ----------------------------------------------------------------------------------

UNKNOWN = {"tp_size": 4, "speculative_algorithm": "EAGLE3", "speculative_draft_model_path": "/nowhere/draft"}
SIZES = ("max_total_num_tokens", "max_mamba_cache_size", "max_running_requests")


def pages(plan: Plan, memory: MemoryGiven) -> dict[str, str]:
    """What solve, advise and check say of it, as their pages' text."""
    demand = Demand(contexts([(32768, 1)]), 8)
    expect = Expectations(min_total_tokens=64, max_running_requests=1, headroom=1.0)
    judged = plan.hold(memory, expect).judgements
    return {
        "solve": markdown(solve_page(answer_solve(plan, memory))),
        "advise": markdown(advise_page(answer_advise(plan, demand, memory))),
        "report": markdown(report_page(answer_report(plan, demand, memory))),
        "check": " ".join(f"{each.name} {each.found} {each.at_most}" for each in judged),
    }


def test_sizes_of_an_unknown_draft_are_marked_everywhere() -> None:
    plan, memory = kv.plan(UNKNOWN, gpu="b200"), MemoryGiven(pre_gib=177.0, available_gib=126.0)
    said = pages(plan, memory)
    for name in SIZES:
        assert re.search(rf"{name}\W+at most [\d,]+", said["solve"]), said["solve"]
        assert re.search(rf"{name}\W+at most [\d,]+", said["report"]), said["report"]
    assert "At most: 8 requests" in said["report"] and "is not counted" in said["report"]
    assert said["solve"].partition(" stay free")[0].rpartition("\n")[2].startswith("at most ")
    sized = said["advise"].partition("the engine then sizes ")[2].partition("\n")[0]
    assert re.fullmatch(r"at most [\d,]+ tokens, at most [\d,]+ state slots, at most [\d,]+ running requests", sized)
    assert "serve at most 8 of 8" in said["advise"]
    assert all(each.endswith("True") for each in re.findall(r"(?:tokens|requests|headroom) \S+ \w+", said["check"]))


def test_a_known_draft_with_unknown_weights_is_an_upper_bound_until_they_are_given(configs: Path) -> None:
    plan = kv.plan({**UNKNOWN, "draft_config": str(configs / "e3_1x8x128.json")}, gpu="b200")
    for memory, bound in (
        (MemoryGiven(), True),
        (MemoryGiven(pre_gib=177.0), True),
        (MemoryGiven(draft_weights_gib=1.5), False),
        (MemoryGiven(pre_gib=177.0, available_gib=126.0), False),
    ):
        assert boot(plan, memory).budget.upper_bound is bound, memory
    assert boot(plan, MemoryGiven()).budget.uncounted == "weights of the draft model"
    remarks = plan.hold(MemoryGiven(), Expectations()).remarks
    assert ("upper_bound", ("memory",)) in [(remark.name, remark.place) for remark in remarks]


def host_log(record: dict[str, Any]) -> list[str]:
    """The line of a draft's host pool, as mem_cache/pool_host/base.py:275 at 0.5.23 prints it."""
    size = f"{record['size']} tokens, {record['bytes'] / GB:.2f} GB host memory."
    return [
        "server_args={'tp_size': 1}",
        f"[2026-05-14 08:11:02 TP0 PP{record['pp_rank']}] Allocating draft hierarchical KV host pool: {size}",
    ]


@pytest.mark.parametrize("release", releases())
def test_the_draft_s_host_pool_is_the_engine_s(release: str, configs: Path) -> None:
    """312 pools that the engine's own build_full_draft_pools made beside a KV pool of `kv_size` tokens."""
    seen = 0
    for line in gzip.decompress((DATA / "hicache_draft.jsonl.gz").read_bytes()).splitlines():
        record = json.loads(line)
        if record["version"] != release:
            continue
        flags = {
            "draft_config": str(configs / f"{record['geo']}.json"),
            "enable_hierarchical_cache": True,
            "hicache_ratio": record["ratio"],
            "hicache_mem_layout": record["layout"],
            "disable_radix_cache": False,
        }
        command, gpu = read_launch_command(words(record), release), CARDS[record["gpu"]]
        plan = given(flags, launch=command, engine=release, gpu=gpu, environment=record["env"]).plan()
        (found,) = stage_plans((ranks(plan)[record["pp_rank"]],), PoolSizes(*record["sizes"]))
        kv_pool, pool = found.pool("kv"), found.pool("draft")
        assert kv_pool is not None and kv_pool.units == record["kv_size"]
        assert pool is not None
        assert [pool.units, pool.pages, pool.layers, pool.bytes_per_unit, pool.nbytes, pool.requested_bytes] == [
            record["size"], record["page_num"], record["layer_num"], record["size_per_token"], *[record["bytes"]] * 2
        ]  # fmt: skip
        rows = list(host_rows(plan, read_log(host_log(record))[0], PoolSizes(*record["sizes"])))
        assert [row.name for row in rows if row.explained] == ["host draft tokens", "host draft size"]
        assert found.devices.draft_bytes == (record["sizes"][0] + kv_pool.page_size) * record["size_per_token"]
        seen += 1
    assert seen > 70


def test_hicache_counts_the_draft_s_host_pool(configs: Path) -> None:
    """At TP 1 20,480 bytes a token, on every host; of a draft that is not known it is said that nobody knows."""
    plan = public("0.5.23", configs, "--enable-hierarchical-cache --hicache-ratio 2")
    answer = boot(plan, MemoryGiven(pre_gib=248.90, available_gib=69.12), host_given=HostGiven(1000 * GIB))
    assert answer.host is not None and answer.host.fit is not None
    (stage,) = answer.host.plans
    assert [pool.name for pool in stage.pools] == ["kv", "mamba", "indexer", "draft"]
    assert stage.pools[3].nbytes == stage.pools[0].units * 20_480 == answer.host.pool_bytes[3]
    assert answer.host.host_bytes == (sum(pool.nbytes for pool in stage.pools),)
    assert "draft_not_counted" not in [each.kind for each in answer.host.hazards]
    unknown = boot(
        public("0.5.20", None, "--enable-hierarchical-cache"), MemoryGiven(pre_gib=248.9, available_gib=69.12)
    )
    assert unknown.host is not None
    assert next(each for each in unknown.host.hazards if each.kind == "draft_not_counted").nbytes is None
