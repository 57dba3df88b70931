"""Where in a command or script the engine is launched, with which words and which environment."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from glm_kvplan.errors import InputError
from glm_kvplan.launch.shell import Word, printable, read_script, split_assignment

_MODULES = ("sglang.launch_server", "dynamo.sglang", "sglang_router.launch_server")
_OTHER_MODULES = ("vllm", "tensorrt_llm", "lmdeploy", "mlc_llm", "mlx_lm", "llama_cpp", "dynamo.vllm", "dynamo.trtllm")
_OTHER_PROGRAMS = (
    *("vllm", "trtllm-serve", "ollama", "llama-server", "llama-cli", "lmdeploy", "mlc_llm", "aphrodite"),
    *("text-generation-launcher", "tritonserver", "koboldcpp"),
)
_TALKS_ONLY = (
    *("echo", "printf", "cat", "pkill", "kill", "pgrep", "grep", "which", "pip", "pip3", "apt", "apt-get"),
    *("git", "curl", "wget"),
)
_TAKES_A_LINE = ("ssh", "tmux", "screen", "eval")
_CONTAINERS = ("docker", "podman", "nerdctl", "kubectl")  # the outer environment stays outside
SHELL_OPTION = re.compile(r"-[a-z]*c")  # of bash -c, sh -lc: the next word is a script
_DEEPEST = 4


class Launch(NamedTuple):
    """The engine's own words of one launch, and the environment it sees as far as the text says."""

    words: tuple[Word, ...]
    serve: bool  # `sglang serve`: a first plain word is the model
    environment: Mapping[str, Word]


def launches_of_text(text: str) -> tuple[list[Launch], list[str]]:
    """The launches in a script's text, and a warning for flags that a broken continuation cut off."""
    return _of_text(text, "", {}, 0)


def launches_of_words(words: tuple[Word, ...]) -> list[Launch]:
    """The launches in words that a shell has already split; the engine's flags alone are one."""
    found = _of_command(words, {}, 0, bare=True)
    if not found:
        _refuse_other_engine(words)
    return found


def _of_text(text: str, place: str, outer: Mapping[str, Word], depth: int) -> tuple[list[Launch], list[str]]:
    script = read_script(text, place)
    launches: list[Launch] = []
    warnings: list[str] = []
    seen = dict(outer)
    exports = list(reversed(script.exports))
    for number, command in enumerate(script.commands):
        while exports and exports[-1][0] <= number:
            _, name, value = exports.pop()
            seen[name] = value
        if not any("sglang" in word.text or word.text.startswith("--") for word in command):
            continue
        if launches and command[0].text.startswith("--"):
            warnings.append(
                f"{command[0].place}: {printable(command[0].text, 40)} starts a command of its own and never "
                "reaches the engine; the line above must end in a backslash with nothing after it"
            )
            continue
        launches += _of_command(command, seen, depth, bare=len(script.commands) == 1)
    if not launches:
        for command in script.commands:
            _refuse_other_engine(command)
    return launches, warnings


def _of_command(words: tuple[Word, ...], outer: Mapping[str, Word], depth: int, bare: bool) -> list[Launch]:
    if not words or _base(words[0]) in _TALKS_ONLY:
        return []
    if bare and words[0].text.startswith("--"):
        return [Launch(words, False, dict(outer))]
    for at, word in enumerate(words):
        if _base(word) == "sglang" and at + 1 < len(words) and words[at + 1].text == "serve":
            return [Launch(words[at + 2 :], True, _environment(words[:at], outer))]
        if word.text in _MODULES or word.text.endswith("sglang/launch_server.py"):
            return [Launch(words[at + 1 :], False, _environment(words[:at], outer))]
    launches: list[Launch] = []
    line = _base(words[0]) in _TAKES_A_LINE
    for at, word in enumerate(words):
        is_script = line or (at > 0 and SHELL_OPTION.fullmatch(words[at - 1].text))
        if is_script and depth < _DEEPEST and "sglang" in word.text and not word.undefined:
            launches += _of_text(word.text, word.place, _environment(words[:at], outer), depth + 1)[0]
    return launches


def _base(word: Word) -> str:
    return word.text.rsplit("/", 1)[-1]


def _environment(before: Iterable[Word], outer: Mapping[str, Word]) -> dict[str, Word]:
    """The environment after the words in front of the engine's: NAME=value, -e, --env, --export, containers."""
    seen, outside = dict(outer), dict(outer)
    previous = ""
    for word in before:
        text = word.text
        if _base(word) in _CONTAINERS:
            outside, seen = seen, {}
        for prefix in ("--env=", "--export=", "-e"):
            if text.startswith(prefix) and len(text) > len(prefix):
                text, previous = text[len(prefix) :], "-e"
                break
        for part in text.split(",") if word.text.startswith("--export=") else [text]:
            pair = split_assignment(part)
            if pair is not None:
                seen[pair[0]] = word._replace(text=pair[1])
            elif previous in ("-e", "--env", "-x") and part in outside:
                seen[part] = outside[part]
        previous = word.text
    return seen


def _refuse_other_engine(words: tuple[Word, ...]) -> None:
    for at, word in enumerate(words[:-1]):
        named = _base(word)
        following = words[at + 1].text
        if word.text == "-m" and following.startswith(_OTHER_MODULES):
            named = following
        elif named not in _OTHER_PROGRAMS:
            continue
        raise InputError(f"{word.place}: {printable(named)} is another engine; a launch command of SGLang is needed")
