"""Texts of strangers in places that a terminal or a CI reads: no escape and no line of their own comes out."""

import json
from pathlib import Path

import pytest

from glm_kvplan.cli import main
from glm_kvplan.model.loader import BUNDLED
from glm_kvplan.show.printable import json_text

ESC = {
    "tolerate": "gpu: h200\nflags: {tp_size: 8}\nexpect:\n  min_context: 256k\n  min_concurrency: 48000\n"
    '  tolerate: {min_concurrency: "\\e]0;pwned\\e\\\\\\n::error::pwn"}\n',
    "launch_file": 'flags: {tp_size: 8}\nlaunch_file: "x\\e[31m\\n::error::pwn"\n',
    "key": '"a\\e[31m\\n::error::pwn": 1\n',
    "value": 'flags: {tp_size: "\\e[31m\\n::error::pwn"}\n',
    "launch": 'launch: "sglang serve zai-org/GLM-5.3-Flash --tp \\e[31m::error::pwn"\n',
}


@pytest.mark.parametrize("kind", ESC)
@pytest.mark.parametrize("format", ["text", "github", "md", "junit", "sarif", "json"])
def test_no_escape_and_no_command_of_a_stranger(
    kind: str, format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """hostile/08: such a line is a command to GitHub's runner, such an escape one to a terminal."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.kvplan.yaml").write_text(ESC[kind], encoding="utf-8")
    with pytest.raises(SystemExit) as left:
        main(["check", "a.kvplan.yaml", "--format", format])
    assert left.value.code in (0, 1, 2)
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert not any(line.startswith("::error::pwn") for line in (out + err).splitlines())


CI = "##vso[task.setvariable variable=PATH]x ##[error]pwn ::error::pwn \u202epwn"


@pytest.mark.parametrize("format", ["text", "csv", "jsonl", "json", "md"])
def test_no_command_of_a_ci_system_in_what_is_printed(format: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Azure's stand anywhere in a line, also of JSON; standard error is read for them, too."""
    draft = ["--tp-size", "8", "--speculative-algorithm", "DFLASH", "--over", f"speculative_draft_model_path={CI}"]
    for words in (["sweep", *draft, "--format", format], ["solve", "--gpu", CI], ["explain", CI], [CI]):
        with pytest.raises(SystemExit):
            main(words)
        out, err = capsys.readouterr()
        assert "\u202e" not in out + err
        assert not any(line.startswith("::") for line in (out + err).splitlines())
        assert format == "csv" or "##vso[" not in out
        assert "##[" not in err and "##vso[" not in err
    assert json.loads(json_text(json.dumps({CI: CI}, ensure_ascii=False))) == {CI: CI}


def test_a_line_of_code_in_markdown_is_no_command_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "m\n::error::pwn"
    folder.mkdir()
    (folder / "config.json").write_text(BUNDLED.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["report", "-o", "-", "--format", "md", "--tp-size", "8", "--model", str(folder)])
    out, _ = capsys.readouterr()
    assert "pwn" in out
    assert not any(line.startswith("::error") for line in out.splitlines())


def test_a_release_named_by_a_stranger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = tmp_path / "rel.toml"
    profile.write_text('base = "0.5.22"\nrelease = "0.5.22 \\u001b[31mRED"\n', encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["resolve", "--engine", str(profile), "--tp-size", "8"])
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err


def test_a_memory_limit_of_four_hundred_digits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """hostile/07."""
    (tmp_path / "pod.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: c\n"
        '    command: [sglang, serve, zai-org/GLM-5.3-Flash, --tp, "8", --enable-hierarchical-cache]\n'
        f'    resources: {{limits: {{memory: "{"9" * 400}"}}}}\n',
        encoding="utf-8",
    )
    (tmp_path / "a.kvplan.yaml").write_text("launch_file: pod.yaml\n", encoding="utf-8")
    for words in (["check", str(tmp_path / "a.kvplan.yaml")], ["solve", "--launch", str(tmp_path / "pod.yaml")]):
        with pytest.raises(SystemExit) as left:
            main(words)
        assert left.value.code in (0, 1, 2)
        assert "Traceback" not in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    "words",
    [
        ("--additional-config", '{"a":' * 900 + "1" + "}" * 900),
        ("--additional-config" + ".a" * 100_000, "1"),
        ("--compilation-config", '{"a":' + "9" * 5000 + "k}"),
    ],
    ids=["nested", "dotted", "digits"],
)
def test_json_of_vllm_s_flags_is_bounded(words: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["resolve", "--", "vllm", "serve", "zai-org/GLM-5.3-Flash", "-tp", "8", *words])
    assert left.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty; write base = one of"),
        ('base = "0.5.22"\nstate_bytes = "x"\n', "unknown profile field"),
        ('base = "0.5.22"\nrelease = 3\n', "release = 3: it takes text"),
    ],
)
def test_a_profile_that_cannot_be_used(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as left:
        main(["resolve", "--engine", str(tmp_path / "own.toml"), "--tp-size", "8"])
    err = capsys.readouterr().err
    assert left.value.code == 2 and err.count("\n") == 1 and said in err
