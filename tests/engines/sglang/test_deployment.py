"""The resolved deployment as a value: frozen, compared by what sizes follow from, made by hand from resolved values."""

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import get_type_hints

import pytest

from glm_kvplan.engines.sglang.deployment import SIZING, Deployment
from glm_kvplan.engines.sglang.flags import TABLE
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.resolve.arguments import DEFAULTS
from glm_kvplan.engines.sglang.resolve.resolver import resolve
from glm_kvplan.memory.gpu import find_gpu
from glm_kvplan.model.loader import bundled_geometry


def resolved(**flags: object) -> Deployment:
    return resolve(flags, geometry=bundled_geometry(), profile=load_profile("0.5.21"), gpu=find_gpu("b200"))


def test_every_row_of_the_table_is_a_declared_value() -> None:
    declared = get_type_hints(Deployment).keys() - {"given", "because", "warnings", "site"}
    assert declared == DEFAULTS.keys()
    rows = [row for row in TABLE if row.role in ("flag", "ours", "decided")]
    assert {row.name for row in rows} <= declared
    for row in rows:
        assert set(row.becomes.split()) <= declared
        assert row.resolved in {"", *declared}


def test_it_is_frozen() -> None:
    deployment = resolved(tp_size=4)
    with pytest.raises(FrozenInstanceError):
        deployment.tp_size = 8
    with pytest.raises(FrozenInstanceError):
        del deployment.tp_size
    assert copy.deepcopy(deployment) == pickle.loads(pickle.dumps(deployment)) == deployment


def test_it_is_compared_by_what_sizes_follow_from() -> None:
    plain = resolved(tp_size=4)
    asked = resolved(tp_size=4, chunked_prefill_size=16384, cuda_graph_max_bs_decode=512, attention_backend="dsa")
    assert (asked == plain, hash(asked) == hash(plain)) == (True, True)
    assert asked.given != plain.given
    for other in ({"tp_size": 8}, {"quantization": "fp8"}, {"moe_runner_backend": "deep_gemm"}):
        assert resolved(**{"tp_size": 4, **other}) != plain
    assert plain != "deployment"


def test_a_changed_one_is_a_replaced_one() -> None:
    deployment = resolved(tp_size=4)
    changes = {"context_length": 8192, "mem_fraction_static": 0.5}
    assert deployment.with_values(**changes) == replace(deployment, **changes)
    assert deployment.context_length == 1 << 20
    with pytest.raises(KeyError):
        deployment.with_values(contextlength=1)


def test_one_made_by_hand() -> None:
    deployment = Deployment(tp_size=4, kv_layout="fp8_raw")
    assert repr(deployment) == "Deployment(tp_size=4, kv_layout='fp8_raw')"
    assert (deployment.page_size, deployment.warnings, deployment.given) == (64, (), {})
    assert len(deployment.sizing) == len(SIZING)
    with pytest.raises(TypeError, match="tpsize"):
        Deployment(tpsize=4)


def test_the_reason_of_one_flag() -> None:
    deployment = resolved(tp_size=4)
    assert deployment.reason("kv_cache_dtype").endswith("FP8 rows")
    assert deployment.reason("tp_size") == "given"
    assert deployment.reason("pp_size") == "the engine's default"
    assert deployment.reason("hicache_ratio") == deployment.reason("quantization") == ""
