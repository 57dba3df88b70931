"""Where a check's findings stand in the file, what they are called, and how they are tolerated."""

import io
from pathlib import Path

import pytest

from glm_kvplan.answers.check.checking import Checked, check_file, check_files, exit_code, files_of
from glm_kvplan.answers.check.findings import Finding
from glm_kvplan.errors import InputError

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: glm}
spec:
  containers:
  - name: server
    command: [sglang, serve, zai-org/GLM-5.3-Flash, --tp, '4', %s]
    resources: {limits: {nvidia.com/gpu: %d, memory: 256Gi}}
"""
HICACHE = "--enable-hierarchical-cache, --hicache-size, '100', --max-running-requests, '64'"
MEMORY = "memory: {pre_gib: 176.0, available_gib: 120.0}\n"


def check(folder: Path, text: str) -> Checked:
    path = folder / "plan.kvplan.yaml"
    path.write_text(text, encoding="utf-8")
    return check_file(str(path))


def pod(folder: Path, words: str = "--skip-server-warmup", gpus: int = 4) -> None:
    (folder / "pod.yaml").write_text(POD % (words, gpus))


def one(checked: Checked, name: str) -> Finding:
    assert checked.error is None, checked.error
    (found,) = (finding for finding in checked.found if finding.name == name)
    return found


def test_the_limit_of_a_container_is_that_of_its_manifest_unless_the_file_says_another(tmp_path: Path) -> None:
    """100 GB on each of four ranks against 256 GiB less the engine's reserve of 10; against 600 GiB they fit."""
    pod(tmp_path, HICACHE)
    text = f"gpu: B200\nlaunch_file: pod.yaml\n{MEMORY}expect: {{host_memory: fits}}\n"
    finding = one(check(tmp_path, text), "host_memory")
    assert (finding.status, finding.limit, finding.line) == ("fails", "container limit", 4)
    assert str(finding.found).endswith(" of 246.0")
    larger = check(tmp_path, text.replace("120.0}", "120.0, pod_gib: 600}"))
    assert one(larger, "host_memory").status == "holds"


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        ("flags: {tp_size: 4}\nsource: x\n", "assumed_gpu", 1),
        ("source: x\ngpu: B200\nflags: {tp_size: 4, max_running_requests: 8, max_mamba_cache_size: 10}\n",
         "requests_capped", 3),
        ("gpu: B200\nflags:\n  tp_size: 4\n  max_mamba_cache_size: 10\n  max_running_requests: 8\n",
         "requests_capped", 5),
        ("gpu: B200\nsource: x\nlaunch_file: pod.yaml\n", "gpu_count", 3),
        ("gpu: B200\nmemory: {pre_gib: 177.0, available_gib: 126.0}\nflags: {tp_size: 4, speculative_algorithm: EAGLE3,"
         " speculative_draft_model_path: d}\n", "resolve", 3),
        ("gpu: B200\nsource: x\nlaunch: sglang serve zai-org/GLM-5.3-Flash --tp 4 --tp 4\n", "launch", 3),
        ("gpu: B200\nflags: {tp_size: 4, mem_fraction_static: 0.97}\nsource: x\nmemory: {pre_gib: 176.25,"
         " available_gib: 130.0}\nexpect: {headroom: 0.1}\n", "headroom", 5),
    ],
)  # fmt: skip
def test_a_warning_stands_where_the_file_speaks_of_it(tmp_path: Path, text: str, name: str, line: int) -> None:
    pod(tmp_path, gpus=8)
    found = [finding for finding in check(tmp_path, text).found if finding.name == name and finding.wanted is None]
    assert [(finding.line, finding.status, finding.note) for finding in found] == [(line, "warns", "")]


def test_the_gpus_of_a_manifest_are_those_of_a_node(tmp_path: Path) -> None:
    """Two nodes of eight: a container of eight is what the layout has."""
    (tmp_path / "pod.yaml").write_text((POD % ("--nnodes, '2'", 8)).replace("--tp, '4'", "--tp, '16'"))
    checked = check(tmp_path, "gpu: H200\nlaunch_file: pod.yaml\n")
    assert checked.plan.gpus == 16 and checked.plan.hosts == 2
    assert not [finding for finding in checked.found if finding.name == "gpu_count"]


def test_a_warning_that_is_tolerated(tmp_path: Path) -> None:
    """It stands at its note, and counts no more; a note of what does not occur is told."""
    text = "flags: {tp_size: 8}\nexpect:\n  tolerate:\n    assumed_gpu: on purpose\n    gpu_count: never\n"
    checked = check(tmp_path, text)
    finding = one(checked, "assumed_gpu")
    assert (finding.status, finding.line, finding.note) == ("tolerated", 4, "on purpose")
    assert finding.why == f"no gpu is named, so an {checked.plan.gpu.name} is assumed"
    (note,) = (note for note in checked.notes if "tolerate" in note)
    assert note == "expect.tolerate.gpu_count: there is nothing to tolerate any more"
    assert checked.holds and checked.verdict == "holds"


def test_a_launch_in_another_folder_that_is_allowed_is_marked_too(tmp_path: Path) -> None:
    (tmp_path / "serve.sh").write_text("sglang serve zai-org/GLM-5.3-Flash --tp 4 \\\n  --max-running-requests 16\n")
    folder = tmp_path / "plans"
    folder.mkdir()
    path = folder / "a.yaml"
    path.write_text("gpu: B200\nlaunch_file: ../serve.sh\nexpect: {max_running_requests: 40}\n")
    assert check_file(str(path)).error is not None
    cause = one(check_file(str(path), root=tmp_path), "max_running_requests").cause
    assert cause is not None and cause.line == 2 and cause.path.endswith("serve.sh")


