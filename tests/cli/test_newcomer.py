"""What people type first: flags without their switch, a launch without its dashes, files of another kind."""

import json
import os
from pathlib import Path

import pytest
from paths import ROOT
from running import ended, run

import glm_kvplan as kv
from glm_kvplan.cli.workload_options import read_confidence

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
def _width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


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


@pytest.mark.parametrize("command", ["solve", "estimate", "info gpus", "info model"])
def test_a_file_where_none_belongs(capsys: pytest.CaptureFixture[str], command: str) -> None:
    code, out, err = run(capsys, *command.split(), "plan.kvplan.yaml")
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
    assert "held against the memory limit of container glm/engine: --pod-gib 256" in err
    assert "--pod-gib" not in run(capsys, "estimate", "--launch", str(ROOT / "examples/launch/dynamo-b200-agg.yaml"))[2]


def test_a_launch_comes_through_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """`--launch <(helm template ...)` gives a pipe that can be read once."""
    reads, writes = os.pipe()
    os.write(writes, b"vllm serve zai-org/GLM-5.3-Flash --tensor-parallel-size 8\n")
    os.close(writes)
    code, out, _ = run(capsys, "solve", "--gpu", "h200", "--launch", f"/dev/fd/{reads}")
    os.close(reads)
    assert code == 0 and "on vLLM" in out


