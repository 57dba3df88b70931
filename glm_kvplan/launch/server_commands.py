"""Where in a command or script the engine is launched, with which words and which environment."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from glm_kvplan.errors import InputError
from glm_kvplan.launch.shell import Word, printable, read_script, split_assignment

_OTHER_MODULES = ("tensorrt_llm", "lmdeploy", "mlc_llm", "mlx_lm", "llama_cpp", "dynamo.trtllm")
_OTHER_PROGRAMS = (
    *("trtllm-serve", "ollama", "llama-server", "llama-cli", "lmdeploy", "mlc_llm", "aphrodite"),
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


class Server(NamedTuple):
    """How one engine's server is started: `PROGRAM serve`, a Python module, a script, or a container's own start."""

    engine: str
    program: str
    modules: tuple[str, ...]
    scripts: tuple[str, ...] = ()  # endings of a path
    images: tuple[str, ...] = ()  # container images that start it: what follows are its words

    def named_in(self, text: str) -> bool:
        """Whether a word may be part of a start of it."""
        return self.program in text


class Launch(NamedTuple):
    """An engine's own words of one launch, and the environment it sees as far as the text says."""

    words: tuple[Word, ...]
    serve: bool  # `PROGRAM serve`: a first plain word is the model
    environment: Mapping[str, Word]
    engine: str = ""  # "" where the words are flags alone


def launches_of_text(text: str, servers: Sequence[Server]) -> tuple[list[Launch], list[str]]:
    """The launches in a script's text, and a warning for flags that a broken continuation cut off."""
    return _of_text(text, servers, "", {}, 0)


def launches_of_words(words: tuple[Word, ...], servers: Sequence[Server]) -> list[Launch]:
    """The launches in words that a shell has already split; an engine's flags alone are one."""
    found = _of_command(words, servers, {}, 0, bare=True)
    if not found:
        _refuse_other_engine(words, servers)
    return found


def _of_text(
    text: str, servers: Sequence[Server], place: str, outer: Mapping[str, Word], depth: int
) -> tuple[list[Launch], list[str]]:
    script = read_script(text, place)
    launches: list[Launch] = []
    warnings: list[str] = []
    seen = dict(outer)
    exports = list(reversed(script.exports))
    for number, command in enumerate(script.commands):
        while exports and exports[-1][0] <= number:
            _, name, value = exports.pop()
            seen[name] = value
        if not any(word.text.startswith("--") or _named(word, servers) for word in command):
            continue
        if launches and command[0].text.startswith("--"):
            option = printable(command[0].text.partition("=")[0], 40)
            warnings.append(
                f"{command[0].place}: {option} starts a command of its own and never "
                "reaches the engine; the line above must end in a backslash with nothing after it"
            )
            continue
        launches += _of_command(command, servers, seen, depth, bare=len(script.commands) == 1)
    if not launches:
        for command in script.commands:
            _refuse_other_engine(command, servers)
    return launches, warnings


def _of_command(
    words: tuple[Word, ...], servers: Sequence[Server], outer: Mapping[str, Word], depth: int, bare: bool
) -> list[Launch]:
    if not words or _base(words[0]) in _TALKS_ONLY:
        return []
    if bare and words[0].text.startswith("--"):
        return [Launch(words, False, dict(outer))]
    for at, word in enumerate(words):
        for server in servers:
            if _base(word) == server.program and at + 1 < len(words) and words[at + 1].text == "serve":
                return [Launch(words[at + 2 :], True, _environment(words[:at], outer), server.engine)]
            if word.text in server.modules or word.text.endswith(server.scripts or ("\0",)):
                return [Launch(words[at + 1 :], False, _environment(words[:at], outer), server.engine)]
    launches: list[Launch] = []
    line = _base(words[0]) in _TAKES_A_LINE
    for at, word in enumerate(words):
        is_script = line or (at > 0 and SHELL_OPTION.fullmatch(words[at - 1].text))
        if is_script and depth < _DEEPEST and _named(word, servers) and not word.undefined:
            launches += _of_text(word.text, servers, word.place, _environment(words[:at], outer), depth + 1)[0]
    return launches or _container_start(words, servers, outer)


def _container_start(words: tuple[Word, ...], servers: Sequence[Server], outer: Mapping[str, Word]) -> list[Launch]:
    """A container whose image starts a server by itself: the words after the image are the server's."""
    if not any(_base(word) in _CONTAINERS for word in words) or any("--entrypoint" in word.text for word in words):
        return []
    for at, word in enumerate(words):
        for server in servers:
            if _image(word.text).endswith(server.images or ("\0",)):
                return [Launch(words[at + 1 :], True, _environment(words[:at], outer), server.engine)]
    return []


def _named(word: Word, servers: Sequence[Server]) -> bool:
    return any(server.named_in(word.text) for server in servers)


def _image(text: str) -> str:
    """A container image without its tag and digest: "some/server" of "some/server:v1.2@sha256:..."."""
    place, slash, last = text.partition("@")[0].rpartition("/")
    return place + slash + last.partition(":")[0]


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


def _refuse_other_engine(words: tuple[Word, ...], servers: Sequence[Server]) -> None:
    for at, word in enumerate(words[:-1]):
        named = _base(word)
        following = words[at + 1].text
        if word.text == "-m" and following.startswith(_OTHER_MODULES):
            named = following
        elif named not in _OTHER_PROGRAMS:
            continue
        raise InputError(f"{word.place}: {printable(named)} is another engine; {_programs(servers)} are planned here")


def _programs(servers: Sequence[Server]) -> str:
    return " and ".join(server.program for server in servers)
