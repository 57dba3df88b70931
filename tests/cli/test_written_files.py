"""SECURITY.md says what is written and where: nothing in the home folder, nothing beside the file that is named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from paths import DATA, ROOT

from glm_kvplan.cli import main
from glm_kvplan.model.loader import BUNDLED


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_report_writes_its_file_and_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    home, work, temporary = tmp_path / "home", tmp_path / "work", tmp_path / "tmp"
    for folder in (home, work, temporary):
        folder.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MPL", "XDG_"))}
    env = {**kept, "PYTHONPATH": str(ROOT), "HOME": str(home), "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
    words = ["report", "-o", "plan.svg", "--tp-size", "8", "--context", "8k", "--concurrency", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "glm_kvplan", *words],
        cwd=work, env=env, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr
    assert files_in(work) == ["plan.svg"]
    assert files_in(home) == [] and files_in(temporary) == []


@pytest.mark.parametrize(
    "words",
    [
        ("diff", "a.kvplan.yaml", "b.kvplan.yaml", "--format", "md=a.kvplan.yaml"),
        ("diff", "a.kvplan.yaml", "b.kvplan.yaml", "--format", "json=link.yaml"),
        ("check", "a.kvplan.yaml", "--format", "junit=a.kvplan.yaml"),
        ("check", "c.kvplan.yaml", "--format", "junit=serve.sh"),
        ("sweep", "--launch", "serve.sh", "--over", "tp_size=4,8", "--format", "csv", "-o", "serve.sh"),
        ("sweep", "--model", "config.json", "--tp-size", "8", "--over", "tp_size=4,8", "-o", "config.json"),
        ("report", "--launch", "serve.sh", "--format", "md", "-o", "serve.sh"),
        ("reconcile", "server.log", "--save", "server.log", "--force"),
    ],
    ids=" ".join,
)
def test_no_command_writes_over_what_it_reads(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    launch = "sglang serve zai-org/GLM-5.3-Flash --tp 8\n"
    texts = {
        "a.kvplan.yaml": "gpu: h200\nflags: {tp_size: 8}\n",
        "b.kvplan.yaml": "gpu: b200\nflags: {tp_size: 8}\n",
        "c.kvplan.yaml": "gpu: h200\nlaunch_file: serve.sh\n",
        "serve.sh": launch,
        "config.json": BUNDLED.read_text(encoding="utf-8"),
        "server.log": (DATA / "logs" / "example-b-0.5.23.log").read_text(encoding="utf-8"),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "link.yaml").symlink_to("a.kvplan.yaml")
    with pytest.raises(SystemExit) as left:
        main(list(words))
    assert left.value.code == 2
    assert "the command reads this file" in capsys.readouterr().err
    assert {name: (tmp_path / name).read_text(encoding="utf-8") for name in texts} == texts
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*texts, "link.yaml"])


HOOKED = """
import os, sys
seen = []
def hook(event, values):
    if event == "open" and isinstance(values[1], str) and set(values[1]) & set("wax+"):
        seen.append(("open", str(values[0])))
    elif event == "open" and values[1] is None and values[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        seen.append(("open", str(values[0])))
    elif event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.mkdir", "os.symlink"):
        seen.append((event, str(values)))
from glm_kvplan.cli import main
sys.addaudithook(hook)
for words in {commands!r}:
    try:
        main(words)
    except SystemExit as left:
        assert left.code in (0, 1), (words, left.code)
sys.stdout.flush()
print(seen, file=sys.stderr)
"""


def test_answers_write_nothing_ask_nobody_and_start_nothing(tmp_path: Path) -> None:
    """What is written where it is named is held above; here, that printing alone does none of it."""
    (tmp_path / "a.kvplan.yaml").write_text("gpu: h200\nflags: {tp_size: 8}\n", encoding="utf-8")
    flags, load = ["--tp-size", "8", "--gpu", "h200"], ["--context", "8k", "--concurrency", "1"]
    commands = [
        *(["estimate", *flags], ["solve", *flags], ["resolve", *flags], ["explain", *flags], ["pools", *flags, *load]),
        *(
            ["advise", *flags, *load],
            ["sweep", *flags, "--over", "tp_size=4,8"],
            ["report", "-o", "-", "--format", "md"],
        ),
        *(["check", "a.kvplan.yaml"], ["diff", "a.kvplan.yaml", "--gpu", "h200", "--gpu", "b200"], ["info", "gpus"]),
        ["reconcile", str(DATA / "logs" / "example-b-0.5.23.log")],
        ["init", "-o", "-", "--", "sglang", "serve", "zai-org/GLM-5.3-Flash", "--tp", "8"],
    ]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", HOOKED.format(commands=commands)],
        cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.stderr.splitlines()[-1:] == ["[]"], done.stderr[-2000:]