def test_an_expectation_that_holds_needs_no_note(tmp_path: Path) -> None:
    text = "gpu: B200\nflags: {tp_size: 4}\nexpect:\n  min_total_tokens: 1\n  tolerate: {min_total_tokens: why}\n"
    checked = check(tmp_path, text)
    finding = one(checked, "min_total_tokens")
    assert (finding.status, finding.note, finding.line) == ("holds", "", 4)
    assert any("expect.tolerate.min_total_tokens" in note for note in checked.notes)


def test_memory_that_cannot_be_is_told_at_its_key(tmp_path: Path) -> None:
    text = "gpu: B200\nflags: {tp_size: 4}\nmemory: {pre_gib: 100.0, available_gib: 130.0}\n"
    checked = check(tmp_path, text)
    assert checked.error is not None and checked.line == 3 and checked.verdict == "unusable" and not checked.holds


# --- several files ---------------------------------------------------------------------------------------------------


def test_what_a_folder_stands_for(tmp_path: Path) -> None:
    """Deployment files at any depth but below folders with a dot; a file itself stands for itself."""
    for name in (
        "b.kvplan.yaml",
        "a.kvplan.yml",
        "deep/er/c.kvplan.toml",
        ".git/d.kvplan.yaml",
        "e.yaml",
        "f.kvplan.txt",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "dir.kvplan.yaml").mkdir()
    (tmp_path / ".g.kvplan.yaml").write_text("x")
    found = [str(Path(path).relative_to(tmp_path)) for path in files_of(str(tmp_path))]
    assert found == [".g.kvplan.yaml", "a.kvplan.yml", "b.kvplan.yaml", "deep/er/c.kvplan.toml"]
    assert files_of("-") == ("-",) and files_of(str(tmp_path / "e.yaml")) == (str(tmp_path / "e.yaml"),)
    with pytest.raises(
        InputError, match=r"no file in it is called \*\.kvplan\.yaml, \*\.kvplan\.yml, \*\.kvplan\.toml"
    ):
        files_of(str(tmp_path / "dir.kvplan.yaml"))


def test_a_file_that_cannot_be_used_does_not_keep_the_others(tmp_path: Path) -> None:
    good, bad, empty = tmp_path / "good.yaml", tmp_path / "bad.yaml", tmp_path / "empty"
    good.write_text("gpu: B200\nflags: {tp_size: 4}\n")
    bad.write_text("gpu: B200\nflgs: 1\n")
    empty.mkdir()
    first, second, third = check_files([str(empty), str(bad), str(good), str(good)])
    assert first.path == str(empty) and first.error is not None and first.error.startswith("no file in it is called")
    assert (second.line, second.verdict) == (2, "unusable") and third.verdict == "holds"
    codes = [exit_code(found) for found in ([third], [third, second], [first])]
    assert codes == [0, 2, 2] and exit_code([]) == 0
    short = check(tmp_path, "gpu: B200\nflags: {tp_size: 4}\nexpect: {min_total_tokens: 900m}\n")
    assert short.verdict == "falls short" and [exit_code([short]), exit_code([short, second])] == [1, 2]


def test_a_file_from_standard_input_and_one_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, line in (("gpu: B200\nflags: {tp_size: 4}\n", 1), ("gpu: B200\nflgs: 1\n", 2)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        found = check_file("-")
        assert (found.path, found.line, found.error is None) == ("stdin", line, line == 1)
        assert found.error is None or found.error.startswith("unknown key")
    missing = check_file(str(tmp_path / "no.yaml"))
    assert missing.error is not None and missing.error.startswith("cannot be read") and missing.line == 1
    assert missing.file is missing.plan is missing.cause is None


def test_a_remark_of_the_launch_is_a_warning_and_no_note_too(tmp_path: Path) -> None:
    text = "gpu: B200\nlaunch: sglang serve /models/GLM-5.3-Flash --tp 4 --tp 4\n"
    checked = check(tmp_path, text)
    remark = one(checked, "launch").why
    assert checked.notes and remark in checked.plan.notes and remark not in checked.notes
    assert set(checked.plan.notes) == {remark, *checked.notes}


@pytest.mark.parametrize(("container", "line"), [("small", 9), ("glm/small", 9), ("large", 14), ("glm/large", 14)])
def test_the_line_of_a_flag_is_that_of_its_container(tmp_path: Path, container: str, line: int) -> None:
    begin = "apiVersion: v1\nkind: Pod\nmetadata: {name: glm}\nspec:\n  containers:\n"
    server = (
        "  - name: {}\n    command: [sglang, serve, zai-org/GLM-5.3-Flash, --tp, '4']\n    args:\n"
        "    - --max-running-requests\n    - '{}'\n"
    )
    (tmp_path / "pods.yaml").write_text(begin + server.format("small", 8) + server.format("large", 16))
    text = f"gpu: B200\nlaunch_file: pods.yaml\ncontainer: {container}\nexpect: {{max_running_requests: 40}}\n"
    cause = one(check(tmp_path, text), "max_running_requests").cause
    assert cause is not None and cause.line == line
