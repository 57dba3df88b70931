"""Where in a command or script an engine is launched, with which words and which environment."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.interpreter import Command, Interpreter, Surroundings
from glm_kvplan.launch.bash.values import Scalar, scalar_of
from glm_kvplan.launch.bash.word_reader import nested
from glm_kvplan.launch.launch import Found, Launch, Server, image_name
from glm_kvplan.launch.marked_words import Piece, Word, printable, split_assignment

_OTHER_MODULES = ("tensorrt_llm", "lmdeploy", "mlc_llm", "mlx_lm", "llama_cpp", "dynamo.trtllm")
_OTHER_PROGRAMS = (
    *("trtllm-serve", "ollama", "llama-server", "llama-cli", "lmdeploy", "mlc_llm", "aphrodite"),
    *("text-generation-launcher", "tritonserver", "koboldcpp"),
)
_TALKS_ONLY = (
    *("echo", "printf", "cat", "pkill", "kill", "pgrep", "grep", "which", "pip", "pip3", "apt", "apt-get"),
    *("git", "curl", "wget"),
)
_TAKES_A_LINE = ("ssh", "tmux", "screen")
_TAKES_A_SCRIPT = ("bash", "sh", "zsh", "dash", "ssh", "sbatch")  # on standard input
_CONTAINERS = ("docker", "podman", "nerdctl", "kubectl")  # the outer environment stays outside
SHELL_OPTION = re.compile(r"-[a-z]*c")  # of bash -c, sh -lc: the next word is a script
_DEEPEST = 4


def launches_of_text(text: str, servers: Sequence[Server], around: Surroundings | None = None) -> Found:
    """The launches in a script's text; the notes name flags that a broken continuation cut off, and files not read."""
    finder = _Finder(servers)
    finder.text(text, around)
    notes = tuple(finder.notes)
    if not finder.launches:
        if finder.count == 1 and finder.first and finder.first[0].text.startswith("--"):
            return Found([Launch(finder.first, False, finder.environment)], notes)
        if finder.other is not None:
            raise finder.other
    return Found(finder.launches, notes)


def launches_of_words(
    words: tuple[Word, ...],
    servers: Sequence[Server],
    environment: Mapping[str, Word] | None = None,
    around: Surroundings | None = None,
) -> Found:
    """The launches in words that a shell has already split; an engine's flags alone are one."""
    if words[0].text.startswith("--"):
        return Found([Launch(words, False, environment or {})])
    finder = _Finder(servers)
    finder.words(words, environment or {}, around=around)
    if finder.other is not None and not finder.launches:
        raise finder.other
    return Found(finder.launches, tuple(finder.notes))


