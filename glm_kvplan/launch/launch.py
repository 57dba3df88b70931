"""What any text becomes: launches in neutral words; and the shape of an engine's server, as data."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from glm_kvplan.errors import InputError
from glm_kvplan.launch.marked_words import Mark, Word

_RELEASE = re.compile(r":v?(\d{1,4}\.\d{1,4}\.\d{1,4})(?![\d.])[^/]*$")  # in an image's tag


class Server(NamedTuple):
    """How one engine's server is started: `PROGRAM serve`, a Python module, a script, or a container's own start."""

    engine: str
    program: str
    modules: tuple[str, ...]
    scripts: tuple[str, ...] = ()  # endings of a path
    images: tuple[str, ...] = ()  # container images that start it: what follows are its words
    wrappers: tuple[str, ...] = ()  # of the modules those that take flags of their own beside the engine's
    flags: tuple[str, ...] = ()  # no other program has them: flags alone, or keys of a file, are this server's

    def named_in(self, text: str) -> bool:
        """Whether a word may be part of a start of it."""
        return self.program in text

    def starts_in(self, image: str) -> bool:
        """Whether this container image starts it by itself."""
        return image_name(image).endswith(self.images)


class Container(NamedTuple):
    """What stands around a launch in a manifest. `names` are the container's own and those of the objects around it."""

    names: tuple[str, ...]
    image: str = ""
    gpu: str = ""  # the card that its node must have, as the cluster calls it
    gpus: int | None = None  # of its limits
    memory_bytes: int | None = None  # its memory limit

    @property
    def label(self) -> str:
        return "/".join(self.names) or "unnamed"


class Settings(NamedTuple):
    """Flags as the keys of a mapping: an engine's own config file, or a recipe that holds the same."""

    data: Mapping[object, object]
    place: str  # what a message calls it
    hidden: bool = False  # somebody else chose the file: no message quotes its values
    own: bool = True  # the engine itself reads it


class Launch(NamedTuple):
    """An engine's own words of one launch, and what is said around it. What the words mean is the engine's business."""

    words: tuple[Word, ...]
    serve: bool  # `PROGRAM serve`: a first plain word is the model
    environment: Mapping[str, Word]  # what the server sees, as far as the text says
    engine: str = ""  # "" where the words are flags alone
    deciding: Mark | None = None  # what decides whether it starts at all
    container: Container | None = None
    settings: Settings | None = None  # below its words
    within: str = ""  # what a message about it begins with
    wrapped: bool = False  # flags of another program may stand among its words
    image: str = ""  # of the container that a command starts it in

    def image_notes(self, release: str) -> list[str]:
        """That its container's image is tagged with another release of its engine than `release`."""
        image = self.image or (self.container.image if self.container is not None else "")
        tag = _RELEASE.search(image)
        if tag is None or not self.engine or self.engine not in image_name(image) or tag[1] == release:
            return []
        return [f"the image of the launch is tagged {tag[1]}, and this is planned as {release}; --engine says which"]

    @property
    def label(self) -> str:
        """What it is called among others of one text."""
        if self.container is not None:
            return self.container.label
        return self.words[0].place if self.words else "no flags"

    def called(self, name: str) -> bool:
        """Whether this is the launch that `--container NAME` means."""
        return name == self.label or (self.container is not None and name in self.container.names)


class Found(NamedTuple):
    """The launches of one text, in its order, and what was read otherwise than it stands there, or not at all."""

    launches: Sequence[Launch]
    notes: tuple[str, ...] = ()
    name: str = ""  # of the text, in messages


def gathered(parts: Iterable[tuple[str, Callable[[], Found]]], name: str) -> Found:
    """What the parts of a text launch, each read by its function. A part that cannot be read is left out where another
    has a launch; where none has, its InputError is raised, behind what stands beside its function.
    """
    launches: list[Launch] = []
    notes: list[str] = []
    wrong: list[InputError] = []
    for place, read in parts:
        try:
            found = read()
        except InputError as error:
            wrong.append(InputError(f"{place}{error}"))
            continue
        launches += found.launches
        notes += found.notes
    if wrong and not launches:
        raise wrong[0]
    return Found(launches, tuple(notes), name)


def image_name(text: str) -> str:
    """A container image without its tag and digest: "some/server" of "some/server:v1.2@sha256:..."."""
    place, slash, last = text.partition("@")[0].rpartition("/")
    return place + slash + last.partition(":")[0]
