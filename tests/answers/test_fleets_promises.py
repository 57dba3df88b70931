"""What `kvplan advise --gpus` promises, typed in from nothing: it comes out so, with either engine, on any card."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import glm_kvplan as kv
from glm_kvplan.answers.check.checking import check_file
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.by_name import answering
from glm_kvplan.engines.fleet_values import FleetAnswer, FleetShown
from glm_kvplan.engines.saved_plan import to_yaml
from glm_kvplan.engines.sglang.sizing.served_requests import served as sglang_served
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.vllm.block_bounds import block_bounds
from glm_kvplan.engines.vllm.served_requests import served as vllm_served
from glm_kvplan.engines.vllm.starting import begin
from glm_kvplan.errors import KvplanError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.memory.gpu import known_gpus
from glm_kvplan.workload import Demand

CARDS = st.sampled_from(sorted(known_gpus()))
GPUS = st.lists(st.sampled_from((1, 2, 3, 4, 6, 8, 12, 16, 24, 32)), min_size=1, max_size=2)
LENGTHS = st.sampled_from(("1k", "32k", "128k", "1000000", "0.8:8k,0.2:128k", "0.5:1k,0.3:20k,0.2:300k"))
REQUESTS = st.sampled_from((1, 7, 60, 400))
PER_HOST = st.sampled_from((None, None, 1, 2, 4, 8))
SGLANG = st.fixed_dictionaries(
    {},
    optional={
        "tp_size": st.sampled_from((2, 8)),
        "kv_cache_dtype": st.just("fp8_e4m3"),
        "speculative_algorithm": st.just("EAGLE"),
        "mem_fraction_static": st.just(0.8),
        "context_length": st.just(65536),
    },
)
VLLM = st.fixed_dictionaries(
    {},
    optional={
        "tensor_parallel_size": st.sampled_from((2, 8)),
        "data_parallel_size": st.just(2),
        "kv_cache_dtype": st.just("fp8"),
        "speculative_config": st.just({"method": "mtp", "num_speculative_tokens": 3}),
        "gpu_memory_utilization": st.just(0.8),
        "max_model_len": st.sampled_from((-1, 65536)),
        "max_num_seqs": st.sampled_from((16, 256)),
        "enable_expert_parallel": st.just(True),
        "enforce_eager": st.just(True),
    },
)
TRIES: Any = st.sampled_from(("", "", "rows", "states"))
TRIED = {
    ("sglang", "rows"): {"kv_cache_dtype": ["fp8_e4m3"]},
    ("sglang", "states"): {"mamba_ssm_dtype": ["bfloat16"]},
    ("vllm", "rows"): {"kv_cache_dtype": ["fp8"]},
    ("vllm", "states"): {"mamba_ssm_cache_dtype": ["bfloat16"], "enable_prefix_caching": [False]},
}


def sought(draw: st.DrawFn, engine: str, release: str, flags: dict[str, Any]) -> tuple[FleetAnswer, Demand, str]:
    card = draw(CARDS)
    demand = Demand(parse_contexts(draw(LENGTHS)), draw(REQUESTS))
    try:
        plan = kv.plan(flags, engine=release, gpu=card)
        tries = TRIED.get((engine, draw(TRIES)), {})
        answer = answering(plan, "fleet").answer(plan, demand, MemoryGiven(), draw(GPUS), tries, draw(PER_HOST))
    except KvplanError:
        assume(False)
    return answer, demand, card


def typed(one: FleetShown, release: str, card: str, answer: FleetAnswer) -> Any:
    """The plan of the command; its deployment file is the same."""
    plan = kv.plan(launch=one.command, engine=release, gpu=card)
    assert plan.gpus * one.servers == one.gpus
    on_a_host = answer.gpus_per_host // plan.gpus
    hosts = -(-one.servers // on_a_host) if on_a_host else one.servers * plan.gpus // answer.gpus_per_host
    assert plan.hosts == one.hosts_of_a_server == max(1, plan.gpus // answer.gpus_per_host)
    assert one.hosts == hosts
    assert plan.hosts == 1 or plan.gpus // plan.hosts == answer.gpus_per_host
    content = yaml.safe_load(to_yaml(one.plan_file))
    hosts = {"nnodes": content["nodes"]} if "nodes" in content else {}
    again = kv.plan({**content["flags"], **hosts}, engine=content["engine"], gpu=content["gpu"])
    assert again.deployment == plan.deployment
    words = shlex.split(one.command.replace("\\\n", " "))
    assert ("--nnodes" in words) == (plan.hosts > 1)
    return plan


def check_agrees(answer: FleetAnswer, folder: Path) -> None:
    """`kvplan check` of what `--save` writes says yes where the layout holds."""
    if answer.best is not None:
        path = folder / "plan.yaml"
        path.write_text(to_yaml(answer.best.plan_file), encoding="utf-8")
        checked = check_file(str(path))
        assert checked.verdict == "holds", (answer.best.plan_file, checked)


def shares(answer: FleetAnswer, demand: Demand) -> list[tuple[FleetShown, Demand]]:
    """What is shown, each with what one server of it is to serve."""
    shown = {id(one): one for one in (answer.best, answer.runner_up, *answer.layouts) if one is not None}
    assert answer.holds == (answer.best is not None)
    gpus = [one.gpus for one in answer.layouts]
    assert gpus == sorted(set(gpus))
    if answer.best is not None:
        assert answer.best.holds
        assert all(not one.holds for one in answer.layouts if one.gpus < answer.best.gpus)
    return [(one, demand._replace(concurrency=-(-demand.concurrency // one.servers))) for one in shown.values()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plans")


@st.composite
def of_sglang(draw: st.DrawFn) -> tuple[FleetAnswer, Demand, str, str]:
    release = draw(st.sampled_from(("0.5.20", "0.5.23")))
    return (*sought(draw, "sglang", release, draw(SGLANG)), release)


@st.composite
def of_vllm(draw: st.DrawFn) -> tuple[FleetAnswer, Demand, str, str]:
    release = draw(st.sampled_from(("vllm-0.30.0", "vllm-0.32.0", "vllm-0.33.0")))
    return (*sought(draw, "vllm", release, draw(VLLM)), release)


@settings(max_examples=25)
@given(found=of_sglang())
def test_a_command_for_sglang_does_what_it_promises(folder: Path, found: tuple[FleetAnswer, Demand, str, str]) -> None:
    answer, demand, card, release = found
    check_agrees(answer, folder)
    for one, share in shares(answer, demand):
        if one.sizes is None:
            assert not one.holds and one.served == 0
            continue
        plan = typed(one, release, card, answer)
        server = Server(plan, MemoryGiven())
        assert server.sizes == one.sizes
        got = sglang_served(share, plan.deployment, server.sizes)
        assert one.served == min(demand.concurrency, got.requests * one.servers)
        if one.holds:
            assert got.requests >= share.concurrency
            assert one.floor_tokens <= server.sizes.tokens <= one.ceiling_tokens
            assert server.usable >= server.needs(share.contexts.longest).nbytes


@settings(max_examples=80)
@given(found=of_vllm())
def test_a_command_for_vllm_does_what_it_promises(folder: Path, found: tuple[FleetAnswer, Demand, str, str]) -> None:
    answer, demand, card, release = found
    check_agrees(answer, folder)
    for one, share in shares(answer, demand):
        plan = typed(one, release, card, answer)
        begun = begin(plan, MemoryGiven())
        got, least = (vllm_served(start, share.contexts).requests for start in (begun.start, begun.low))
        assert one.served == min(demand.concurrency, min(got, share.concurrency) * one.servers)
        assert one.served_at_least == min(one.served, min(least, share.concurrency) * one.servers)
        assert one.most >= one.served
        requests = -(-min(got, share.concurrency) // plan.deployment.data_parallel_size)
        assert one.sizes == block_bounds(begun, MemoryGiven(), share.contexts, requests)
        if one.holds:
            assert begun.failure is None and got >= share.concurrency
            assert one.floor_tokens <= begun.start.count * plan.blocks.tokens_a_block <= one.ceiling_tokens
