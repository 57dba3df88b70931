"""Forty columns: no table of any command loses a header or a number, and no line is wider than the terminal."""

import re
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

from glm_kvplan.cli import main
from glm_kvplan.show import text
from glm_kvplan.show.cells import cell_text, numeric
from glm_kvplan.show.page import Table
from glm_kvplan.show.printable import terminal
from glm_kvplan.show.said import ENGLISH
from glm_kvplan.show.wrapping import width_of

WIDTH = 40
SGLANG = ("--gpu", "h200", "--tp-size", "8")
VLLM = ("--gpu", "h200", "--", "vllm", "serve", "zai-org/GLM-5.3-Flash", "-tp", "4")
EXAMPLE = str(ROOT / "examples" / "b200-tp4-mtp6-frac80.kvplan.yaml")
LOGS = ROOT / "tests" / "data"
AXES = ("--over", "context=8k,128k", "--over", "mem-fraction-static=0.8,0.85")
COMMANDS = (
    ("estimate", *SGLANG, "--concurrency", "80", "--explain"),
    ("solve", *SGLANG, "--all", "--prices", "--context", "0.8:8k,0.2:128k"),
    ("solve", *SGLANG, "--enable-hierarchical-cache", "--host-gib", "2000", "--all"),
    ("advise", "--all", *SGLANG, "--context", "128k", "--concurrency", "200"),
    ("advise", "--all", "--gpu", "h200", "--gpus", "4,8", "--context", "0.8:8k,0.2:128k", "--concurrency", "200"),
    ("pools", *SGLANG, "--concurrency", "4"),
    ("resolve", *SGLANG),
    ("explain", "where", *SGLANG),
    ("explain", "pools", *SGLANG),
    ("diff", EXAMPLE, "--engine", "0.5.20", "--engine", "0.5.23"),
    ("check", EXAMPLE),
    ("sweep", *SGLANG, *AXES),
    ("sweep", *SGLANG, *AXES, "--best", "3"),
    ("sweep", *AXES[:2], *VLLM),
    ("info", "model"),
    ("info", "engines"),
    ("info", "engines", "0.5.21", "0.5.23"),
    ("info", "gpus"),
    ("reconcile", str(LOGS / "logs" / "b200x4-mtp6-frac80.log")),
    ("validate", "--device", "meta", "--tp-size", "8", "--concurrency", "2", "--context", "8k"),
    ("solve", "--all", *VLLM),
    ("estimate", "--all", *VLLM),
    ("advise", "--all", "--context", "64k", "--concurrency", "20", *VLLM),
    ("explain", "request", *VLLM),
    ("pools", *VLLM),
)


def bare(said: str) -> set[str]:
    """The words of a text, without what a sentence puts behind them."""
    return {word.rstrip(",") for word in said.split()}


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:5]))
def test_nothing_of_a_table_is_lost(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tables: list[Table] = []
    drawn = text.table_lines

    def noted(table: Table, *rest: Any) -> Any:
        tables.append(table)
        return drawn(table, *rest)

    monkeypatch.setattr(text, "table_lines", noted)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.chdir(Path(__file__).parent)
    with pytest.raises(SystemExit) as left:
        main(list(words))
    assert left.value.code in (0, 1)
    out = capsys.readouterr().out
    shown = bare(out)
    assert (tables or words[0] == "advise") and "left out for want of width" not in out
    for table in tables:
        for title in (column.title for column in table.columns if table.head and column.kind != "note"):
            assert bare(terminal(ENGLISH(title))) <= shown, title
        for row in table.rows:
            for cell, column in zip(row.cells, table.columns, strict=False):
                said = terminal(cell_text(cell, column, ENGLISH))
                if numeric(column) or re.fullmatch(r"~?[\d,.]+( [\w%]+)*", said):
                    assert bare(said) <= shown, said
    broken = [line for line in out.splitlines() if width_of(line) > WIDTH and not line.startswith("  ")]
    assert broken == []  # what is to be pasted, indented, is never folded
