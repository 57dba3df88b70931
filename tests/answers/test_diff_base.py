"""`kvplan diff --base REV`: the deployment files of a work tree against those of a revision of git."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import running

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

SERVE = "sglang serve --model-path zai-org/GLM-5.3-Flash --mem-fraction-static 0.8 --tp $TP\n"
FLAGS = "gpu: H200\nflags: {{tp_size: {}}}\n"
VLLM = "gpu: B200\nengine: vllm-0.33.0\nflags: {tensor_parallel_size: 4}\n"


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    subprocess.run(["git", *who, "-C", str(folder), *arguments], check=True, capture_output=True)


def kvplan(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    environment["GIT_CEILING_DIRECTORIES"] = str(folder.parent)
    return running.kvplan("diff", *arguments, folder=folder, **environment)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A pull request: a launch's sourced file changes, one deployment comes, one goes, one is repaired."""
    folder = tmp_path / "repository"
    deploy = folder / "deploy"
    deploy.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    files = {
        "serve.sh": ". ./env.sh\n" + SERVE,
        "env.sh": "TP=4\n",
        "a.kvplan.yaml": "engine: 0.5.23\ngpu: H200\nlaunch_file: serve.sh\nexpect: {min_context: 64k}\n",
        "old.kvplan.yaml": FLAGS.format(8),
        "same.kvplan.yaml": FLAGS.format(8),
        "broken.kvplan.yaml": "gpu: H200\nflgs: {}\n",
    }
    for name, text in files.items():
        (deploy / name).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "base")
    (deploy / "env.sh").write_text("TP=8\n")
    (deploy / "old.kvplan.yaml").unlink()
    (deploy / "new.kvplan.yaml").write_text(VLLM)
    (deploy / "broken.kvplan.yaml").write_text(FLAGS.format(8))
    return folder


def everything(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {str(p): (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file()}


def test_every_file_is_compared_and_nothing_is_written(repository: Path, tmp_path: Path) -> None:
    before = everything(repository)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = kvplan(repository, "--base", "main", "--json", TMPDIR=str(scratch))
    assert (done.returncode, done.stderr) == (0, "")
    assert everything(repository) == before and not [*scratch.iterdir()]
    document = json.loads(done.stdout)
    assert (document["schema"], document["base"]) == ("glm-kvplan/diff --base", "main")
    found = {file["path"]: file for file in document["files"]}
    assert {path: file["status"] for path, file in found.items()} == {
        "deploy/a.kvplan.yaml": "changed",
        "deploy/broken.kvplan.yaml": "not comparable",
        "deploy/new.kvplan.yaml": "added",
        "deploy/old.kvplan.yaml": "removed",
        "deploy/same.kvplan.yaml": "the same",
    }
    changes = {change["name"]: change for change in found["deploy/a.kvplan.yaml"]["diff"]["changes"]}
    assert (changes["tp_size"]["before"], changes["tp_size"]["after"]) == (4, 8)  # of the launch's own sourced file
    assert found["deploy/a.kvplan.yaml"]["diff"]["a"]["label"] == "main:deploy/a.kvplan.yaml"
    broken = found["deploy/broken.kvplan.yaml"]
    assert broken["before_error"].startswith("main:deploy/broken.kvplan.yaml:2: unknown key 'flgs'")
    assert broken["after_error"] is None and broken["alone"]["side"]["gpus"] == 8
    assert found["deploy/new.kvplan.yaml"]["alone"]["side"]["engine"] == "vllm-0.33.0"


def test_the_comparison_is_that_of_two_files(repository: Path) -> None:
    """What `diff A B` says of the same two states."""
    (repository / "b.yaml").write_text((repository / "deploy/a.kvplan.yaml").read_text())
    (repository / "serve.sh").write_text("TP=4\n" + SERVE)
    two = json.loads(kvplan(repository, "b.yaml", "deploy/a.kvplan.yaml", "--json").stdout)
    one = json.loads(kvplan(repository, "deploy/a.kvplan.yaml", "--base", "main", "--json").stdout)
    assert one["files"][0]["diff"]["changes"] == two["changes"] and two["changes"]


def test_folders_with_a_dot_are_left_out_but_where_they_are_named(repository: Path) -> None:
    (repository / "deploy/.off/deep").mkdir(parents=True)
    for place in ("deploy/.off", "deploy/.off/deep"):
        (repository / place / "x.kvplan.yaml").write_text(FLAGS.format(8))
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "dots")

    def paths(folder: str) -> list[str]:
        document = json.loads(kvplan(repository, "--base", "HEAD", folder, "--json").stdout)
        return [file["path"] for file in document["files"]]

    assert not [path for path in paths("deploy") if ".off" in path]
    assert paths("deploy/.off") == ["deploy/.off/deep/x.kvplan.yaml", "deploy/.off/x.kvplan.yaml"]


def test_a_mix_is_counted_as_check_counts_it(repository: Path) -> None:
    """Fewer of the mix that the file expects; of the longest requests alone as many as before."""
    file = repository / "deploy/mix.kvplan.yaml"
    mix = "expect: {min_concurrency: 1, contexts: {8k: 14, 32k: 5, 200k: 1}}\n"
    file.write_text("gpu: H200\nflags: {tp_size: 8, max_running_requests: 128}\n" + mix)
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "mix")
    file.write_text("gpu: H200\nflags: {tp_size: 8, max_running_requests: 64}\n" + mix)
    (one,) = json.loads(kvplan(repository, "--base", "HEAD", "deploy/mix.kvplan.yaml", "--json").stdout)["files"]
    changes = {change["name"]: change for change in one["diff"]["changes"]}
    done = running.kvplan("check", file.name, "--json", folder=file.parent)
    (held,) = (found for found in json.loads(done.stdout)["files"][0]["findings"] if found["name"] == "min_concurrency")
    assert changes["requests_of_mix"]["after"] == held["found"] == 64
    assert changes["requests_of_mix"]["before"] > 64 and "requests_at_context" not in changes


