"""The forms of a sweep: rows say the same in each, text is data in every one, and a long one shows how far it is."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from glm_kvplan.answers.sweep.axes import read_axis
from glm_kvplan.answers.sweep.points import Sweep
from glm_kvplan.answers.sweep.sweep_answer import answer_sweep
from glm_kvplan.answers.sweep.sweep_page import sweep_page
from glm_kvplan.cli import main
from glm_kvplan.engines.planner import given
from glm_kvplan.engines.sweep_columns import COMMON
from glm_kvplan.show import progress
from glm_kvplan.show.format import decimal
from glm_kvplan.show.json import document
from glm_kvplan.show.markdown import markdown
from glm_kvplan.show.rows import Field, write_csv
from glm_kvplan.show.text import print_page

BOTH = ("--gpu", "h200", "--tp-size", "4", "--over", "engine=sglang-0.5.23,vllm-0.33.0", "--over", "context=8k,1m")
OWN = ("--gpu", "h200", "--over", "tp_size=2,4,8", "--over", "max_running_requests=none,64")
VLLM = ("--gpu", "h200", "--over", "max_num_seqs=64,9999", "--", "vllm", "serve", "zai-org/GLM-5.3-Flash", "-tp", "4")


def out(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    asked, dashes, launch = (words, (), ()) if "--" not in words else (words[: words.index("--")], ("--",), None)
    launch = words[words.index("--") + 1 :] if launch is None else launch
    with pytest.raises(SystemExit) as left:
        main(["sweep", *asked, *dashes, *launch])
    assert not left.value.code
    return capsys.readouterr().out


def asked(words: tuple[str, ...], *more: str) -> tuple[str, ...]:
    at = words.index("--") if "--" in words else len(words)
    return (*words[:at], *more, *words[at:])


@pytest.mark.parametrize("words", [BOTH, OWN, VLLM], ids=["both engines", "SGLang", "vLLM"])
def test_json_has_the_rows_that_are_streamed(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(out(capsys, *asked(words, "--json")))
    lines = [json.loads(line) for line in out(capsys, *asked(words, "--format", "jsonl")).splitlines()]
    table = list(csv.DictReader(io.StringIO(out(capsys, *asked(words, "--format", "csv")))))
    assert found["rows"] == lines and len(lines) == found["points"] == len(table) and not found["more"]
    assert [column["name"] for column in found["columns"]] == list(lines[0]) == list(table[0])
    assert {column["whose"] for column in found["columns"]} >= {"", "deployment", "request"}
    for row, cells in zip(lines, table, strict=True):
        assert [str(row[name]) for name in ("gpus", "served")] == [cells[name] or "None" for name in ("gpus", "served")]


@pytest.mark.parametrize("words", [BOTH, OWN, VLLM], ids=["both engines", "SGLang", "vLLM"])
@pytest.mark.parametrize("form", ["text", "md"])
def test_a_page_says_what_json_says(
    words: tuple[str, ...], form: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "240")
    found = json.loads(out(capsys, *asked(words, "--json")))
    text = re.sub(r"[\\\u200b]", "", out(capsys, *asked(words, "--format", form)))
    assert found["title"] in text
    for row in found["rows"]:
        if row["status"] == "refused":
            assert row["reason"] in " ".join(text.split())
            continue
        assert f"{row['served']:,}" in text and str(row["gpus"]) in text
        if words is BOTH:
            assert decimal(row["request_bytes"]) in text and decimal(row["fixed_bytes"]) in text
            assert decimal(row["cache_bytes"]) in text and f"{row['longest_context']:,}" in text
    for advice in found["advice"]:
        assert advice in " ".join(text.split())
    for said in ("GPUs", "requests at once", "at once per GPU"):
        assert said in text
    assert ("tokens per worker" in text and "GiB free per GPU" in text) == (words is OWN)
    assert ("blocks per GPU" in text) == (words is VLLM)


def test_the_name_of_a_file_says_its_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out(capsys, *OWN, "-o", str(tmp_path / "a.md"))
    assert (tmp_path / "a.md").read_text().startswith("## GLM-5.3-Flash on SGLang")
    out(capsys, *OWN, "-o", str(tmp_path / "a.json"))
    assert json.loads((tmp_path / "a.json").read_text())["schema"] == "glm-kvplan/sweep"


def test_json_holds_all_rows_and_a_table_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--tp-size", "8", "--over", "context=1k..100k:1k")
    assert len(json.loads(out(capsys, *words, "--json"))["rows"]) == 100
    limited = json.loads(out(capsys, *words, "--json", "--limit", "3"))
    assert (len(limited["rows"]), limited["more"], limited["points"]) == (3, True, 100)
    assert "the first 40 rows of 100 points" in out(capsys, *words)


def test_best_says_by_what(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--gpu", "h200", "--tp-size", "8", "--enable-dp-attention", "--over", "dp_size=1,2,4,8")
    found = json.loads(out(capsys, *words, "--best", "2", "--json"))
    assert [row["dp_size"] for row in found["rows"]] == [8, 4] and found["order"] == "served_per_gpu:desc"
    assert "ordered by served_per_gpu, the most first" in out(capsys, *words, "--best", "2")
    assert "ordered by gpus\n" in out(capsys, *words, "--sort", "gpus")
    assert "ordered" not in out(capsys, *words)


def test_a_page_says_what_requests_it_counts(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--gpu", "h200", "--over", "tp_size=8")
    assert "requests of 131,072 tokens each\n" in out(capsys, *words)
    assert "requests of" not in out(capsys, *words, "--over", "context=8k").partition("\n\n")[0]
    mix = (*words, "--context", "0.8:8k,0.2:128k")
    assert "tokens: 99% of the time, each request's" in out(capsys, *mix)
    assert "tokens: by the mean" in out(capsys, *mix, "--confidence", "mean")
    found = json.loads(out(capsys, *mix, "--confidence", "0.9", "--json"))
    assert (found["contexts"], found["confidence"]) == ("80% 8,192, 20% 131,072", 0.9)


def sweep(**flags: object) -> Sweep:
    return Sweep(given({"tp_size": 8, **flags}, gpu="h200"), [read_axis("context=8k,64k")])


def test_an_upper_bound_is_a_warning_in_every_form() -> None:
    points = sweep(speculative_algorithm="DFLASH", speculative_draft_model_path="d")
    points = Sweep(points.given, points.axes, points.memory._replace(weights_gib=40.0, draft_weights_gib=3.0))
    answer = answer_sweep(points, points, 40)
    (warning,) = document("sweep", answer)["warnings"]
    assert "upper bound" in warning
    shown = io.StringIO()
    print_page(sweep_page(answer), shown)
    assert f"! {warning}" in " ".join(shown.getvalue().split()) and f"⚠️ {warning}" in markdown(sweep_page(answer))


def test_engines_and_their_columns_are_no_more_than_the_page_needs() -> None:
    columns = {column.name for column in sweep().columns}
    assert {column.name for column in COMMON} <= columns and "num_blocks" not in columns


HOSTILE = ("=1+1", "+cmd", "-2", "@sum")


def test_text_runs_in_no_spreadsheet() -> None:
    fields = [Field("name", "text"), Field("n", "int"), Field("x", "float"), Field("on", "flag")]
    rows: list[tuple[Any, ...]] = [(text, -1, -0.5, False) for text in HOSTILE]
    stream = io.StringIO(newline="")
    write_csv(fields, [*rows, ("plain\r=2", 1, 0.5, None), (None, None, None, True)], stream)
    read = list(csv.reader(io.StringIO(stream.getvalue(), newline="")))
    assert [row[0] for row in read[1:5]] == [f"'{text}" for text in HOSTILE]
    assert read[1][1:] == ["-1", "-0.5", "false"]  # numbers stay numbers
    assert read[5:] == [["plain =2", "1", "0.5", ""], ["", "", "", "true"]]


def test_the_name_of_a_profile_is_no_formula(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("=1+1.toml").write_text('base = "0.5.22"\n')
    text = out(capsys, "--gpu", "h200", "--tp-size", "8", "--over", "engine==1+1.toml", "--format", "csv")
    assert text.splitlines()[1].startswith("'=1+1.toml,ok,")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_after_a_second_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[float, str] = {}
    rows = [(number,) for number in range(progress.EVERY * 3)]
    for patience in (0.0, 60.0):
        monkeypatch.setattr("sys.stderr", Terminal())
        monkeypatch.setattr(progress, "PATIENCE", patience)
        assert list(progress.counted(rows, len(rows), "points")) == rows
        seen[patience] = progress.sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert "points" in seen[0.0] and seen[60.0] == ""


def test_no_progress_in_a_pipe() -> None:
    rows = [(1,)]
    assert progress.counted(rows, 1, "points") is rows
