"""The launch command reader: real command shapes, the engine's parsing rules, and input nobody should type."""

import gzip
import json
import shlex
from pathlib import Path

import pytest
from paths import DATA

from glm_kvplan.engines.sglang.environment import ENVIRONMENT
from glm_kvplan.engines.sglang.launch_command import read_launch_command

RELEASES = ("0.5.20", "0.5.21", "0.5.22", "0.5.23")
RESOLVE = DATA / "resolve.jsonl.gz"
LAUNCH = "python -m sglang.launch_server --model-path zai-org/GLM-5.3-Flash"


# The commands people have.


def test_issue_command() -> None:
    words = shlex.split(
        "python -m sglang.launch_server --model-path zai-org/GLM-5.3-Flash --tp 4 --kv-cache-dtype fp8_e4m3 "
        "--speculative-algorithm EAGLE --max-running-requests 96"
    )
    command = read_launch_command(words, "0.5.22")
    assert command.flags == {
        "tp_size": 4,
        "kv_cache_dtype": "fp8_e4m3",
        "speculative_algorithm": "EAGLE",
        "max_running_requests": 96,
    }
    assert command.model == "zai-org/GLM-5.3-Flash"
    assert command.positions["kv_cache_dtype"] == "word 8"
    assert (command.ignored, command.unknown, command.warnings) == (0, (), ())


@pytest.mark.parametrize(
    "front",
    [
        "",
        "exec ",
        "nohup ",
        "uv run ",
        "CUDA_VISIBLE_DEVICES=0,1 ",
        "env CUDA_VISIBLE_DEVICES=0,1 ",
        "sudo -E numactl --cpunodebind=0 --membind=0 ",
        "srun --ntasks=2 --gpus-per-node=8 ",
        "mpirun -np 2 --allow-run-as-root ",
        "docker run --rm -it --gpus all --shm-size 32g -p 30000:30000 -v $HOME/.cache:/root/.cache "
        "--env HF_TOKEN=$HF_TOKEN --ipc=host lmsysorg/sglang:v0.5.21 ",
        "docker exec -it server ",
        "kubectl exec -n serving pod/glm-0 -- ",
        "kubectl run glm --image=lmsysorg/sglang:v0.5.21 --env=A=b -- ",
        "if true; then ",
    ],
)
@pytest.mark.parametrize(
    "launch",
    [
        "python3 -m sglang.launch_server --model-path GLM-5.3-Flash",
        "/opt/venv/bin/python -m sglang.launch_server --model GLM-5.3-Flash",
        "python sglang/launch_server.py --model-path=GLM-5.3-Flash",
        "sglang serve GLM-5.3-Flash --model-type llm",
        "/opt/venv/bin/sglang serve --model-path GLM-5.3-Flash",
        "python3 -m dynamo.sglang --model-path GLM-5.3-Flash",
    ],
)
def test_wrappers(front: str, launch: str) -> None:
    command = read_launch_command(f"{front}{launch} --tp 4 --host 0.0.0.0 --trust-remote-code")
    assert command.flags == {"tp_size": 4}
    assert command.model == "GLM-5.3-Flash"
    assert (command.ignored, command.unknown) == (2, ())


@pytest.mark.parametrize(
    "text",
    [
        "bash -c 'python -m sglang.launch_server --tp 2'",
        'docker run img bash -lc "cd /x && exec python -m sglang.launch_server --tp 2"',
        "ssh node0 'nohup python -m sglang.launch_server --tp 2 > log 2>&1 &'",
        "python -m sglang.launch_server --tp 2 > server.log 2>&1 &",
        "python -m sglang.launch_server --tp 2 2>&1 | tee server.log",
        "pip install sglang && python -m sglang.launch_server --tp 2; echo done",
        "echo python -m sglang.launch_server starts\npython -m sglang.launch_server --tp 2",
        "python -m sglang.launch_server \\\r\n  --tp 2\r\n",
        "set -euo pipefail\npkill -f sglang.launch_server || true\nsglang serve x --tp 2",
        "\ufeffsglang serve x --tp 2",
        "--tp 2",
        "--tp-size=2",
        "sglang serve x '--tp' \"2\"",
        "sglang serve x --t\\p 2 # --tp 4",
    ],
)
def test_scripts(text: str) -> None:
    assert read_launch_command(text).flags == {"tp_size": 2}


