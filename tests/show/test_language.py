"""Every sentence of ours in Chinese too: --lang zh beside any command, or KVPLAN_LANG."""

import ast
import errno
import os
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from inspect import cleandoc
from pathlib import Path

import pytest
import typer
from paths import ROOT
from running import ended
from sources import parsed

from glm_kvplan.cli import COMMANDS as COMMANDS_NAMED
from glm_kvplan.cli import PANELS, app
from glm_kvplan.cli.option_groups import FlagOption
from glm_kvplan.show import said
from glm_kvplan.show.languages import load_words
from glm_kvplan.show.wrapping import width_of

SENTENCES = tomllib.loads((ROOT / "glm_kvplan" / "show" / "sentences_zh.toml").read_text(encoding="utf-8"))
COUNTS = SENTENCES.pop("counts")
PHRASES = tomllib.loads((ROOT / "glm_kvplan" / "show" / "words_zh.toml").read_text(encoding="utf-8"))
SGLANG = ("--gpu", "h200", "--tp-size", "8")
VLLM = ("--gpu", "h200", "--", "vllm", "serve", "zai-org/GLM-5.3-Flash", "-tp", "4")
EXAMPLE = str(ROOT / "examples" / "h200-tp8-dp8.kvplan.yaml")
COMMANDS = (
    ("estimate", *SGLANG, "--concurrency", "80", "--explain"),
    ("estimate", "--kv-cache-dtype", "fp8_e4m3"),
    ("solve", *SGLANG, "--prices", "--context", "0.8:8k,0.2:128k"),
    ("solve", *SGLANG, "--mem-fraction-static", "0.3"),
    ("solve", *SGLANG, "--enable-hierarchical-cache", "--host-gib", "2000"),
    ("advise", *SGLANG, "--context", "128k", "--concurrency", "200"),
    ("advise", "--gpu", "h200", "--gpus", "4,8", "--context", "0.8:8k,0.2:128k", "--concurrency", "200"),
    ("pools", *SGLANG, "--concurrency", "4"),
    ("resolve", *SGLANG),
    ("explain", "where", *SGLANG),
    ("explain", "pools", *SGLANG),
    ("diff", EXAMPLE, "--engine", "0.5.21", "--engine", "0.5.23"),
    ("check", EXAMPLE),
    ("sweep", *SGLANG, "--over", "context=8k,128k"),
    ("info",),
    ("info", "model"),
    ("info", "engines"),
    ("info", "gpus"),
    ("reconcile", str(ROOT / "tests" / "data" / "logs" / "b200x4-mtp6-frac80.log")),
    ("solve", *VLLM),
    ("estimate", *VLLM),
    ("advise", *VLLM),
    ("explain", "request", *VLLM),
    ("pools", *VLLM),
    ("report", "-o", "-", "--format", "md", "--concurrency", "64", *VLLM),
    ("report", "-o", "-", "--format", "md", *SGLANG, "--enable-hierarchical-cache", "--host-gib", "2000"),
    ("report", "-o", "-", "--format", "md", *SGLANG, "--max-mamba-cache-size", "9000"),
)


def needs_words(template: str) -> bool:
    """It is more than values, marks and names that stay as they are: a card's memory, a group, a flag."""
    if re.fullmatch(r"\S+ memory|KDA states, group \d+|--[a-z-]+", template):
        return False
    return re.search(r"[a-z]{3}", re.sub(r"\{\w*\}|dtype", "", template)) is not None


