"""Start-up checks against the engine's own resolution on a CPU: refused or not, for launches that meet each check.

A block draft at hand there (`/draft`) verifies 8 tokens as DFLASH, 9 as DSPARK; HTTP/2's server is installed.
"""

import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from paths import DATA

import glm_kvplan as kv
from glm_kvplan.engines.planner import given
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.launch_command import read_launch_command
from glm_kvplan.engines.sglang.profile import releases
from glm_kvplan.errors import KvplanError

CHECKPOINTS: dict[str, dict[str, Any] | None] = {
    "fp8": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]},
    "nvfp4": {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16},
    "bf16": None,
    "modelopt-fp8": {"quant_method": "modelopt", "quant_algo": "FP8"},
    "modelopt-mxfp8": {"quant_method": "modelopt", "quant_algo": "MXFP8", "group_size": 32},
    "modelopt-int4": {"quant_method": "modelopt", "quant_algo": "INT4_AWQ"},
    "modelopt-mixed": {
        "quant_method": "modelopt",
        "quant_algo": "MIXED_PRECISION",
        "quantized_layers": {
            "model.layers.0.mlp": {"quant_algo": "NVFP4"},
            "model.layers.1.mlp": {"quant_algo": "FP8"},
        },
    },
    "modelopt-w4a8": {
        "quant_method": "modelopt",
        "quant_algo": "MIXED_PRECISION",
        "quantized_layers": {"model.layers.0.mlp": {"quant_algo": "W4A8"}, "model.layers.1.mlp": {"quant_algo": "FP8"}},
    },
    "mxfp8": {"quant_method": "mxfp8", "activation_scheme": "dynamic", "weight_block_size": [1, 32]},
    "w4afp8": {"quant_method": "w4afp8"},
}
# The engine resolves a negative fraction here and ends when it sizes by it; it is refused at once.
NO_MEMORY_LEFT = "is left for weights and pools"


@cache
def records() -> tuple[dict[str, Any], ...]:
    lines = gzip.decompress((DATA / "start_checks.jsonl.gz").read_bytes()).splitlines()
    return tuple(json.loads(line) for line in lines)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints")
    config = json.loads((Path(kv.__file__).parent / "model/data/glm-5.3-flash.config.json").read_text(encoding="utf-8"))
    config.pop("quantization_config", None)
    for name, stored in CHECKPOINTS.items():
        own = {**config, **({"quantization_config": stored} if stored else {})}
        (folder / f"{name}.json").write_text(json.dumps(own))
    return folder


def planned(record: dict[str, Any], checkpoints: Path) -> Deployment:
    command = read_launch_command(["sglang", "serve", "/model", *record["argv"]], record["version"])
    assert not command.unknown
    model = str(checkpoints / f"{record['ckpt']}.json")
    environment = record.get("env")
    plan = given(
        {}, launch=command, engine=record["version"], gpu=record["gpu"], environment=environment, model=model
    ).plan()
    return plan.deployment


@pytest.mark.parametrize("release", releases())
def test_what_the_engine_refuses_is_refused(release: str, checkpoints: Path) -> None:
    seen = Counter[str]()
    for record in records():
        if record["version"] != release:
            continue
        try:
            deployment = planned(record, checkpoints)
        except KvplanError as error:
            if NO_MEMORY_LEFT in str(error):
                continue
            assert record["refused"] is not None, (record["argv"], str(error))
            seen["refused"] += 1
            continue
        assert record["refused"] is None, (record["argv"], record["refused"])
        for name, value in record.get("resolved", {}).items():
            assert getattr(deployment, name) == value, (name, record["argv"])
        seen["started"] += 1
    assert seen["started"] > 20
    assert seen["refused"] > 1


def test_the_published_checkpoint_is_known_by_its_name() -> None:
    """Named in the launch it is the bundled copy itself, not something that the copy stands in for."""
    command = read_launch_command("sglang serve zai-org/GLM-5.3-Flash --quantization awq", "0.5.23")
    with pytest.raises(KvplanError, match="the checkpoint says fp8"):
        given({}, launch=command, gpu="b200").plan()
    other = read_launch_command("sglang serve /models/mine --quantization awq", "0.5.23")
    assert given({}, launch=other, gpu="b200").plan().deployment.quantization == "awq"


def test_an_unread_checkpoint_is_not_refused_for_its_format() -> None:
    """Nobody knows what a name stands for: kernels for NVFP4 experts are refused where the config says otherwise."""
    words = "--tp 4 --ep 4 --moe-a2a-backend deepep --moe-runner-backend flashinfer_cutedsl --deepep-mode low_latency"
    unread, published = (
        given({}, launch=read_launch_command(f"sglang serve {model} {words}", "0.5.23"), gpu="b200")
        for model in ("/models/mine", "zai-org/GLM-5.3-Flash")
    )
    assert unread.plan().deployment.moe_runner_backend == "flashinfer_cutedsl"
    with pytest.raises(KvplanError, match="runs NVFP4 experts only"):
        published.plan()
