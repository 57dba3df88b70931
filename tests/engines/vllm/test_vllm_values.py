"""vLLM's values never change once made, and small tables say what the engine says: switches, kernels, placements."""

from dataclasses import FrozenInstanceError, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

import glm_kvplan as kv
from glm_kvplan.engines.vllm import profile
from glm_kvplan.engines.vllm.backends import BACKENDS, FLASHMLA, find_backend
from glm_kvplan.engines.vllm.blocks import Blocks
from glm_kvplan.engines.vllm.deployment import Deployment
from glm_kvplan.engines.vllm.engine import ENGINE
from glm_kvplan.engines.vllm.environment import ENVIRONMENT
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.profile import EngineProfile, facts, load_profile, releases
from glm_kvplan.engines.vllm.rank import Rank
from glm_kvplan.engines.vllm.start import Start
from glm_kvplan.engines.vllm.starting import Begun
from glm_kvplan.engines.vllm.weight_placement import SEQUENCE_PARALLEL, placement
from glm_kvplan.errors import InputError
from glm_kvplan.launch.launch import Launch
from glm_kvplan.launch.marked_words import Word


@pytest.mark.parametrize("kind", [Blocks, Deployment, Plan, EngineProfile, Rank, Start, Begun])
def test_a_value_is_frozen(kind: Any) -> None:
    assert is_dataclass(kind)
    made = object.__new__(kind)
    first = fields(kind)[0].name
    with pytest.raises(FrozenInstanceError):
        setattr(made, first, 1)
    assert not hasattr(made, "__dict__")  # slots: nothing else is hung onto it


@pytest.mark.parametrize("kind", [Deployment, Plan])
def test_values_of_many_fields_are_made_by_name(kind: Any) -> None:
    own = [
        field
        for field in fields(kind)
        if field.name in ("deployment", "blocks", "weight_format", "max_num_seqs", "gpus")
    ]
    assert own and all(field.kw_only for field in own)


def test_switches_and_what_they_are_without_a_value() -> None:
    assert {name: (row.kind, row.default) for name, row in ENVIRONMENT.items()} == {
        "VLLM_ALLOW_LONG_MAX_MODEL_LEN": ("switch", False),
        "VLLM_KV_CACHE_LAYOUT": ("word", None),
        "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": ("switch", True),
    }


def test_kernels_by_generation() -> None:
    assert [find_backend(backend.name) for backend in BACKENDS] == list(BACKENDS)
    assert {backend.generation for backend in BACKENDS} == {9, 10, 12}
    assert [backend.name for backend in BACKENDS if backend.decode_context] == [FLASHMLA, "FLASHINFER_MLA_SPARSE"]
    assert {backend.name: backend.block_multiple for backend in BACKENDS if backend.block_multiple != 64} == {
        "FLASHINFER_MLA_SPARSE": 32
    }


def placed(release: str = "0.33.0", **flags: object) -> Any:
    plan: Plan = kv.plan({"tensor_parallel_size": 4, **flags}, engine=f"vllm-{release}", gpu="h200")
    return placement(plan.rank)


def test_where_weights_lie() -> None:
    alone = placed()
    assert {alone.attn_tp, alone.tp, alone.dense_tp, alone.lm_head, alone.vis_attn, alone.vis_mlp, alone.gpus} == {4}
    assert (alone.moe, alone.shared, alone.draft, alone.mtp_draft) == (4, 4, False, False)
    assert [list(stage) for stage in alone.stages] == [list(range(45))]
    mtp = placed(speculative_config={"method": "mtp", "num_speculative_tokens": 1})
    assert mtp.draft and mtp.mtp_draft
    ngram = placed(speculative_config={"method": "ngram", "num_speculative_tokens": 1})
    assert not ngram.draft and not ngram.mtp_draft
    assert placed().vision and not placed(language_model_only=True).vision


def test_shared_experts_are_whole_where_each_gpu_takes_its_own_tokens() -> None:
    """Several engines of several GPUs with whole experts, under an exchange that splits the tokens."""
    both: dict[str, object] = {"data_parallel_size": 2, "enable_expert_parallel": True}
    assert (placed(**both).moe, placed(**both).shared) == (8, 1)
    for exchange in SEQUENCE_PARALLEL:
        assert placed(**both, all2all_backend=exchange).shared == 1
    for other in ("pplx", "naive", "flashinfer_all2allv"):
        assert placed(**both, all2all_backend=other).shared == 4
    assert placed(data_parallel_size=2).shared == 4
    assert placed(enable_expert_parallel=True).shared == 4
    assert placed(**both, tensor_parallel_size=1).shared == 1 == placed(**both, tensor_parallel_size=2).shared
    assert set(SEQUENCE_PARALLEL) == {
        "allgather_reducescatter", "deepep_high_throughput", "deepep_low_latency", "deepep_v2",
        "flashinfer_nvlink_one_sided", "mori_high_throughput", "mori_low_latency", "nixl_ep",
    }  # fmt: skip


@pytest.mark.parametrize("release", releases())
def test_what_a_release_does_first(release: str) -> None:
    found = facts(load_profile(release))
    new = release in ("0.32.0", "0.33.0")
    assert found["state dtype"] == ("float32 or bfloat16" if new else "float32")
    assert found["blocks"] == ("packed" if load_profile(release).blocks_packed else "a region a layer")
    plan: Plan = kv.plan({"tensor_parallel_size": 4}, engine=f"vllm-{release}", gpu="b200")
    assert found["fp8 rows on B200"] == ("by default" if plan.deployment.cache_dtype == "fp8" else "where asked for")
    assert list(found) == ["blocks", "state dtype", "fp8 rows on B200"]


def test_the_engine_by_its_names() -> None:
    assert (ENGINE.name, ENGINE.title, ENGINE.assumed, ENGINE.context_option) == (
        "vllm", "vLLM", "0.33.0", "--max-model-len"
    )  # fmt: skip
    with pytest.raises(InputError, match="--url: a vLLM server does not tell its blocks"):
        ENGINE.ask_server("http://localhost", 1.0)
    with pytest.raises(InputError, match=r"--engine vllm-0\.30\.0 --engine vllm-0\.33\.0"):
        ENGINE.compare(load_profile("0.30.0"), load_profile("0.33.0"))
    assert load_profile("0.33.0").engine is ENGINE


def test_the_installed_release_is_vllms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "installed_release", lambda package: {"vllm": "0.31.0"}.get(package))
    load_profile.cache_clear()
    assert load_profile("installed") == load_profile("0.31.0")
    monkeypatch.setattr(profile, "installed_release", lambda package: None)
    load_profile.cache_clear()
    with pytest.raises(InputError, match="no vllm is installed in this environment"):
        load_profile("installed")


def test_unknown_options_are_left_out_of_a_build_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('base = "0.33.0"\n', encoding="utf-8")
    launch = Launch((Word("M", "x"), Word("--enable-magic", "x")), serve=True, environment={})
    assert ENGINE.read(launch, load_profile(str(file))).unknown == ("--enable-magic",)
    with pytest.raises(InputError, match="--enable-magic"):
        ENGINE.read(launch, load_profile("0.33.0"))