def test_a_host_size_without_the_host_cache(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("estimate", "--tp-size", "4", "--hicache-size", "100")
    code, out, err = run(capsys, *words)
    assert code == 0 and "Host memory" not in out
    assert err == "kvplan: note: --hicache-size builds no host pool without --enable-hierarchical-cache\n"
    assert run(capsys, *words, "--enable-hierarchical-cache")[2] == ""


def test_a_request_on_one_of_several_groups(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("estimate", "--tp-size", "8", "--dp-size", "8", "--enable-dp-attention", "--kv-cache-dtype", "fp8_e4m3")
    out = " ".join(run(capsys, *words)[1].split())
    assert "1 x 131,072 tokens; a rank has room for 1 request, 131,072 tokens, 5 state slots" in out
    # 131,072 x (5,808 + 1,452) B, 5 x 147,619,840 B, 22,528 + 4,194,320 B
    assert "one request on a rank: 1.69 GB = 951.6 MB for 131,072 tokens + 738.1 MB for 5 state slots" in out
    assert "a rank holds 2 requests" in " ".join(run(capsys, *words, "--concurrency", "16")[1].split())


def test_advice_says_what_its_memory_is(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("advise", "--gpu", "h100", "--tp-size", "8", "--context", "32k", "--concurrency", "64")
    out = " ".join(run(capsys, *words)[1].split())
    assert "free before the load" in out and "(estimated, +-" in out
    found = json.loads(run(capsys, *words, "--json")[1])
    low, high = found["served_span"]
    assert found["memory"]["how"] == "estimated" and found["memory"]["error_gib"] > 0
    assert low <= found["served"]["requests"] <= high
    assert (f"{low} to {high} within the memory's estimate" in out) is (low < high)
    # the same flags, solved by themselves at the low end
    available = found["memory"]["available_gib"] - found["memory"]["error_gib"]
    flags = [word for name, value in found["flags"].items() for word in (f"--{name.replace('_', '-')}", str(value))]
    memory = ("--pre-gib", str(found["memory"]["pre_gib"]), "--available-gib", str(available))
    solved = json.loads(run(capsys, "solve", "--gpu", "h100", "--tp-size", "8", *flags, *memory, "--json")[1])
    assert low == min(64, solved["max_total_num_tokens"] // 32768, solved["max_running_requests"])
    measured = json.loads(run(capsys, *words, "--pre-gib", "77", "--available-gib", "39", "--json")[1])
    assert measured["served_span"] == [measured["served"]["requests"]] * 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sweep", "--over", "mem-fraction-static=0.8-0.9"), "such as 0.85, or a range 0.80..0.90:0.05"),
        (("sweep", "--over", "tp-size=1:8"), "or a range 1..8, 1..8:x2"),
        (("explain", "row", "--context", "8k,128k"), "a topic is about requests of one length"),
        (("solve", "--confidence", "101%"), "or 50% and 99.99%"),
    ],
)
def test_what_cannot_be_read_is_answered_with_what_can(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert ended(*words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("share", ["0.999", "99.9%"])
def test_a_share_of_the_time_may_be_per_cent(share: str) -> None:
    assert read_confidence(share) == 0.999


@pytest.mark.parametrize(("command", "words"), [("check", "[OPTIONS] FILE..."), ("reconcile", "[OPTIONS] [LOG]")])
def test_help_brackets_what_may_be_left_out(capsys: pytest.CaptureFixture[str], command: str, words: str) -> None:
    assert ended(command, "--help") == 0
    assert f"Usage: kvplan {command} {words}" in capsys.readouterr().out


LAUNCH = ("--", "sglang", "serve", "zai-org/GLM-5.3-Flash", "--tp", "8")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """A command's exit code and its text in one line."""
    code, out, _ = run(capsys, *words)
    return code, " ".join(out.split())


@pytest.mark.parametrize(("words", "asked"), [((), "1 request"), (("--max-running-requests", "40"), "40 requests")])
def test_a_load_that_nobody_gave_is_said(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], asked: str
) -> None:
    code, _, err = run(capsys, "advise", "--gpu", "h200", *LAUNCH, *words)
    assert code == 0 and f"no --concurrency is given: this is for {asked} at once" in err
    assert run(capsys, "advise", "--gpu", "h200", "--concurrency", "2", *LAUNCH, *words)[2] == ""


def test_servers_side_by_side_are_as_many_as_the_search_finds(capsys: pytest.CaptureFixture[str]) -> None:
    load = ("--gpu", "h100", "--context", "128k", "--concurrency", "60")
    found = json.loads(run(capsys, "advise", *load, "--json", *LAUNCH)[1])
    gpus = 8 * found["servers"]
    assert (
        f"{found['servers']} of them with these flags, {gpus} GPUs, serve it all"
        in said(capsys, "advise", *load, *LAUNCH)[1]
    )
    assert found["servers"] == -(-60 // found["served"]["requests"])
    assert run(capsys, "advise", *load, "--gpus", str(gpus), *LAUNCH)[0] == 0
    assert run(capsys, "advise", *load, "--gpus", str(gpus - 8), *LAUNCH)[0] == 1


def test_a_fraction_of_the_launch_is_kept_on_any_number_of_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    """0.8 serves fewer than 50 on 8 GPUs, whether their number is given or not; 16 are two servers of it."""
    words = ("advise", "--gpu", "h200", "--context", "128k", "--concurrency", "50")
    kept = (*LAUNCH, "--mem-fraction-static", "0.8")
    assert run(capsys, *words, *kept)[0] == run(capsys, *words, "--gpus", "8", *kept)[0] == 1
    code, out = said(capsys, *words, "--gpus", "16", *kept)
    assert code == 0 and "--mem-fraction-static 0.8 " in out


def test_a_layout_that_no_number_fits_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = said(capsys, "advise", "--gpu", "h200", "--gpus", "4", "--concurrency", "2", *LAUNCH)
    assert code == 1 and "4 GPUs: with --tp-size 8 a server takes 8 GPUs, which do not divide them" in out
    vllm = ("--", "vllm", "serve", "m", "-tp", "4")
    code, out = said(capsys, "advise", "--gpu", "h200", "--gpus", "6", "--concurrency", "2", *vllm)
    assert code == 1 and "6 GPUs: with --tensor-parallel-size 4 no layout of a server that divides them" in out


def test_a_file_that_is_printed_is_checked_as_one_that_is_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "a.kvplan.yaml"
    for requests, code, verdict in (("100", 1, "falls short"), ("10", 0, "holds")):
        words = ("init", "--gpu", "h200", "--context", "128k", "--concurrency", requests, "--force")
        written = run(capsys, *words, "-o", str(file), *LAUNCH)
        printed = run(capsys, *words, "-o", "-", *LAUNCH)
        assert written[0] == printed[0] == code and printed[1] == file.read_text(encoding="utf-8")
        checked, judged = (" ".join(text.split()) for text in (written[1], printed[2]))  # the file's name is long
        assert judged.startswith(f"stdout: {verdict} ") and checked.endswith(judged.removeprefix("stdout:"))


def test_the_most_of_a_layout_stands_beside_the_command_s_own_limit(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("advise", "--gpu", "h200", "--gpus", "8", "--context", "8k", "--concurrency", "100")
    limited = ("--", "vllm", "serve", "m", "-tp", "8", "--max-num-seqs")
    assert "all servers together; the command's own limit is 256" in said(capsys, *words, *limited, "256")[1]
    assert "the command's own limit" not in said(capsys, *words, *limited, "4096")[1]


def test_a_longer_request_is_admitted_by_its_own_length(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ("init", "--gpu", "h200", "--context", "256k", "-o", str(tmp_path / "a.kvplan.yaml"))
    code, out = said(capsys, *words, "--", "vllm", "serve", "m", "-tp", "8", "--max-model-len", "131072")
    assert code == 1 and f"would hold with --max-model-len {256 * 1024} " in out and "1048576" not in out


@pytest.mark.parametrize("command", ["solve", "advise"])
def test_a_card_that_its_kernels_do_not_run_on_is_no_plain_yes(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """An A100 has compute capability 8.0; DeepGEMM and FlashMLA need 9.0."""
    dies, yes = "No attention kernels of its kind are known for this card", " Yes: "
    found = said(capsys, *command.split(), "--gpu", "a100", *LAUNCH)[1]
    assert dies in found and found.index(dies) < found.index(yes)
    assert dies not in said(capsys, *command.split(), "--gpu", "h100", *LAUNCH)[1]
