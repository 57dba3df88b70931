"""The examples hold, and so do the ways to run them in CI: the workflow, the pre-commit hooks, the one-liner."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from paths import ROOT

from glm_kvplan.answers.check.checking import check_file, files_of

EXAMPLES = ROOT / "examples"
FILES = list(files_of(str(EXAMPLES)))


def bash(script: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=cwd,
        env={**os.environ, "PATH": path, "NO_COLOR": "1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_kvplan_check_examples() -> None:
    done = bash("kvplan check examples --strict", ROOT)
    assert done.returncode == 0, done.stdout
    assert f"{len(FILES)} files: {len(FILES)} hold, 0 fall short, 0 unusable" in done.stdout
    assert "warning" not in done.stdout


@pytest.mark.parametrize("name", FILES, ids=lambda name: Path(name).name)
def test_an_example_names_its_source_and_expects_something(name: str) -> None:
    checked = check_file(name)
    assert checked.error is None and checked.file is not None
    assert checked.file.content.source
    assert re.search(r"(?m)^# Source: \S", Path(name).read_text(encoding="utf-8"))
    assert any(value is not None for value in checked.file.content.expect.wanted)
    assert not [note for note in checked.notes if "nothing to tolerate" in note]
    schema = re.match(r"# yaml-language-server: \$schema=(\S+)|#:schema (\S+)", Path(name).read_text(encoding="utf-8"))
    assert schema is not None and (EXAMPLES / (schema[1] or schema[2])).is_file()


def test_there_are_eight_deployments_from_operators() -> None:
    sources = [check_file(name).file for name in FILES]
    published = [file for file in sources if file is not None and "run on a CPU" not in (file.content.source or "")]
    assert len(published) >= 8


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A deployment repository with one file that holds and its launch script."""
    (tmp_path / "launch").mkdir()
    for name in ("h200-tp8-dp8.kvplan.yaml", "launch/h200-dp-attention.sh"):
        (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes())
    return tmp_path


def break_it(repository: Path) -> None:
    """A launch script whose weights leave nothing: the pull request that CI is there to stop."""
    script = repository / "launch" / "h200-dp-attention.sh"
    script.write_text(script.read_text().replace("--tp-size 8", "--mem-fraction-static 0.3 --tp-size 8"))


def workflow_steps() -> dict[str, str]:
    workflow = yaml.safe_load((EXAMPLES / "github-workflow.yml").read_text(encoding="utf-8"))
    assert set(workflow) >= {"name", True, "jobs", "permissions"}  # YAML 1.1 reads the key `on` as true
    (job,) = workflow["jobs"].values()
    for step in job["steps"]:
        assert ("uses" in step) != ("run" in step)
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"])
    return {step["name"]: step["run"] for step in job["steps"] if "run" in step}


def test_the_workflow_s_steps_run_and_stop_a_bad_change(repository: Path) -> None:
    steps = workflow_steps()
    assert steps.pop("Install") == 'pip install "$KVPLAN"'
    summary = repository / "summary.md"
    git = "git init -q -b main . && git add . && git -c user.name=n -c user.email=n@n commit -q -m base"
    assert bash(f"{git} && git update-ref refs/remotes/origin/main HEAD", repository).returncode == 0
    for broken in (False, True):
        if broken:
            break_it(repository)
        codes = {
            name: bash(script, repository, GITHUB_STEP_SUMMARY=str(summary), GITHUB_BASE_REF="main").returncode
            for name, script in steps.items()
        }
        assert codes == {"Check": int(broken), "Summary": 0, "What changes": 0, "JUnit report": 0}
    assert ": falls short\n" in summary.read_text(encoding="utf-8")
    assert "## from origin/main to the work tree" in summary.read_text(encoding="utf-8")
    assert "h200-tp8-dp8.kvplan.yaml: changed" in summary.read_text(encoding="utf-8")
    assert "<failure" in (repository / "kvplan.xml").read_text(encoding="utf-8")


def test_the_pre_commit_hooks_stop_a_bad_change(repository: Path) -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert [hook["id"] for hook in hooks] == ["kvplan-check", "kvplan-check-all"]
    files = sorted(str(path.relative_to(repository)) for path in repository.rglob("*") if path.is_file())
    for broken in (False, True):
        if broken:
            break_it(repository)
        for hook in hooks:
            assert {"id", "name", "entry", "language"} <= hook.keys()
            matching = [name for name in files if re.search(hook.get("files", ""), name)]
            passed = matching if hook.get("pass_filenames", True) else []
            done = bash(" ".join([hook["entry"], *passed]), repository)
            assert done.returncode == int(broken), done.stdout
            assert matching


def test_the_one_liner_of_the_documentation(repository: Path) -> None:
    line = next(iter(re.findall(r"`(kvplan check deployments/[^`]*)`", (ROOT / "docs" / "check.md").read_text())))
    script = line.replace("deployments/", ".")
    assert bash(script, repository).returncode == 0
    break_it(repository)
    assert bash(script, repository).returncode == 1
