"""What people type by guess: help in every spelling, commands that there are not, several cards, percentages."""

import pytest
import typer
from paths import ROOT
from running import ended

from glm_kvplan.cli import COMMANDS
from glm_kvplan.cli.app import _options, app
from glm_kvplan.cli.guesses import _MEANT, _ONCE, _OPTIONS
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.by_name import NAMES, engine_named
from glm_kvplan.engines.twins import _GUESSED


@pytest.mark.parametrize(
    "words",
    [("-h",), ("help",), ("solve", "-h"), ("help", "solve"), ("--help", "solve"), ("solve", "help")],
)
def test_help_in_every_spelling(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(*words) == 0
    out = capsys.readouterr().out
    assert out.startswith("Usage: kvplan solve" if "solve" in words else "Usage: kvplan COMMAND")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("plan", "kvplan solve"),
        ("fit", "--gpus"),
        ("compare", "diff"),
        ("solv", "solve"),
        ("size", "kvplan solve"),
        ("version", "kvplan --version"),
        ("list", "kvplan info"),
        ("mtp", "kvplan solve --speculative-algorithm EAGLE"),
        ("users", "--concurrency 64"),
        ("h200", "kvplan solve --gpu h200"),
        ("8xH200", "kvplan advise --gpu h200 --gpus 8"),
        (str(ROOT / "docs" / "tutorial" / "serve.sh"), "kvplan solve --launch"),
        (str(ROOT / "docs" / "tutorial" / "serve.kvplan.yaml"), "kvplan check"),
        (str(ROOT / "tests" / "data" / "logs" / "b200x4-mtp6-frac80.log"), "kvplan reconcile"),
        ("nothing-like-it", "commands are: estimate"),
    ],
)
def test_commands_that_there_are_not(word: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(word) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


@pytest.mark.parametrize("topic", ["engines", "gpus", "model", "schema"])
def test_old_doors_name_the_new_one(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ((topic,), ("help", topic), (topic, "--json")):
        assert ended(*words) == 2
        assert capsys.readouterr().err == f"kvplan: `kvplan {topic}` is now `kvplan info {topic}`\n"
    assert ended("info", topic) == 0 and capsys.readouterr().out
    assert ended("info") == 0 and f"{topic} " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("info engine", "'engine' is no topic of kvplan info; there are engines, gpus, model, schema"),
        ("info gpus h200", "'h200' is one argument too many for kvplan info gpus"),
        ("info gpus --model x", "kvplan info model --model"),
        ("info gpus -- vllm serve x", "reads no launch command"),
        ("info engines 0.5.21", "name two engines"),
        ("solve --mtp", "of SGLang it is --speculative-algorithm EAGLE"),
        ("solve --gpu h200 --speculative mtp", "of SGLang it is --speculative-algorithm EAGLE"),
        ("solve --engine vllm --mtp", 'of vLLM it is --speculative-config \'{"method": "mtp"'),
        ("solve --hicache", "--enable-hierarchical-cache"),
        ("solve --max-model-len 8k", "of SGLang it is --context-length"),
        ("solve --gpu h200 --max-num-seqs 8 -- sglang serve m", "of SGLang it is --max-running-requests"),
        ("estimate --users 64", "estimate has no --users; did you mean --concurrency?"),
        ("advise --batch-size 64", "did you mean --concurrency?"),
        ("estimate --ctx 8k", "did you mean --context?"),
        ("estimate --ram 8", "did you mean --host-gib?"),
        ("solve --gpus 8", "solve has no --gpus: an option of kvplan advise"),
        ("solve --num-gpus 8", "what you mean is --gpus: an option of kvplan advise"),
        ("check --tp-size 8 x.yaml", "an option of kvplan estimate, solve"),
        ("solve --language zh", "did you mean --lang?"),
        ("solve --version", "kvplan --version"),
        ("-V", "kvplan --version"),
        ("solve h200", "kvplan solve --gpu h200"),
        ("estimate --context 128,000", "write 128000"),
        ("solve --tp-size 8 --speculative-algorithm mtp", "the model's own MTP layer is EAGLE"),
        ("solve --tp-sise 8", "did you mean --tp-size"),
        ("solve --nothing-like-it", "solve --help lists"),
        ("--gpu h200", "a command goes in front of --gpu"),
        ("-- sglang serve m", "kvplan solve --gpu b200 -- ..."),
        ("vllm serve m", "kvplan solve --gpu b200 -- vllm serve"),
        ("sweep --tp-size 1,2,4,8", "--tp-size takes one value; --over tp_size=1,2,4,8 takes them all"),
        ("solve --tp-size 1,2", "kvplan sweep --over tp_size=1,2 takes"),
        ("sweep --gpu h200,b200", "; --over gpu=h200,b200 takes"),
        ("sweep --engine 0.5.21,vllm-0.33.0", "; --over engine=0.5.21,vllm-0.33.0 takes"),
        ("sweep --over tp_size=4,8 --concurrency 8,16", "; --over concurrency=8,16 takes"),
        ("sweep --context 8k,32k", "--over context=8k,32k"),
        ("advise --context 8k,32k", "0.8:8k,0.2:128k"),
        ("advise --gpus 8xh200", "--gpus 8 --gpu h200"),
        ("advise --gpus 1-8", "such as 1,2,4,8"),
    ],
)
def test_options_that_there_are_not(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(*words.split()) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1) and said in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("solve --mix 8k", "solve --mix is now solve --context"),
        ("advise --checkpoints 3", "advise --checkpoints is now advise --prefix-states"),
        ("advise --try-state-dtype bfloat16", "is now advise --try FLAG=VALUE"),
        ("sweep --over checkpoints=1,2", "--over checkpoints is now --over prefix_states"),
        ("check --config-root . x", "check --config-root is now check --root"),
        ("validate --report x.md", "validate --report is now validate --output"),
        ("check --format markdown x", "--format markdown is now --format md"),
        ("diff --format markdown=x.md x", "--format markdown is now --format md"),
        ("report -o x.md --format markdown", "--format markdown is now --format md"),
        ("sweep --over tp_size=4,8 --format table", "--format table is now --format text"),
        ("advise --try kv-cache-dtype=bfloat16", "goes with --gpus; without it one value of mamba-ssm-dtype is tried"),
        ("advise --try mamba-ssm-dtype=bfloat16,float32", "goes with --gpus"),
    ],
)
def test_names_that_options_had(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(*words.split()) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1) and said in err


def test_what_is_guessed_at_is_a_flag_and_the_guess_is_none() -> None:
    for name in NAMES:
        options = {spelling for flag in engine_named(name).flags for spelling in (*flag.options, *flag.negative)}
        for guesses, *named in _GUESSED:
            flag = named[NAMES.index(name)]
            assert flag is None or flag.split()[0] in options
            assert options.isdisjoint(guesses) or flag is None
    own = {
        spelling for command in COMMANDS for spelling in _options(command, typer.Context(typer.main.get_command(app)))
    }
    assert own >= _OPTIONS.keys() - {"--lang"} and own.isdisjoint({**_MEANT, **_ONCE})


def test_several_cards_in_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("8xh200", "8 x H200", "8*h200", "h200x8", "H200 x 8"):
        assert ended("solve", "--gpu", name) == 2
        assert "kvplan advise --gpus 8" in capsys.readouterr().err
    assert ended("solve", "--gpu", "8xnothing") == 2
    assert "is not known" in capsys.readouterr().err


def test_shares_in_percent() -> None:
    assert parse_contexts("80%:8k,20%:128k") == parse_contexts("0.8:8k,0.2:128k")
    assert parse_contexts("33.3%:1k,66.7%:2k").weights == (667, 333)
