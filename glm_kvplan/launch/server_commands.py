"""Where in a command or script an engine is launched, with which words and which environment."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.given_pieces import nested
from glm_kvplan.launch.bash.interpreter import Interpreter
from glm_kvplan.launch.bash.started_commands import Command
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.launch.bash.values import Scalar, scalar_of
from glm_kvplan.launch.launch import Found, Launch, Server, image_name
from glm_kvplan.launch.marked_words import Piece, Word, concealed, printable, secret_values
from glm_kvplan.launch.programs_in_front import CONTAINERS, base, environment_behind, remote_command

_OTHER_MODULES = ("tensorrt_llm", "lmdeploy", "mlc_llm", "mlx_lm", "llama_cpp", "dynamo.trtllm")
_OTHER_PROGRAMS = (
    *("trtllm-serve", "ollama", "llama-server", "llama-cli", "lmdeploy", "mlc_llm", "aphrodite"),
    *("text-generation-launcher", "tritonserver", "koboldcpp"),
)
_TALKS_ONLY = (
    *("echo", "printf", "cat", "pkill", "kill", "pgrep", "grep", "which", "pip", "pip3", "apt", "apt-get"),
    *("git", "curl", "wget"),
)
_TAKES_A_LINE = ("tmux", "screen")
_TAKES_A_SCRIPT = ("bash", "sh", "zsh", "dash", "sbatch")  # on standard input
SHELL_OPTION = re.compile(r"-[a-z]*c")  # of bash -c, sh -lc: the next word is a script
_DEEPEST = 4


def launches_of_text(
    text: str, servers: Sequence[Server], around: Surroundings, given: Mapping[int, Piece] | None = None
) -> Found:
    """The launches in a script's text; the notes name flags that a broken continuation cut off, and files not read.

    `given` is what stands for numbers between two GIVEN in the text.
    """
    finder = _Finder(servers)
    finder.text(text, around, given)
    notes = tuple(finder.notes)
    if not finder.launches and finder.alone is not None:
        return Found([finder.alone], notes)
    return Found(finder.those(), notes)


def launches_of_words(
    words: tuple[Word, ...],
    servers: Sequence[Server],
    environment: Mapping[str, Word],
    around: Surroundings,
) -> Found:
    """The launches in words that a shell has already split; an engine's flags alone are one."""
    if words[0].text.startswith("--"):
        return Found([Launch(words, False, environment)])
    finder = _Finder(servers)
    finder.words(words, environment, tuple(map(scalar_of, words)), around)
    return Found(finder.those(), tuple(finder.notes))