def test_markdown_names_every_file_that_changes(repository: Path, tmp_path: Path) -> None:
    done = kvplan(repository, "--base", "HEAD", "deploy", "--format", f"json={tmp_path / 'j'}", "--format", "md")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("## from HEAD to the work tree\n")
    assert "5 deployment files: 1 changed, 1 added, 1 removed, 1 not comparable, 1 the same" in done.stdout
    titles = re.findall(r"(?m)^### deploy/(\w+)\.kvplan\.yaml: (.+)$", done.stdout)
    assert titles == [("a", "changed"), ("broken", "not comparable"), ("new", "added"), ("old", "removed")]
    assert "| `tp_size` | 4 | 8 | given |" in done.stdout
    assert len(json.loads((tmp_path / "j").read_text())["files"]) == 5


def test_the_work_tree_decides_the_exit_code(repository: Path) -> None:
    (repository / "deploy/same.kvplan.yaml").write_text("gpu: H200\nflags: {tp_size: 8, moe_dp_size: 3}\n")
    assert kvplan(repository, "--base", "main").returncode == 1  # the engine refuses
    (repository / "deploy/broken.kvplan.yaml").write_text("gpu: H200\nflgs: {}\n")
    done = kvplan(repository, "--base", "main")
    assert done.returncode == 2 and done.stdout.count("unknown key 'flgs'") == 2


def test_a_removed_file_and_a_folder_that_is_gone(repository: Path) -> None:
    done = kvplan(repository, "--base", "main", "deploy/old.kvplan.yaml")
    assert done.returncode == 0 and "deploy/old.kvplan.yaml: removed" in done.stdout
    for path in (repository / "deploy").iterdir():
        path.unlink()
    (repository / "deploy").rmdir()
    done = kvplan(repository, "--base", "main", "deploy")
    assert done.returncode == 0 and "4 removed" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--base", "gone"), "--base gone: the repository has no such revision"),
        (("--base", "-x"), "give a revision of git"),
        (("--base=",), "give a revision of git"),
        (("--base", "main", "-"), "standard input"),
        (("--base", "main", "/"), "no git repository"),
        (("--base", "main", "deploy", ".."), "outside the repository"),
        (("--base", "main", "deploy/gone.kvplan.yaml"), "deploy/gone.kvplan.yaml"),
        (("--base", "main", "deploy/serve.sh"), "a deployment file ends in"),
        (("--base", "main", "notes"), "no file in it is called"),
        (("--base", "main", "--format", "html"), "there are text, md, json"),
    ],
)
def test_bad_use_is_one_line_and_exit_code_2(repository: Path, arguments: tuple[str, ...], says: str) -> None:
    (repository / "notes").mkdir()
    done = kvplan(repository, *arguments)
    assert (done.returncode, done.stdout) == (2, ""), done.stdout
    assert says in done.stderr and done.stderr.count("\n") == 1 and "Traceback" not in done.stderr


def test_the_repository_is_the_one_around_the_files(repository: Path) -> None:
    """A hook of git runs with the names of its own repository in the environment."""
    there = str(repository / ".git")
    for environment in ({"GIT_DIR": there}, {"GIT_DIR": ".git", "GIT_PREFIX": "x/"}, {"GIT_WORK_TREE": "/"}):
        done = kvplan(repository, "--base", "main", "deploy", **environment)
        assert "5 deployment files: 1 changed, 1 added, 1 removed, 1 not comparable, 1 the same" in " ".join(
            done.stdout.split()
        )


def test_outside_of_a_repository_and_without_git(tmp_path: Path, repository: Path) -> None:
    (tmp_path / "a.kvplan.yaml").write_text(FLAGS.format(8))
    done = kvplan(tmp_path, "--base", "main")
    assert done.returncode == 2 and "lies in no git repository" in done.stderr and done.stderr.count("\n") == 1
    done = kvplan(repository, "--base", "main", PATH=str(tmp_path))
    assert done.returncode == 2 and "git is not installed" in done.stderr


def test_a_tree_leads_nowhere_out_of_its_folder(repository: Path, tmp_path: Path) -> None:
    """Links of a revision stay links: what lies outside is not read; no filter of the repository is run."""
    outside = tmp_path / "secret.sh"
    outside.write_text(SERVE.replace("$TP", "4"))
    deploy = repository / "deploy"
    (deploy / "linked.sh").symlink_to(outside)
    (deploy / "linked.kvplan.yaml").write_text("gpu: H200\nlaunch_file: linked.sh\n")
    (repository / ".gitattributes").write_text("* diff=evil filter=evil\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "links")
    for key in ("diff.evil.textconv", "filter.evil.smudge", "core.fsmonitor"):
        git(repository, "config", key, f"touch {tmp_path / 'ran'}; cat")
    (deploy / "linked.kvplan.yaml").unlink()
    done = kvplan(repository, "--base", "HEAD", "deploy/linked.kvplan.yaml")
    assert done.returncode == 0 and "lies outside the folder" in " ".join(done.stdout.split())
    assert not (tmp_path / "ran").exists()
