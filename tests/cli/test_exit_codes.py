"""Exit codes: 2 and one line for what cannot be used, 1 for a no, 130 and 143 for signals; docs/index.md."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from paths import ROOT

from glm_kvplan.cli import main

KVPLAN = (sys.executable, "-m", "glm_kvplan")
GOOD = "flags: {tp_size: 8}\n"
# Each broke a reader once: an odd tag, a number of 5,000 digits, a bomb of aliases, a date as a key, bytes, a tab.
BAD = {
    "tag": "flags: {tp_size: !!bool x}\n",
    "hex": f"flags: {{tp_size: 0x{'f' * 5000}}}\n",
    "digits": f"flags: {{tp_size: {'9' * 400}}}\n",
    "date": "2020-01-01: x\n",
    "date_flag": "flags: {json_model_override_args: {2020-01-01: x}}\n",
    "date_value": "flags: {tp_size: 2020-01-01}\n",
    "base60": f"flags: {{tp_size: 1{':59' * 30}}}\n",
    "nan": "memory: {pre_gib: .nan}\nflags: {tp_size: 8}\n",
    "empty": "",
    "list": "[1, 2]\n",
    "tab": "flags:\n\ttp_size: 8\n",
    "gpu": "gpu: {a: 1}\nflags: {tp_size: 8}\n",
    "engine": "engine: ../../../../etc/hostname\nflags: {tp_size: 8}\n",
    "launch": "launch: 'sglang serve zai-org/GLM-5.3-Flash --tp'\n",
    "quote": 'launch: "sglang serve \'x"\n',
    "nul": 'launch: "a\\0b"\n',
    "surrogate": 'launch_file: "\\uD800"\n',
    "long_name": f"launch_file: {'x' * 5000}\n",
    "folder": "launch_file: .\n",
}


def kvplan(*words: str, cwd: Path | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*KVPLAN, *words], capture_output=True, text=True, timeout=120, check=False, cwd=cwd, input=stdin, env=env
    )


def test_no_bad_file_stops_the_others(tmp_path: Path) -> None:
    names = [f"{name}.kvplan.yaml" for name in BAD]
    for name, text in zip(names, BAD.values(), strict=True):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "good.kvplan.yaml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "bytes.kvplan.yaml").write_bytes(b"\xff\xfe\x00")
    done = kvplan("check", *names, "bytes.kvplan.yaml", "missing.kvplan.yaml", "good.kvplan.yaml", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr == ""
    for name in names:
        assert f"{name}:" in done.stdout and "unusable" in done.stdout
    assert f"1 holds, 0 fall short, {len(BAD) + 2} unusable" in done.stdout
    assert "good.kvplan.yaml: holds" in done.stdout


REFUSED = ("--tp-size", "8", "--dp-size", "3", "--enable-dp-attention")


@pytest.mark.parametrize(
    "command",
    [
        ("solve",),
        ("resolve",),
        ("estimate",),
        ("pools", "--context", "8k", "--concurrency", "1"),
        ("explain",),
        ("advise", "--context", "8k", "--concurrency", "1"),
        ("report", "-o", "x.md"),
    ],
    ids=lambda command: command[0],
)
def test_a_refusal_is_a_no_in_every_command(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        main([*command, *REFUSED])
    out, err = capsys.readouterr()
    assert left.value.code == 1 and out == ""
    assert err.startswith("kvplan: ") and err.count("\n") == 1
    assert not list(tmp_path.iterdir())


TOO_LARGE = ("--gpu", "h200", "--tp-size", "1")


@pytest.mark.parametrize(
    "command", [("solve", "--json"), ("advise",), ("report", "-o", "x.md")], ids=lambda one: one[0]
)
def test_weights_that_do_not_fit_are_a_no(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        main([*command, *TOO_LARGE])
    out, err = capsys.readouterr()
    assert left.value.code == 1 and out == ""
    assert err.startswith("kvplan: the weights (") and err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_weights_that_do_not_fit_are_a_no_for_files_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.kvplan.yaml"
    path.write_text("gpu: h200\nflags: {tp_size: 1}\n", encoding="utf-8")
    for words in (("check", str(path)), ("diff", str(path), "--gpu", "b200", "--gpu", "h200")):
        with pytest.raises(SystemExit) as left:
            main(list(words))
        out, err = capsys.readouterr()
        assert left.value.code == 1
        assert "the weights (" in out + err


def test_a_refusal_is_a_no_for_files_too(tmp_path: Path) -> None:
    path = tmp_path / "a.kvplan.yaml"
    path.write_text("flags: {tp_size: 8, dp_size: 3, enable_dp_attention: true}\n", encoding="utf-8")
    for words in (("check", str(path)), ("diff", str(path), "--engine", "0.5.21", "--engine", "0.5.22")):
        with pytest.raises(SystemExit) as left:
            main(list(words))
        assert left.value.code == 1


def test_ctrl_c_while_modules_are_imported() -> None:
    code = (
        "import importlib.abc, os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # as a terminal starts a process
        "class Stop(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'typer': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Stop())\n"
        "from glm_kvplan.__main__ import main\n"
        "main()\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code, "info", "gpus"], capture_output=True, text=True, check=False, timeout=300, env=env
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_no_traceback_and_no_unfinished_file(number: int, code: int, tmp_path: Path) -> None:
    words = (
        "sweep",
        "--tp-size",
        "8",
        "--over",
        "mem_fraction_static=0.5..0.95:0.00001",
        "--format",
        "csv",
        "-o",
        "out.csv",
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    listening = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # as a terminal has it
    started = [sys.executable, "-c", f"{listening}from glm_kvplan.__main__ import main; main()", *words]
    with subprocess.Popen(started, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=env) as process:
        end = time.monotonic() + 60
        while not list(tmp_path.iterdir()) and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(0.3)
        process.send_signal(number)
        _, told = process.communicate(timeout=300)
    assert process.returncode == code
    assert "Traceback" not in told
    kept = ["out.csv.partial"] if number == signal.SIGINT else []  # docs/sweep.md
    said = "kvplan: stopped; the rows so far are in out.csv.partial" if number == signal.SIGINT else ""
    assert told.strip() == said
    assert [path.name for path in tmp_path.iterdir()] == kept


@pytest.mark.parametrize("form", ["text", "md", "json"])
def test_ctrl_c_is_said_in_one_line(
    form: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("glm_kvplan.cli.sweep.answer_sweep", stopped)
    with pytest.raises(SystemExit) as left:
        main(["sweep", "--tp-size", "8", "--over", "mem_fraction_static=0.7,0.8", "--format", form])
    out, err = capsys.readouterr()
    assert (left.value.code, out, err.strip()) == (130, "", "kvplan: stopped")


@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_an_error_that_compiled_code_makes_of_a_signal_is_no_traceback(number: str, code: int) -> None:
    """pydantic's core says SchemaError where a signal interrupts it."""
    program = (
        "import os, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import glm_kvplan.cli\n"
        "def run():\n"
        f"    try: os.kill(os.getpid(), signal.{number})\n"
        "    except BaseException as error: raise RuntimeError(repr(error)) from error\n"
        "glm_kvplan.cli.main = run\n"
        "from glm_kvplan.__main__ import main\n"
        "main()\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=300, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")


def test_a_signal_that_was_switched_off_stays_off() -> None:
    code = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "from glm_kvplan.__main__ import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0, end.code\n"
        "assert signal.getsignal(signal.SIGINT) is signal.getsignal(signal.SIGTERM) is signal.SIG_IGN\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code, "--version"], check=False, timeout=300, env=env)
    assert done.returncode == 0


def test_pools_that_the_card_does_not_hold_are_a_no(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The decode role allocates more than its budget charges: the server is sized, and dies while it allocates."""
    flags = ["--tp-size", "16", "--disaggregation-mode", "decode", "--checkpoint", "nvfp4"]
    codes = []
    for words in (["solve", *flags], ["report", "-o", str(tmp_path / "plan.md"), *flags, "--concurrency", "1"]):
        with pytest.raises(SystemExit) as left:
            main([*words, "--gpu", "rtx-pro-6000", "--engine", "0.5.22"])
        codes.append(left.value.code)
    out = " ".join(capsys.readouterr().out.split())
    assert codes == [1, 0] and "the server dies while it allocates them" in out
    assert "Yes, with other flags: " in out
