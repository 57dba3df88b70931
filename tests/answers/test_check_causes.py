"""The line of a launch file that a shortfall is put on, for each form of such a file; what an estimate looks like."""

import json
from pathlib import Path
from typing import Any

import pytest

from glm_kvplan.answers.check.check_answer import CheckAnswer, answer_check
from glm_kvplan.answers.check.check_page import check_page
from glm_kvplan.answers.check.checking import check_files
from glm_kvplan.answers.check.finding_words import judged
from glm_kvplan.show.github import github_lines
from glm_kvplan.show.json import document
from glm_kvplan.show.markdown import markdown
from glm_kvplan.show.sarif import sarif

SGLANG = "sglang serve zai-org/GLM-5.3-Flash"
MANY = "expect:\n  min_context: 64k\n  min_concurrency: 40\n"
SCRIPT = f"""#!/bin/bash
# --max-running-requests 16 was measured
ARGS=(--tp 4)
ARGS+=(--max-running-requests 16)
{SGLANG} "${{ARGS[@]}}" \\
  --kv-cache-dtype fp8_e4m3
"""
COMPOSE = """services:
  small:
    image: lmsysorg/sglang:v0.5.21
    command: [--model-path, zai-org/GLM-5.3-Flash, --tp, "4", --max-running-requests=8]
  large:
    image: lmsysorg/sglang:v0.5.21
    command:
      - --model-path=zai-org/GLM-5.3-Flash
      - --tp
      - "4"
      - --max-running-requests=16
"""
MANIFEST = """apiVersion: v1
kind: Pod
metadata: {name: glm}
spec:
  containers:
    - name: proxy
      command: [nginx]
    - name: server
      command: [python3, -m, sglang.launch_server]
      args:
        - --model-path
        - zai-org/GLM-5.3-Flash
        - --tp-size
        - "4"
        - --max-running-requests
        - "16"
"""
CONFIG = "tp-size: 4\nmodel-path: zai-org/GLM-5.3-Flash\nmax-running-requests: 16\n"
DOCKERFILE = f"""FROM lmsysorg/sglang:v0.5.21
RUN true
CMD {SGLANG} \\
    --tp 4 \\
    --max-running-requests 16
"""
PYTHON = """import subprocess
subprocess.run(["sglang", "serve", "zai-org/GLM-5.3-Flash", "--tp", "4",
    "--max-running-requests", "16"])
"""
VLLM = "#!/bin/bash\nvllm serve zai-org/GLM-5.3-Flash -tp 4 \\\n  --max-num-seqs 16\n"


def check(folder: Path, text: str, expect: str = MANY, name: str = "serve.sh", more: str = "") -> CheckAnswer:
    (folder / name).write_text(text)
    (folder / "a.kvplan.yaml").write_text(f"gpu: H200\nlaunch_file: {name}\n{more}{expect}")
    return answer_check(check_files([str(folder / "a.kvplan.yaml")]))


def causes(answer: CheckAnswer) -> dict[str, tuple[str, int]]:
    (file,) = answer.files
    return {one.name: (Path(one.cause.path).name, one.cause.line) for one in file.findings if one.cause is not None}


@pytest.mark.parametrize(
    ("name", "text", "more", "line"),
    [
        ("serve.sh", SCRIPT, "", 4),
        ("compose.yaml", COMPOSE, "container: large\n", 11),
        ("compose.yaml", COMPOSE, "container: small\n", 4),
        ("pod.yaml", MANIFEST, "", 15),
        ("config.yaml", CONFIG, "", 3),
        ("Dockerfile", DOCKERFILE, "", 5),
        ("serve.py", PYTHON, "", 3),
        ("vllm.sh", VLLM, "", 3),
    ],
)
def test_the_flag_that_binds_is_marked_where_it_stands(
    tmp_path: Path, name: str, text: str, more: str, line: int
) -> None:
    answer = check(tmp_path, text, name=name, more=more)
    assert causes(answer) == {"min_concurrency": (name, line)}
    path = tmp_path / "a.kvplan.yaml"
    own = path.read_text().splitlines().index("  min_concurrency: 40") + 1
    (command, _) = github_lines(judged(answer))
    assert command.startswith(
        f"::error file={tmp_path / name},line={line},title=min_concurrency falls short::wanted 40"
    )
    assert command.endswith(f"(for {path}, line {own})")
    (run,) = sarif(judged(answer))["runs"]
    (result,) = run["results"]
    there, related = result["locations"][0]["physicalLocation"], result["relatedLocations"][0]["physicalLocation"]
    assert there["artifactLocation"]["uri"].endswith(f"/{name}") and there["region"] == {"startLine": line}
    assert related["artifactLocation"]["uri"].endswith("/a.kvplan.yaml") and related["region"] == {"startLine": own}
    assert f"in {markdown_of(tmp_path / name)}, line {line}" in markdown(check_page(answer))
    finding = find(json.loads(json.dumps(document("check", answer))), "min_concurrency")
    assert finding["cause"] == {"path": str(tmp_path / name), "line": line} and finding["line"] == own


