"""From a server's printed arguments back to flags: the same deployment, of every recorded launch."""

from typing import Any

import pytest
from boots import held
from test_resolve import CARDS, outcome, records

from glm_kvplan.engines.sglang.boot_log.log_launch import flags_of, shortest_flags
from glm_kvplan.engines.sglang.boot_log.server_args import KEPT, parse
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.flags import FLAG, FLAGS
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.resolve.resolver import resolve
from glm_kvplan.errors import KvplanError
from glm_kvplan.memory.gpu import find_gpu
from glm_kvplan.model.loader import bundled_geometry


def printed(deployment: Deployment, record: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the engine prints them: every field resolved, a mapping of literals."""
    values = {flag.name: getattr(deployment, flag.name) for flag in FLAGS}
    values |= record["resolved"]
    graphs = {
        "decode": {"backend": deployment.decode_graph, "max_bs": deployment.decode_graph_max_bs},
        "prefill": {"backend": deployment.prefill_graph, "max_bs": deployment.prefill_graph_max_bs},
    }
    return {**values, "model_path": "/model", "cuda_graph_config": graphs, "json_model_override_args": "{}"}


def test_every_recorded_launch_comes_back_from_its_log() -> None:
    read = 0
    for record in records():
        deployment = outcome(record)
        if deployment is None:
            continue
        line = parse(repr(printed(deployment, record)))
        assert line is not None and line.complete
        again = resolve(
            flags_of(line.values),
            geometry=bundled_geometry(),
            profile=load_profile(record["engine"].removeprefix("sglang-")),
            gpu=find_gpu(CARDS[record["gpu"]]),
        )
        assert again == deployment, (record["engine"], record["argv"])
        read += 1
    assert read > 3000


def test_every_flag_that_bears_on_memory_is_read_from_a_log() -> None:
    assert {flag.name for flag in FLAGS} < KEPT
    assert KEPT - {flag.name for flag in FLAGS} == {"model_path", "revision"}


# cases/faults/02: a DFLASH boot was refused because its draft path was not among the fields that were read.
@pytest.mark.parametrize(
    ("fields", "flags"),
    [
        ({"speculative_draft_model_path": "/draft"}, {"speculative_draft_model_path": "/draft"}),
        ({"speculative_draft_model_path": "/model"}, {}),  # the engine names the checkpoint itself for its own layer
        ({"json_model_override_args": "{}"}, {}),
        ({"json_model_override_args": '{"a": 1}'}, {"json_model_override_args": {"a": 1}}),
        ({"json_model_override_args": "{"}, {}),
        ({"quantization": "modelopt_fp4"}, {"quantization": "modelopt_fp4"}),
        ({"quantization": "fp3"}, {}),  # of a release to come: the checkpoint says the same
        ({"kv_cache_dtype": "fp3"}, {"kv_cache_dtype": "fp3"}),  # refused when it is resolved
        ({"decode_attention_backend": "trtllm_mla"}, {"decode_attention_backend": "trtllm_mla"}),
        ({"cuda_graph_config": {"decode": {"backend": "full", "bs": [1, 4]}}},
         {"cuda_graph_config": {"decode": {"backend": "full", "max_bs": 4}}}),
        ({"cuda_graph_config": {"prefill": {"max_bs": -1}}}, {"cuda_graph_config": {"prefill": {}}}),
        ({"disaggregation_mode": "null", "disaggregation_decode_extra_slots": 7}, {}),
        ({"mm_feature_transport": "cpu"}, {}),
        ({"mm_feature_transport": "cuda_ipc"}, {"mm_feature_transport": "cuda_ipc"}),
        ({"disaggregation_mode": "null", "disaggregation_decode_extra_slots": 7, "enable_pd_role_switch": True},
         {"disaggregation_decode_extra_slots": 7, "enable_pd_role_switch": True}),
        ({"dp_size": 4, "enable_dp_attention": True, "chunked_prefill_size": 2048},
         {"dp_size": 4, "enable_dp_attention": True, "chunked_prefill_size": 8192}),  # printed of one worker
        ({"dp_size": 4, "enable_dp_attention": True, "chunked_prefill_size": -1},
         {"dp_size": 4, "enable_dp_attention": True, "chunked_prefill_size": -1}),
        ({"dp_size": 4, "enable_dp_attention": True}, {"dp_size": 4, "enable_dp_attention": True}),
        ({"hicache_ratio": 3.0, "int8_mamba_ckpt_size": 7, "hisparse_config": "{}"}, {}),  # without what they belong to
    ],
)  # fmt: skip
def test_printed_fields_as_flags(fields: dict[str, Any], flags: dict[str, Any]) -> None:
    line = parse(repr({"model_path": "/model", "tp_size": 4, **fields}))
    assert line is not None
    assert flags_of(line.values) == {"tp_size": 4, **flags}


@pytest.mark.parametrize("name", ["b200x4-mtp6-frac80", "example-a-0.5.22", "example-b-0.5.23"])
def test_a_saved_launch_is_the_shortest_that_plans_the_same(name: str) -> None:
    """Another flag less, with those that only stand together, and it is another deployment or none."""
    whole = held(name).plan
    short = shortest_flags(whole, keep_cards_choices=False)
    assert short.items() < whole.flags.items()
    again = whole.with_flags(**dict.fromkeys(whole.flags.keys() - short))
    assert again.flags == short and again.deployment == whole.deployment
    for name in short:
        together = [other for other in short if FLAG[other].together == (FLAG[name].together or other)]
        try:
            less = again.with_flags(**dict.fromkeys({name, *together}))
        except KvplanError:
            continue
        assert (less.deployment, less.deployment.warnings) != (whole.deployment, whole.deployment.warnings), name
    cards = shortest_flags(whole, keep_cards_choices=True)
    assert {name for name in cards if name not in short} == {
        name for name in whole.flags.keys() - short if FLAG[name].of_card
    }