class _Finder:
    """Looks through commands, and through the scripts that they are given."""

    def __init__(self, servers: Sequence[Server], depth: int = 0) -> None:
        self.servers, self.depth = servers, depth
        self.launches: list[Launch] = []
        self.notes: list[str] = []
        self.commands = 0
        self.alone: Launch | None = None  # the one command, where it is flags
        self.other: InputError | None = None

    def those(self) -> list[Launch]:
        """What was found. Raises InputError where that is another engine alone."""
        if self.other is not None and not self.launches:
            raise self.other
        return self.launches

    def text(self, text: str, around: Surroundings, given: Mapping[int, Piece] | None) -> None:
        shell = Interpreter(around, self.command)
        shell.run(text, given)
        self.notes = list(dict.fromkeys((*self.notes, *shell.notes)))

    def command(self, command: Command, shell: Interpreter) -> None:
        """A command that a script starts."""
        words = command.words
        self.commands += 1
        flags = words[0].text.startswith("--")
        self.alone = Launch(words, False, shell.environment(words[0].place)) if flags and self.commands == 1 else None
        if self.launches and flags:
            option = printable(words[0].text.partition("=")[0], 40)
            self.notes.append(
                f"{words[0].place}: {option} starts a command of its own and never "
                "reaches the engine; the line above must end in a backslash with nothing after it"
            )
            return
        if command.stdin is None and not any(map(self.names, words)):
            self.refuse_other(words)
            return
        before = len(self.launches)
        self.words(words, shell.environment(words[0].place), command.values, shell.within(), command.stdin)
        shell.started += len(self.launches) - before
        for at in range(before, len(self.launches)):
            found = self.launches[at]
            self.launches[at] = found._replace(deciding=found.deciding or command.deciding)

    def words(
        self,
        words: tuple[Word, ...],
        outer: Mapping[str, Word],
        scalars: Sequence[Scalar],
        around: Surroundings,
        stdin: Scalar | None = None,
    ) -> None:
        """A command's words, and the scripts among them or on its standard input."""
        if base(words[0]) in _TALKS_ONLY:
            return
        remote = remote_command(words, self.names)
        if remote is not None:  # a shell there reads the words once more, or its standard input
            script = tuple(piece for word in scalars[remote:] for piece in (Piece(" "), *word))
            inner = replace(_called(around, ()), stdin=stdin if script else None)
            self.inside(script or stdin or (), words[:remote], outer, inner, words[0].place)
            return
        if stdin is not None:
            self.script_on_stdin(stdin, words, outer, around)
        xargs = next((word for word in words if base(word) == "xargs"), None)
        if xargs is not None and any(self.names(word) for word in words):
            raise InputError(f"{xargs.place}: what xargs adds to the engine's words is not known here; write them out")
        for at, word in enumerate(words):
            for server in self.servers:
                if base(word) == server.program and at + 1 < len(words) and words[at + 1].text == "serve":
                    self.found(words, at, at + 2, server, True, outer)
                    return
                if word.text in server.modules or word.text.endswith(server.scripts):
                    self.found(words, at, at + 1, server, False, outer)
                    return
        before = len(self.launches)
        line = base(words[0]) in _TAKES_A_LINE
        for at, word in enumerate(words[1:], 1):
            if (line or SHELL_OPTION.fullmatch(words[at - 1].text)) and self.names(word):
                inner = _called(around, () if line else scalars[at + 1 :])
                self.inside(scalars[at], words[:at], outer, inner, word.place)
        if len(self.launches) == before:
            self.container_start(words, outer)
        if len(self.launches) == before:
            self.refuse_other(words)

    def found(
        self, words: tuple[Word, ...], at: int, start: int, server: Server, serve: bool, outer: Mapping[str, Word]
    ) -> None:
        environment, wrapped = environment_behind(words[:at], outer), words[at].text in server.wrappers
        contained = any(base(word) in CONTAINERS for word in words[:at])
        images = (word.text for word in words[: at + 1] if contained and server.program in image_name(word.text))
        image = next((text for text in images if text != image_name(text)), "")
        secrets = secret_values((name, word.text) for name, word in environment.items())
        own = tuple(concealed(word, secrets) for word in words[start:])
        self.launches.append(Launch(own, serve, environment, server.engine, wrapped=wrapped, image=image))

    def inside(
        self,
        script: Scalar,
        before: Iterable[Word],
        outer: Mapping[str, Word],
        around: Surroundings,
        place: str,
    ) -> None:
        """A script that a command is given, as a word or on its standard input."""
        if self.depth >= _DEEPEST:
            return
        environment = {name: scalar_of(word) for name, word in environment_behind(before, outer).items()}
        text, given = nested(script)
        finder = _Finder(self.servers, self.depth + 1)
        finder.text(text, replace(around, environment=environment, file=None, place=place), given)
        self.launches += finder.launches
        self.notes += finder.notes
        self.other = self.other or finder.other

    def script_on_stdin(
        self, stdin: Scalar, words: Sequence[Word], outer: Mapping[str, Word], around: Surroundings
    ) -> None:
        """What the first shell among the words reads from its standard input: `bash`, `bash -s -- arguments`."""
        at = next((at for at, word in enumerate(words) if base(word) in _TAKES_A_SCRIPT), None)
        if at is None:
            return
        told, rest = base(words[at]) == "sbatch", list(words[at + 1 :])
        if told:
            rest.clear()
        while rest and rest[0].text[:1] in ("-", "+"):
            text = rest.pop(0).text
            if text in ("-", "--"):
                break
            if SHELL_OPTION.fullmatch(text):
                return  # its script is a word
            told = told or re.fullmatch("-[a-z]*s[a-z]*", text) is not None
            del rest[: text[-1] in "oO"]  # the name of a setting
        if rest and not told and rest.pop(0).text != "/dev/stdin":
            return  # its script is a file
        inner = replace(_called(around, [scalar_of(words[at]), *map(scalar_of, rest)]), stdin=None)
        self.inside(stdin, words[:at], outer, inner, words[0].place)

    def container_start(self, words: tuple[Word, ...], outer: Mapping[str, Word]) -> None:
        """A container whose image starts a server by itself: the words after the image are the server's."""
        if not any(base(word) in CONTAINERS for word in words) or any("--entrypoint" in word.text for word in words):
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
            named = base(word)
            following = words[at + 1].text
            if word.text == "-m" and following.startswith(_OTHER_MODULES):
                named = following
            elif named not in _OTHER_PROGRAMS:
                continue
            planned = " and ".join(server.program for server in self.servers)
            self.other = self.other or InputError(
                f"{word.place}: {printable(named)} is another engine; {planned} are planned here"
            )


def _called(around: Surroundings, words: Sequence[Scalar]) -> Surroundings:
    """What a script finds that is called with these words, `$0` the first."""
    return replace(around, called=words[0] if words else None, arguments=tuple(words[1:]))
