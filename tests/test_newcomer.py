"""What people type first: flags without their switch, a launch without its dashes, files of another kind."""

from pathlib import Path

import pytest

import glm_kvplan as kv
from glm_kvplan.cli import main
from glm_kvplan.report.console import console

ROOT = Path(__file__).parent.parent
MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: glm}
spec:
  containers:
    - name: engine
      command: [sglang, serve, zai-org/GLM-5.3-Flash, --tp, "4", --enable-hierarchical-cache, --hicache-size, "20"]
      resources: {limits: {memory: 256Gi}}
"""


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    console.cache_clear()


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as left:
        main(list(words))
    return left.value.code, *capsys.readouterr()


def test_the_package_lists_its_names() -> None:
    assert {"plan", "estimate", "Workload", "__version__"} <= set(dir(kv))
    assert all(getattr(kv, name) is not None for name in dir(kv))


@pytest.mark.parametrize(
    "words",
    ["python -m sglang.launch_server --model-path m --tp 8", "sglang serve m --tp 8", "/opt/x -m sglang serve m"],
)
def test_a_launch_without_its_dashes(capsys: pytest.CaptureFixture[str], words: str) -> None:
    code, out, err = run(capsys, "solve", "--gpu", "h200", *words.split())
    assert (code, out, err.count("\n")) == (2, "", 1) and "put -- in front of the launch command" in err


@pytest.mark.parametrize("command", ["solve", "estimate", "gpus", "model"])
def test_a_file_where_none_belongs(capsys: pytest.CaptureFixture[str], command: str) -> None:
    code, out, err = run(capsys, command, "plan.kvplan.yaml")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"'plan.kvplan.yaml' is one argument too many for kvplan {command}" in err and "--launch" in err


@pytest.mark.parametrize("file", sorted((ROOT / "examples").glob("*.kvplan.*")), ids=lambda path: path.name)
def test_a_deployment_file_is_no_launch(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    code, out, err = run(capsys, "solve", "--launch", str(file))
    assert (code, out) == (2, "") and "is a deployment file; `kvplan check` reads it" in err


def test_a_manifest_is_a_launch(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(MANIFEST, encoding="utf-8")
    code, out, err = run(capsys, "estimate", "--gpu", "b200", "--launch", str(file))
    assert code == 0 and "TP 4, attention TP 4" in out
    assert "memory limit is not applied here: --pod-gib 256" in err
    assert "--pod-gib" not in run(capsys, "estimate", "--launch", str(ROOT / "examples/launch/dynamo-b200-agg.yaml"))[2]


def test_a_host_size_without_the_host_cache(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("estimate", "--tp-size", "4", "--hicache-size", "100")
    code, out, err = run(capsys, *words)
    assert code == 0 and "Host memory" not in out
    assert err == "kvplan: note: --hicache-size builds no host pool without --enable-hierarchical-cache\n"
    assert run(capsys, *words, "--enable-hierarchical-cache")[2] == ""
