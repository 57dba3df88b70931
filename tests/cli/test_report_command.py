"""`kvplan report` as a user meets it: what is written where, flags to paste, exit codes, and what is refused."""

import subprocess
import sys
from pathlib import Path

import pytest

from glm_kvplan.cli import main
from glm_kvplan.engines import flag_words
from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.engines.sglang.launch_command import read_launch_command
from glm_kvplan.errors import InputError
from glm_kvplan.show.whole_file import destination

MTP = ["--gpu", "b200", "--tp-size", "4", "--speculative-algorithm", "NEXTN", "--context", "128k"]


def test_flags_to_paste_read_back() -> None:
    """What is to be pasted, read as a launch command, is what was meant."""
    flags: dict[str, object] = {
        "tp_size": 8,
        "enable_dp_attention": True,
        "mem_fraction_static": 0.85,
        "json_model_override_args": {"a b": "c'd"},
        "cuda_graph_bs": [1, 2],
        "served_name": "x; rm -rf ~",
    }
    text = flag_words.flag_lines(FLAG, flags, {"SGLANG_X": "a b"})
    assert text.startswith("export SGLANG_X='a b'\n--tp-size 8 \\\n--enable-dp-attention \\\n")
    assert "'x; rm -rf ~'" in text
    known = {name: flags[name] for name in ("tp_size", "enable_dp_attention", "mem_fraction_static")}
    lines = flag_words.flag_lines(FLAG, known)
    read = read_launch_command(f"python -m sglang.launch_server --model-path x {lines}", "0.5.21")
    assert {name: read.flags[name] for name in known} == known


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit_:
        main(["report", *words])
    out = capsys.readouterr()
    return int(exit_.value.code or 0), out.out, out.err


@pytest.mark.parametrize(
    ("name", "start"), [("plan.html", b"<!doctype"), ("plan.md", b"## "), ("plan.png", b"\x89PNG"), ("p.svg", b"<?xml")]
)
def test_the_names_suffix_decides(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, start: bytes) -> None:
    target = tmp_path / name
    code, out, err = run(capsys, "-o", str(target), *MTP, "--concurrency", "8")
    assert (code, err) == (0, "")
    assert " ".join(out.split()).startswith("Yes: 8 requests") and "".join(out.split()).endswith(str(target))
    assert target.read_bytes().startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = str(tmp_path / "plan.md")
    assert run(capsys, "-o", target, *MTP, "--concurrency", "640")[0] == 1
    code, out, _ = run(capsys, "-o", target, *MTP, "--concurrency", "64")
    assert (
        code == 0
        and "Yes, with other flags: 64 requests" in out
        and "now: 43 of 64, bound by tokens" in out.replace("\n", " ")
    )
    refused = ("--gpu", "b200", "--tp-size", "4", "--pre-gib", "176", "--available-gib", "130")
    code, _, _ = run(capsys, "-o", target, *refused, "--max-mamba-cache-size", "9000")
    assert code == 0 and "now: the engine refuses to start" in Path(target).read_text(encoding="utf-8")
    code, out, _ = run(capsys, "-o", target, *MTP, "--context", "2m")
    assert code == 1 and "bound by context length" in " ".join(out.split())


REFUSED = {
    "directory": (["-o", "{}"], "is a directory"),
    "no directory": (["-o", "{}/no/plan.html"], "there is no directory"),
    "format": (["-o", "{}/a.html", "--format", "pdf"], "--format 'pdf'"),
    "language": (["-o", "{}/a.html", "--lang", "fr"], "--lang 'fr'"),
    "chart of a page": (["-o", "{}/a.html", "--chart", "map"], "a single chart is written as png or svg"),
    "chart": (["-o", "{}/a.svg", "--chart", "pie"], "--chart 'pie'"),
    "png to a terminal": (["-o", "-", "--format", "png"], "a png is not text"),
    "no host": (["-o", "{}/a.svg", "--chart", "host"], "HiCache is off"),
    "still": (["-o", "{}/a.svg", "--chart", "split", "--disable-radix-cache", "--max-running-requests", "9"], "radix"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    words, message = REFUSED[name]
    code, out, err = run(capsys, *(word.format(tmp_path) for word in words), "--gpu", "h200", "--tp-size", "8")
    assert code == 2 and out == ""
    last = err.strip().splitlines()[-1]
    assert last.startswith("kvplan: ") and message in last
    assert list(tmp_path.iterdir()) == []


def test_without_the_drawing_library(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = run(capsys, "-o", str(tmp_path / "a.html"), "--gpu", "h200")
    assert code == 2 and "pip install matplotlib" in err and len(err.splitlines()) == 1
    code, _, _ = run(capsys, "-o", str(tmp_path / "a.md"), "--gpu", "h200", "--tp-size", "8")
    assert code == 0 and (tmp_path / "a.md").exists()


def test_the_day_and_the_command_are_on_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SOURCE_DATE_EPOCH sets the day; of a launch command, which may hold secrets, the flags that were read."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    target, launch = tmp_path / "plan.md", "sglang serve --model-path zai-org/GLM-5.3-Flash --api-key hush --tp 4"
    ours = ("-o", str(target), "--gpu", "b200", "--concurrency", "8")
    assert run(capsys, *ours, "--", f"SGLANG_MAMBA_CONV_DTYPE=float32 HF_TOKEN=hush {launch}")[0] == 0
    text = target.read_text(encoding="utf-8")
    assert "on 2023-11-14 by" in text and "hush" not in text
    options = (f"-o {target}", "--gpu b200", "--concurrency 8", "--tp-size 4")
    options += ("--env SGLANG_MAMBA_CONV_DTYPE=float32",)
    assert " \\\n  ".join(("kvplan report", *options)) in text
    assert run(capsys, *" ".join(options).split())[0] == 0
    again = target.read_text(encoding="utf-8")
    assert text.startswith(again.partition("\n---\n")[0].rstrip())  # and then notes on the launch command


@pytest.mark.parametrize("seconds", ["soon", "", "1e9", "9" * 30])
def test_a_day_that_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, seconds: str
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", seconds)
    code, _, err = run(capsys, "-o", str(tmp_path / "a.md"), *MTP)
    assert code == 2 and "SOURCE_DATE_EPOCH" in err and len(err.splitlines()) == 1


def test_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with pytest.raises(SystemExit):
        main(["report", "-o", "-", "--format", "md", *MTP, "--concurrency", "8"])
    assert capfdbinary.readouterr().out.startswith(b"## Memory plan")


def test_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, link = tmp_path / "a.html", tmp_path / "link.html"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    with destination(str(link), binary=True) as stream:
        stream.write(b"new")
    assert target.read_bytes() == b"new" and link.is_symlink() and target.stat().st_mode & 0o777 == 0o640

    def fails(self: Path, other: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(InputError, match="No space left"), destination(str(target), binary=True) as stream:
        stream.write(b"newer")
    assert target.read_bytes() == b"new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "link.html"]


def test_charts_are_not_loaded_before_they_are_needed() -> None:
    code = "import glm_kvplan.cli.report, glm_kvplan.show.drawing, sys; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