def spelled(node: ast.expr) -> list[str]:
    """The texts that an expression may be; none where the source does not spell them."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.IfExp):
        return [*spelled(node.body), *spelled(node.orelse)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [first + second for first in spelled(node.left) for second in spelled(node.right)]
    return []


def templates() -> Iterator[str]:
    for path in sorted((ROOT / "glm_kvplan").rglob("*.py")):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say" and node.args:
                yield from spelled(node.args[0])


def test_every_sentence_in_the_source_has_its_chinese() -> None:
    assert [one for one in dict.fromkeys(templates()) if needs_words(one) and one not in PHRASES] == []


SAYING = (
    "InputError RefusedError PlacedError Reason Explanation right wrong MemoryPart Taken Hazard Location Rest Bound "
    "refuse fail error append"
)
REFUSED_IN_ENGLISH = "start_checks"  # flags that touch no memory: what the engine refuses of them


def plain_texts() -> Iterator[str]:
    """The texts that errors, reasons, explanations and estimates are made of, `{}` for what stands in them."""
    for path in sorted((ROOT / "glm_kvplan").rglob("*.py")):
        if REFUSED_IN_ENGLISH in path.parts:
            continue
        for node in ast.walk(parsed(path)):
            if (
                isinstance(node, ast.Call)
                and getattr(node.func, "id", getattr(node.func, "attr", "")) in SAYING.split()
            ):
                for argument in node.args:
                    yield from spelled_with_blanks(argument)


def spelled_with_blanks(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield re.sub(r"\{[^{}]*\}", "{}", node.value)
    elif isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        yield re.sub(r"\{[^{}]*\}", "{}", "".join(map(str, parts)))
    elif isinstance(node, ast.Tuple):
        for each in node.elts:
            yield from spelled_with_blanks(each)


def is_prose(text: str) -> bool:
    """Three words or more that are neither a formula nor where something was read."""
    words = re.findall(r"(?<![\w./-])[a-z]{2,}(?![\w./(-])", text)
    return len(words) > 2 and re.search(r"\w\.\w+:\d|\.py\b| [*/=+] |\b(as read|at \d)", text) is None


def test_every_reason_refusal_and_error_has_its_chinese() -> None:
    known = load_words("zh").plain
    found = dict.fromkeys(one for one in plain_texts() if is_prose(one))
    assert len(found) > 600
    said = {one: one.replace("{}", "42") for one in found}
    assert [one for one, text in said.items() if known(text) == text] == []


def test_what_stands_in_a_sentence_stands_in_its_chinese() -> None:
    """As many blanks, each once; and of its own more than a word, or it would be found in any text."""
    for english, chinese in SENTENCES.items():
        blanks = english.count("{}")
        named = sorted(re.findall(r"\{(\d*)\}", chinese))
        assert named in ([""] * blanks, [str(number) for number in range(blanks)]), english
        assert not blanks or len(re.findall(r"[A-Za-z][a-z]", english)) > 1 or "x {}" in english, english


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("8 ranks", "8 个 rank"),
        ("1 request", "1 个请求"),
        ("line 8", "第 8 行"),
        ("line up", "line up"),
        ("~41 (40 to 41)", "~41（40 到 41）"),
        ("131,072 tokens", "131,072 tokens"),
        ("flashmla_kv", "flashmla_kv"),
        ("--tp-size 8", "--tp-size 8"),
        ("what no rule says", "what no rule says"),
        ("", ""),
        ("no attention backend reads this cache on H20: knows no decode context parallelism",
         "H20 上没有 attention 后端能读这种缓存：不支持 decode context 并行"),
        ("--pp-size with speculation: this release refuses it; for a build that takes it: --engine FILE.toml with "
         'base = "0.5.21", pp_speculation = true (server_args.py:10-12 at 0.5.21)',
         '--pp-size 加投机解码：这个版本拒绝；若某个构建支持：写一个 base = "0.5.21"、pp_speculation = true 的 TOML '
         "文件，用 --engine 文件.toml（server_args.py:10-12 at 0.5.21）"),
    ],
)  # fmt: skip
def test_plain_text_is_known_again(english: str, chinese: str) -> None:
    assert load_words("zh").plain(english) == chinese


def test_a_long_foreign_text_is_read_quickly() -> None:
    text = "a b; c, d: e " * 500
    assert load_words("zh").plain(text)


def help_texts() -> Iterator[str]:
    for panel, commands in PANELS.items():
        yield from (f"{panel}:", *commands.values())
    for name in COMMANDS_NAMED:
        command = app._command(name, getattr(import_module(f"glm_kvplan.cli.{name}"), name))
        yield from (" ".join(paragraph.split()) for paragraph in cleandoc(command.help or "").split("\n\n"))
        for param in command.params:
            if not isinstance(param, FlagOption):  # an engine's flags are explained in its own words
                yield " ".join((param.help or "").split())
                panel = getattr(param, "rich_help_panel", None)
                yield f"{panel}:" if panel else ""


def test_every_help_text_has_its_chinese() -> None:
    known = load_words("zh").plain
    found = dict.fromkeys(text for text in help_texts() if text and not text.startswith("Example: "))
    assert len(found) > 100
    assert [text for text in found if re.search("[a-z]{3}", text) and known(text) == text] == []


COMPOSED = (  # of parts that stand in the source, by a conjunction, a sum or a name's dashes
    "Options:",
    "Arguments:",
    "free after pools ({})",
    "free after draft pools ({})",
    "target weights, draft weights, context, communication, workspaces",
    "target weights, context, communication, workspaces",
    "indexer workspace, activations, CUDA graphs",
    "FlashKDA where the GPU has it: one state more a request, the prefill's checkpoint",
    "max running requests",
    "the prefill server",
    "2 with prefix caching, {} for draft tokens and 1 for FlashKDA's checkpoint in a prefill",
    "2 with prefix caching and 1 for FlashKDA's checkpoint in a prefill",
)


def english_texts() -> Iterator[str]:
    """All that is spelled in our source, typer's, the system's and the data's: `{}` for what stands in it."""
    yield from (*help_texts(), os.strerror(errno.ENOENT))
    for folder in (ROOT / "glm_kvplan", Path(typer.__file__).parent):
        for path in sorted(folder.rglob("*.py")):
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.expr):
                    yield from spelled_with_blanks(node)
    for path in sorted((ROOT / "glm_kvplan").rglob("*.toml")):
        if not path.name.endswith("_zh.toml"):
            yield path.read_text(encoding="utf-8")