def test_script_with_everything() -> None:
    command = read_launch_command(
        """#!/usr/bin/env bash
# GLM-5.3-Flash on one node; don't change the fraction
set -e
MODEL=zai-org/GLM-5.3-Flash
TP="${TP:-8}"
export SGLANG_VLM_CACHE_SIZE_MB=200
export SGLANG_LOG_MS=1 CUDA_VISIBLE_DEVICES=0
ARGS=(
  --tp "$TP"              # tensor parallel
  --mem-fraction-static 0.85
)
ARGS+=(--max-running-requests 64)
EXTRA="--kv-cache-dtype fp8_e4m3 --disable-radix-cache"
SGLANG_MAMBA_CONV_DTYPE=float32 exec python3 -m sglang.launch_server \\
  --model-path "$MODEL" --revision main \\
  "${ARGS[@]}" $EXTRA --port ${PORT} \\
  --json-model-override-args '{"max_position_embeddings": 262144}'
"""
    )
    assert command.flags == {
        "tp_size": 8,
        "mem_fraction_static": 0.85,
        "max_running_requests": 64,
        "kv_cache_dtype": "fp8_e4m3",
        "disable_radix_cache": True,
        "json_model_override_args": {"max_position_embeddings": 262144},
    }
    assert command.environment == {"SGLANG_VLM_CACHE_SIZE_MB": "200", "SGLANG_MAMBA_CONV_DTYPE": "float32"}
    assert (command.model, command.revision) == ("zai-org/GLM-5.3-Flash", "main")
    assert command.ignored == 1  # --port


def test_containers_keep_the_outer_environment_outside() -> None:
    name = "SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK"
    run = "docker run {} image sglang serve x"
    assert read_launch_command(f"export {name}=1\n" + run.format("")).environment == {}
    assert read_launch_command(f"export {name}=1\n" + run.format(f"-e {name}")).environment == {name: "1"}
    for given_as in (f"-e {name}=1", f"-e{name}=1", f"--env {name}=1", f"--env={name}=1"):
        assert read_launch_command(run.format(given_as)).environment == {name: "1"}
    inner = f"docker run -e {name}=1 image bash -c 'export {name}=0; sglang serve x'"
    assert read_launch_command(inner).environment == {name: "0"}
    assert read_launch_command(f"srun --export=ALL,{name}=1 sglang serve x").environment == {name: "1"}
    assert name in ENVIRONMENT


def test_an_unexported_variable_is_no_environment() -> None:
    name = "SGLANG_PP_LAYER_PARTITION"
    assert read_launch_command(f"{name}=22,23\nsglang serve x").environment == {}
    assert read_launch_command(f"{name}=22,23\nexport {name}\nsglang serve x").environment == {name: "22,23"}
    assert read_launch_command(f"{name}=22,23 sglang serve x").environment == {name: "22,23"}


def _command_of(flags: dict[str, object]) -> list[str]:
    words = shlex.split(LAUNCH)
    for name, value in flags.items():
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(str(value))
    return words


@pytest.mark.parametrize("path", sorted((DATA / "cases").glob("*.json")), ids=lambda path: path.stem)
def test_every_measured_case_is_read(path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))
    flags = {name: value for name, value in case["flags"].items() if name != "context_rows"}
    for release in RELEASES:
        words = _command_of(flags)
        assert read_launch_command(words, release).flags == flags
        assert read_launch_command(shlex.join(words), release).flags == flags


def test_every_argv_of_the_engine_is_read() -> None:
    with gzip.open(RESOLVE, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    assert len(records) == 4368
    for record in records:
        release = record["engine"].removeprefix("sglang-")
        flags = read_launch_command([*shlex.split(LAUNCH), *record["argv"]], release).flags
        resolved = record.get("resolved", {})
        for name in ("tp_size", "pp_size", "disable_radix_cache", "mamba_ssm_dtype", "max_total_tokens"):
            if name in flags and name in resolved:
                assert resolved[name] == flags[name]
