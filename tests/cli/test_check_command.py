"""`kvplan check` as a command: standard input, exit codes, bad use, what it imports."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from running import kvplan

B200 = """\
gpu: B200
flags: {tp_size: 4, speculative_algorithm: EAGLE}
memory: {pre_gib: 177.0, available_gib: 126.0}
"""


def test_standard_input_yaml_and_toml() -> None:
    for text in (B200, 'gpu = "B200"\nflags = {tp_size = 4}\n', json.dumps({"gpu": "B200", "flags": {"tp_size": 4}})):
        done = kvplan("check", "-", stdin=text)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
    done = kvplan("check", "-", "--format", "github", stdin="gpu: B200\nflgs: {}\n")
    assert done.returncode == 2
    assert done.stdout.startswith("::error file=stdin,line=2,")


def test_the_command_s_exit_codes_and_bad_use(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(B200)
    bad.write_text(B200 + "expect: {min_total_tokens: 1000000000}\n")
    assert [kvplan("check", str(path)).returncode for path in (good, bad, tmp_path / "gone.yaml")] == [0, 1, 2]
    for arguments in ((), (str(good), "--format", "html"), (str(good), "--", "python")):
        done = kvplan("check", *arguments)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


def test_one_form_is_printed_and_others_are_written(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(B200 + "expect: {min_total_tokens: 1000000000}\n")
    forms = {name: tmp_path / name for name in ("text", "json", "junit", "sarif", "md")}
    written = [word for name, path in forms.items() for word in ("--format", f"{name}={path}")]
    done = kvplan("check", str(file), "--format", "github", *written)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("::error file=")
    for name, path in forms.items():
        assert path.read_text() == kvplan("check", str(file), "--format", name).stdout
    assert kvplan("check", str(file), "--format", f"json={forms['json']}").stdout == forms["text"].read_text()


@pytest.mark.parametrize(
    ("formats", "says"),
    [
        (("html",), "there are text"),
        (("github", "junit"), "one form is printed"),
        (("junit=",), "name the file"),
        (("junit=x", "sarif=x"), "two forms into one file"),
        (("junit=gone/x",), "--format gone/x"),
    ],
)
def test_forms_that_cannot_be(tmp_path: Path, formats: tuple[str, ...], says: str) -> None:
    (tmp_path / "a.yaml").write_text(B200)
    done = kvplan("check", "a.yaml", *(word for form in formats for word in ("--format", form)), folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr and done.stderr.count("\n") == 1


def test_other_commands_do_not_import_pydantic() -> None:
    modules = "glm_kvplan.answers.check.checking, glm_kvplan.answers.check.findings"
    code = f"import sys, {modules}; print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
