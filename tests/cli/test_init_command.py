"""`kvplan init`: a first deployment file, whose check says what the launch itself comes to."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import running
import yaml
from paths import ROOT

SGLANG = ("--", "sglang", "serve", "zai-org/GLM-5.3-Flash", "--tp", "4")
VLLM = ("--", "vllm", "serve", "zai-org/GLM-5.3-Flash", "-tp", "4")


def kvplan(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return running.kvplan(*words, folder=folder)


@pytest.mark.parametrize("launch", [SGLANG, VLLM], ids=["sglang", "vllm"])
def test_check_says_what_solve_says(tmp_path: Path, launch: tuple[str, ...]) -> None:
    """As many requests as solve counts hold, one more does not."""
    load = ("--gpu", "h200", "--context", "64k")
    solved = json.loads(kvplan(tmp_path, "solve", *load, "--json", *launch).stdout)["served"]
    (served,) = (
        one["requests"] for one in (solved if isinstance(solved, list) else [solved]) if one["contexts"] == "65,536"
    )
    for requests, code, verdict in ((served, 0, "holds"), (served + 1, 1, "falls short")):
        done = kvplan(tmp_path, "init", *load, "--concurrency", str(requests), "--force", *launch)
        assert (done.returncode, done.stderr) == (code, "kvplan: wrote serve.kvplan.yaml\n")
        assert done.stdout.startswith(f"serve.kvplan.yaml: {verdict}\n")
        checked = kvplan(tmp_path, "check", ".")
        assert (checked.returncode, checked.stdout) == (code, done.stdout)


def test_without_a_launch_nothing_is_written(tmp_path: Path) -> None:
    done = kvplan(tmp_path, "init", "--gpu", "h200")
    assert done.returncode == 2 and "give --launch FILE" in done.stderr and not [*tmp_path.iterdir()]


def test_a_launch_without_a_flag_of_memory_is_one(tmp_path: Path) -> None:
    """Alone on one GPU it does not start; the file can be used all the same."""
    done = kvplan(tmp_path, "init", "--gpu", "h200", "--", "vllm", "serve", "zai-org/GLM-5.3-Flash")
    assert done.returncode == 1 and done.stdout.startswith("serve.kvplan.yaml: falls short\n")


def test_the_file_has_the_flags_that_touch_memory_and_no_secret(tmp_path: Path) -> None:
    words = ("--api-key", "S3CR3T", "--kv-cache-dtype", "fp8_e4m3", "--log-level", "info")
    done = kvplan(tmp_path, "init", "-o", "-", "--gpu", "b200", "--engine", "0.5.23", *SGLANG, *words)
    assert done.returncode == 0 and "S3CR3T" not in done.stdout + done.stderr
    assert yaml.safe_load(done.stdout) == {
        "model": "zai-org/GLM-5.3-Flash",
        "engine": "0.5.23",
        "gpu": "B200",
        "flags": {"tp_size": 4, "kv_cache_dtype": "fp8_e4m3"},
        "expect": {"headroom": "fits"},
    }
    assert "--context and --concurrency say more" in done.stderr


def test_a_flag_of_json_is_kept_without_its_secrets(tmp_path: Path) -> None:
    override = {"password": "S3CR3T", "num_key_value_heads": 4, "a": [{"api_key": "S3CR3T"}]}
    words = ("--json-model-override-args", json.dumps(override), "--speculative-algorithm", "EAGLE")
    words += ("--speculative-draft-model-path", "https://u:S3CR3T@example.org/zai-org/GLM-5.3-Flash")
    done = kvplan(tmp_path, "init", "-o", "-", "--gpu", "b200", *SGLANG, *words)
    assert done.returncode == 0 and "S3CR3T" not in done.stdout + done.stderr
    kept = yaml.safe_load(done.stdout)["flags"]["json_model_override_args"]
    assert kept == {"num_key_value_heads": 4, "a": [{}]}


@pytest.mark.parametrize(("name", "says"), [("serve.yaml", "is the launch's own file"), (".yaml", "call it NAME")])
def test_the_launch_is_never_replaced_and_the_name_is_one_that_check_reads(
    tmp_path: Path, name: str, says: str
) -> None:
    launch = tmp_path / "serve.yaml"
    launch.write_text("sglang serve zai-org/GLM-5.3-Flash --tp 4\n")
    (tmp_path / "linked.yaml").symlink_to(launch)
    for output in (name, "linked.yaml" if name == launch.name else name):
        done = kvplan(tmp_path, "init", "--gpu", "h200", "--launch", launch.name, "-o", output, "--force")
        assert done.returncode == 2 and says in done.stderr
    assert launch.read_text().startswith("sglang serve") and not (tmp_path / ".yaml").exists()


def test_a_mix_and_switches_are_kept(tmp_path: Path) -> None:
    done = kvplan(
        tmp_path,
        *("init", "-o", "-", "--gpu", "h200", "--context", "0.8:8k,0.2:128k", "--concurrency", "40"),
        *("--confidence", "mean", "--env", "SGLANG_MAMBA_CONV_DTYPE=float32", *SGLANG),
    )
    document = yaml.safe_load(done.stdout)
    assert document["environment"] == {"SGLANG_MAMBA_CONV_DTYPE": "float32"}
    expect = document["expect"]
    assert expect["contexts"] == {8192: 4, 131072: 1} and expect["confidence"] == "mean"
    assert expect["min_concurrency"] == 40


def test_a_launch_file_is_named_not_copied(tmp_path: Path) -> None:
    for name in ("mode.sh", "mode.env", "prefill-decode.yaml"):
        shutil.copy(ROOT / "examples" / "launch" / name, tmp_path)
    (tmp_path / "deploy").mkdir()
    words = ("init", "--gpu", "h200", "--launch", "mode.sh", "--set", "MODE=decode", "--max-running-requests", "64")
    done = kvplan(tmp_path, *words)
    assert done.returncode == 0, done.stdout
    document = yaml.safe_load((tmp_path / "serve.kvplan.yaml").read_text())
    assert document["launch_file"] == "mode.sh" and document["set"] == {"MODE": "decode"}
    assert document["flags"] == {"max_running_requests": 64} and "model" not in document
    words = ("init", "--launch", "prefill-decode.yaml", "--container", "glm-decode", "-o", "d.kvplan.yaml")
    assert kvplan(tmp_path, *words).returncode == 0
    document = yaml.safe_load((tmp_path / "d.kvplan.yaml").read_text())
    assert (document["container"], document["gpu"]) == ("glm-decode", "GB200")
    done = kvplan(
        tmp_path, "init", "--launch", "prefill-decode.yaml", "--container", "glm-decode", "-o", "deploy/x.yaml"
    )
    assert (done.returncode, done.stdout) == (2, "") and "outside the folder" in done.stderr
    assert not (tmp_path / "deploy" / "x.yaml").exists()


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("-o", "x.toml", *SGLANG), 2, "a deployment file is written as YAML"),
        (("-o", "there.yaml", *SGLANG), 2, "--output there.yaml: the file exists; give --force"),
        (("-o", "gone/x.yaml", *SGLANG), 2, "--output gone/x.yaml"),
        (("--launch", "-"), 2, "the launch text is empty"),
        (("--concurrency", "x", *SGLANG), 2, "--concurrency"),
        (("--tp-size", "8", "--moe-dp-size", "3"), 1, "--moe-dp-size"),
    ],
)
def test_nothing_is_written_where_something_is_wrong(
    tmp_path: Path, words: tuple[str, ...], code: int, says: str
) -> None:
    (tmp_path / "there.yaml").write_text("mine")
    done = kvplan(tmp_path, "init", "--gpu", "h200", *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert says in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["there.yaml"]
    assert (tmp_path / "there.yaml").read_text() == "mine"