def markdown_of(path: Path) -> str:
    from glm_kvplan.show.printable import markdown as plain

    return plain(str(path))


def find(answer: Any, name: str) -> Any:
    return next(one for one in answer["files"][0]["findings"] if one["name"] == name)


def test_a_refusal_and_what_the_reader_says_are_marked(tmp_path: Path) -> None:
    answer = check(tmp_path, f"{SGLANG} \\\n --tp 8 \\\n --moe-dp-size 3\n", "")
    assert causes(answer) == {"boots": ("serve.sh", 3)}
    answer = check(tmp_path, f"\n\n{SGLANG} --tp $TP\n", "")
    (error,) = (file.error for file in answer.files)
    assert error is not None and error.cause is not None and error.line == 2
    assert (Path(error.cause.path).name, error.cause.line) == ("serve.sh", 3)
    assert next(github_lines(judged(answer))).startswith(f"::error file={tmp_path / 'serve.sh'},line=3,title=unusable")
    answer = check(tmp_path, f"{SGLANG} --tp 8 \\\n  --frobnicate 3\n", "")
    (error,) = (file.error for file in answer.files)
    assert error is not None and error.cause is not None
    assert (Path(error.cause.path).name, error.cause.line) == ("serve.sh", 2)
    wrapped = SGLANG.replace("sglang.launch_server", "dynamo.sglang").replace(
        "sglang serve", "python -m dynamo.sglang --model"
    )
    answer = check(tmp_path, f"{wrapped} --tp 8 \\\n  --frobnicate 3\n", "")
    assert causes(answer) == {"launch": ("serve.sh", 2)}


def test_a_comment_is_not_the_line(tmp_path: Path) -> None:
    """What a comment says of a flag is nobody's; a `#` inside a word begins none."""
    wrapped = "python -m dynamo.sglang --model zai-org/GLM-5.3-Flash --tp 8"
    answer = check(tmp_path, f"# --frobnicate is old\n{wrapped} \\\n  --frobnicate 3\n", "")
    assert causes(answer) == {"launch": ("serve.sh", 3)}
    answer = check(tmp_path, f"MODEL=a#b; {wrapped} --frobnicate 3\n", "")
    assert causes(answer) == {"launch": ("serve.sh", 1)}


def test_what_the_launch_does_not_say_stays_with_the_deployment_file(tmp_path: Path) -> None:
    """A flag that the deployment file gives itself, and one that nobody gave."""
    own = "flags: {max_running_requests: 16}\n"
    assert causes(check(tmp_path, SCRIPT, more=own)) == {}
    assert causes(check(tmp_path, f"{SGLANG} --tp 4\n", "expect: {min_total_tokens: 900m}\n")) == {}


def test_an_estimate_is_marked_and_what_no_estimate_moves_is_not(tmp_path: Path) -> None:
    expect = "expect: {min_context: 64k, min_total_tokens: 9000, max_running_requests: 16, headroom: 1}\n"
    for memory, marks in (("", True), ("memory: {pre_gib: 138.5, available_gib: 62.0}\n", False)):
        answer = check(tmp_path, SCRIPT, expect, more=memory)
        found = {one.name: one.estimated for one in answer.files[0].findings if one.wanted is not None}
        moved = {name for name, estimated in found.items() if estimated}
        assert moved == ({"min_total_tokens", "headroom"} if marks else set())
        text = markdown(check_page(answer))
        assert ("\\~" in text) is marks and "| 16 requests | 16 requests |" in text


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        (f"{SGLANG} --tp 2", "--tp-size 4 on 4 GPUs, not 2"),
        ("vllm serve zai-org/GLM-5.3-Flash -tp 4", "--data-parallel-size 2 on 8 GPUs, not 4"),
    ],
)
def test_a_change_that_takes_more_gpus_says_how_many(tmp_path: Path, launch: str, words: str) -> None:
    expect = "expect: {min_context: 128k, min_concurrency: 100}\n" if launch.startswith("vllm") else ""
    answer = check(tmp_path, f"{launch}\n", expect)
    changes = [change for one in answer.files[0].findings for change in one.changes]
    assert words in [change.text for change in changes]
    assert all((" GPUs, not " in change.text) == any("size" in flag for flag in change.flags) for change in changes)