class _Finder:
    """Looks through commands, and through the scripts that they are given."""

    def __init__(self, servers: Sequence[Server], depth: int = 0) -> None:
        self.servers, self.depth = servers, depth
        self.launches: list[Launch] = []
        self.notes: list[str] = []
        self.count = 0
        self.first: tuple[Word, ...] = ()
        self.environment: Mapping[str, Word] = {}
        self.other: InputError | None = None

    def text(self, text: str, around: Surroundings | None, given: Mapping[int, Piece] | None = None) -> None:
        shell = Interpreter(around or Surroundings(), self.command)
        shell.run(text.replace("\r\n", "\n"), given)
        self.notes = list(dict.fromkeys((*self.notes, *shell.notes)))

    def command(self, command: Command, shell: Interpreter) -> None:
        """A command that a script starts."""
        words = command.words
        self.count += 1
        if self.count == 1:
            self.first = words
            self.environment = shell.environment()
        if command.stdin is not None and any(_base(word) in _TAKES_A_SCRIPT for word in words):
            self.inside(command.stdin, words, shell.environment(), shell.within(), words[0].place)
        if not any(word.text.startswith("--") or self.names(word) for word in words):
            self.refuse_other(words)
            return
        if self.launches and words[0].text.startswith("--"):
            option = printable(words[0].text.partition("=")[0], 40)
            self.notes.append(
                f"{words[0].place}: {option} starts a command of its own and never "
                "reaches the engine; the line above must end in a backslash with nothing after it"
            )
            return
        before = len(self.launches)
        self.words(words, shell.environment(), command.values, shell.within())
        shell.started += len(self.launches) - before
        for at in range(before, len(self.launches)):
            found = self.launches[at]
            self.launches[at] = found._replace(deciding=found.deciding or command.deciding)

    def words(
        self,
        words: tuple[Word, ...],
        outer: Mapping[str, Word],
        values: Sequence[Scalar] | None = None,
        around: Surroundings | None = None,
    ) -> None:
        """A command's words, and the scripts among them."""
        if not words or _base(words[0]) in _TALKS_ONLY:
            return
        xargs = next((word for word in words if _base(word) == "xargs"), None)
        if xargs is not None and any(self.names(word) for word in words):
            raise InputError(f"{xargs.place}: what xargs adds to the engine's words is not known here; write them out")
        for at, word in enumerate(words):
            for server in self.servers:
                if _base(word) == server.program and at + 1 < len(words) and words[at + 1].text == "serve":
                    self.found(words, at, at + 2, server, True, outer)
                    return
                if word.text in server.modules or word.text.endswith(server.scripts or ("\0",)):
                    self.found(words, at, at + 1, server, False, outer)
                    return
        before = len(self.launches)
        line = _base(words[0]) in _TAKES_A_LINE
        for at, word in enumerate(words):
            is_script = line or (at > 0 and SHELL_OPTION.fullmatch(words[at - 1].text))
            if is_script and self.names(word):
                value = values[at] if values is not None else scalar_of(word)
                rest = () if line else tuple(map(scalar_of, words[at + 2 :]))
                self.inside(value, words[:at], outer, around, word.place, rest)
        if len(self.launches) == before:
            self.container_start(words, outer)
        if len(self.launches) == before:
            self.refuse_other(words)

    def found(
        self, words: tuple[Word, ...], at: int, start: int, server: Server, serve: bool, outer: Mapping[str, Word]
    ) -> None:
        environment, wrapped = _environment(words[:at], outer), words[at].text in server.wrappers
        contained = any(_base(word) in _CONTAINERS for word in words[:at])
        images = (word.text for word in words[: at + 1] if contained and server.program in image_name(word.text))
        image = next((text for text in images if text != image_name(text)), "")
        self.launches.append(Launch(words[start:], serve, environment, server.engine, wrapped=wrapped, image=image))

    def inside(
        self,
        script: Scalar,
        before: Iterable[Word],
        outer: Mapping[str, Word],
        around: Surroundings | None,
        place: str,
        arguments: tuple[Scalar, ...] = (),
    ) -> None:
        """A script that a command is given, as a word or on its standard input."""
        if self.depth >= _DEEPEST:
            return
        environment = {name: scalar_of(word) for name, word in _environment(before, outer).items()}
        text, given = nested(script)
        finder = _Finder(self.servers, self.depth + 1)
        inner = replace(around or Surroundings(), environment=environment, arguments=arguments, place=place)
        finder.text(text, inner, given)
        self.launches += finder.launches
        self.notes += finder.notes
        self.other = self.other or finder.other

    def container_start(self, words: tuple[Word, ...], outer: Mapping[str, Word]) -> None:
        """A container whose image starts a server by itself: the words after the image are the server's."""
        if not any(_base(word) in _CONTAINERS for word in words) or any("--entrypoint" in word.text for word in words):
            return
        for at, word in enumerate(words):
            for server in self.servers:
                if server.starts_in(word.text):
                    self.found(words, at, at + 1, server, True, outer)
                    return

    def names(self, word: Word) -> bool:
        return any(server.named_in(word.text) for server in self.servers)

    def refuse_other(self, words: tuple[Word, ...]) -> None:
        for at, word in enumerate(words[:-1]):
            named = _base(word)
            following = words[at + 1].text
            if word.text == "-m" and following.startswith(_OTHER_MODULES):
                named = following
            elif named not in _OTHER_PROGRAMS:
                continue
            planned = " and ".join(server.program for server in self.servers)
            self.other = self.other or InputError(
                f"{word.place}: {printable(named)} is another engine; {planned} are planned here"
            )


def _base(word: Word) -> str:
    return word.text.rsplit("/", 1)[-1]


def _environment(before: Iterable[Word], outer: Mapping[str, Word]) -> dict[str, Word]:
    """The environment after the words in front of the engine's: NAME=value, -e, --env, --export, containers, `env`."""
    seen, outside = dict(outer), dict(outer)
    previous, cleans = "", False
    for word in before:
        text = word.text
        if _base(word) in (*_CONTAINERS, "ssh"):
            outside, seen = seen, {}
        cleans = cleans or _base(word) == "env"
        if cleans and text in ("-i", "--ignore-environment"):
            seen = {}
        elif cleans and (previous in ("-u", "--unset") or text.startswith("--unset=")):
            seen.pop(text.removeprefix("--unset="), None)
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
