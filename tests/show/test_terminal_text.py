"""Text that comes from outside is data on the terminal: no brackets of it are a style, and none of it is lost."""

from pathlib import Path

import pytest

from glm_kvplan.cli import main

DEPLOYMENT = "gpu: h200\nflags: {tp_size: %d, dp_size: 8, enable_dp_attention: true}\n"
UNMEASURED = "no public measurement of pipeline stages, attention DP or CP: read from source only"


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        main(list(words))
    assert left.value.code == 0
    return capsys.readouterr().out


def test_brackets_of_a_path_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`[/v2]` closes a style that nobody opened, `[v1]` would be one, and `:bug:` a picture."""
    monkeypatch.chdir(tmp_path)
    Path("[").mkdir()
    for name, ranks in (("[/v2]:bug:.kvplan.yaml", 8), ("[v1].kvplan.yaml", 16)):
        Path(name).write_text(DEPLOYMENT % ranks, encoding="utf-8")
    compared = printed(capsys, "diff", "[/v2]:bug:.kvplan.yaml", "[v1].kvplan.yaml")
    assert "A  [/v2]:bug:.kvplan.yaml: " in compared and "B  [v1].kvplan.yaml: " in compared
    assert "[v1].kvplan.yaml: holds" in printed(capsys, "check", "[v1].kvplan.yaml")


def test_brackets_in_a_table_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = tmp_path / "ours.toml"
    profile.write_text('base = "0.5.22"\nrelease = "[v1] :bug:"\n', encoding="utf-8")
    assert "[v1] :bug:" in printed(capsys, "info", "engines", str(profile), "0.5.23")


@pytest.mark.parametrize("command", ["solve", "advise", "check", "report"])
def test_the_notes_of_estimated_weights_are_said(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--gpu", "h200", "--tp-size", "8", "--dp-size", "8", "--enable-dp-attention")
    path = tmp_path / "x.kvplan.yaml"
    path.write_text(DEPLOYMENT % 8, encoding="utf-8")
    words = {"check": (str(path),), "report": ("-o", "-", "--format", "md", *flags)}.get(command, flags)
    assert UNMEASURED in " ".join(printed(capsys, command, *words).split())
    if command in ("solve", "advise"):
        assert UNMEASURED in printed(capsys, command, *words, "--json")