def test_every_chinese_sentence_is_still_said() -> None:
    """Each has its parts in the English of the source, or is a template of it with some of its values."""
    found = {*english_texts()}
    everything = "\n".join(found)
    missed = [one for one in SENTENCES if not all(part.strip() in everything for part in one.split("{}"))]
    templates = [one for one in found if "{}" in one and len(one) < 500 and len(re.findall("[A-Za-z]{2,}", one)) > 1]
    patterns = [re.compile(".*?".join(map(re.escape, one.split("{}"))), re.DOTALL) for one in templates]
    assert [one for one in missed if not any(made.fullmatch(one) for made in patterns)] == [
        one for one in SENTENCES if one in COMPOSED
    ]
    assert tuple(one for one in COMPOSED if one in SENTENCES) == COMPOSED


def test_help_in_chinese_keeps_to_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for words in (("--help",), ("advise", "--help"), ("help", "sweep")):
        assert ended("--lang", "zh", *words) == 0
        out = capsys.readouterr().out
        assert "用法：" in out and "选项：" in out
        assert max(map(width_of, out.splitlines())) < 80


ENGLISH_MAY_STAY = re.compile(
    r"kvplan( [a-z]+)*|GPU KV cache size.*?per request|at 0\.\d+\.\d+|\S*[_/.=*-]\S*|pools with speculation|"
    r"(MLA latent KV|state slots?|draft tokens?|indexer logits|KV host pool|compress tail|top-k)"
)


def left_over(text: str) -> list[str]:
    """Runs of three English words in one line, the engine's own words, flags, names and places left aside."""
    lines = (re.sub(r"\s{2,}", " | ", ENGLISH_MAY_STAY.sub("·", line)) for line in text.splitlines())
    return [line for line in lines if re.search(r"(?<!\w)[A-Za-z]?[a-z]+,?( \(?[a-z]+[,;:]?){2,}", line)]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:4]))
def test_a_command_prints_no_english_sentence(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missed = []
    speak = said.Words.__call__

    def heard(self: said.Words, text: said.Text) -> str:
        if self.language == "zh" and isinstance(text, said.Said):
            missed.extend({text.template} - self.phrases.keys() if needs_words(text.template) else ())
        return speak(self, text)

    monkeypatch.setattr(said.Words, "__call__", heard)
    monkeypatch.setenv("KVPLAN_LANG", "zh")
    monkeypatch.setenv("COLUMNS", "500")
    assert ended(*words) in (0, 1)
    out, err = capsys.readouterr()
    assert missed == [] and re.search("[\u4e00-\u9fff]", out)
    assert left_over(out + err) == []


def test_the_verdicts_of_a_check_in_chinese(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.yaml").write_text(
        "{gpu: H200, flags: {tp_size: 8}, expect: {min_context: 64k, max_running_requests: 60000}}"
    )
    monkeypatch.setenv("KVPLAN_LANG", "zh")
    assert ended("check", "plan.yaml") == 1
    out = capsys.readouterr().out
    assert (
        "未达标" in out.replace("\n", "")
        and "未达  max_running_requests" in out
        and "达标  min_context" in out
        and "瓶颈：" in out
    )
    assert "容量" not in out and "FAILS" not in out


def test_the_option_outranks_the_variable(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("info", "gpus", "--lang", "zh"), ("info", "gpus", "--lang=zh"), ("--lang", "zh", "info", "gpus")):
        assert ended(*words) == 0 and "算力" in capsys.readouterr().out
    assert ended("info", "gpus") == 0 and "算力" not in capsys.readouterr().out
    monkeypatch.setenv("KVPLAN_LANG", "zh")
    assert ended("info", "gpus", "--lang", "en") == 0 and "算力" not in capsys.readouterr().out


def test_json_stays_english(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("solve", *SGLANG, "--json", "--lang", "zh") == 0
    assert not re.search("[\u4e00-\u9fff]", capsys.readouterr().out)


@pytest.mark.parametrize("words", [("info", "gpus", "--lang", "fr"), ("info", "gpus", "--lang")])
def test_a_language_that_there_is_not(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(*words) == 2
    assert "en or zh" in capsys.readouterr().err


def test_a_language_of_the_environment_that_there_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KVPLAN_LANG", "fr")
    assert ended("info", "gpus") == 2
    assert "KVPLAN_LANG 'fr': kvplan speaks en or zh" in capsys.readouterr().err


def test_english_is_no_file() -> None:
    assert load_words("en").phrases == {}
