"""What vLLM's rules read and write while a launch is resolved: the site, and the values decided so far."""

from collections.abc import Mapping
from typing import NamedTuple, NoReturn

from glm_kvplan.engines.flag import Choice, check_value
from glm_kvplan.engines.vllm.flags import FLAG
from glm_kvplan.engines.vllm.profile import EngineProfile
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.memory.gpu import Gpu
from glm_kvplan.model.geometry import Geometry


class Site(NamedTuple):
    """Where the launch happens."""

    geometry: Geometry
    profile: EngineProfile
    gpu: Gpu
    environment: Mapping[str, str]

    def permitted(self, name: str) -> bool:
        """Whether a VLLM_ switch that is off by default says 1 or true; any other text is off."""
        return self.environment.get(name, "").strip().lower() in ("1", "true")

    def switched(self, name: str, default: bool) -> bool:
        """Whether a VLLM_ switch is on, as vLLM reads it: a whole number, not 0. Raises InputError for other text."""
        text = self.environment.get(name)
        if text is None:
            return default
        if not text.strip().lstrip("-").isdecimal():
            raise InputError(f"{name}={text[:40]!r}: vLLM reads a whole number here; write 0 or 1")
        return bool(int(text))


class Decisions:
    """The flags as given, held against the table, and the values decided so far, each with its reason."""

    def __init__(self, given: Mapping[str, object], site: Site) -> None:
        self._given = {name: value for name, value in given.items() if value is not None}
        self.site = site
        self.warnings: list[str] = []
        self._choices: dict[str, Choice] = {}
        for name, value in self._given.items():
            if name not in FLAG:
                raise InputError(f"{name[:60]} is not a flag of vLLM that touches memory")
            check_value(FLAG[name], value)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """What was decided and bears on memory, in the table's order."""
        return tuple(self._choices[name] for name in FLAG if name in self._choices)

    def value(self, name: str) -> object:
        """A flag as given; None where it is not."""
        return self._given.get(name)

    def whole(self, name: str, default: int | None = None) -> int:
        """A flag that is a whole number; where it is not given `default`, or without one its own."""
        value = self._given.get(name, FLAG[name].default if default is None else default)
        assert isinstance(value, int)  # held against the table
        return value

    def number(self, name: str) -> float:
        """A flag that is a number; its own default where it is not given."""
        value = self._given.get(name, FLAG[name].default)
        assert isinstance(value, int | float)
        return float(value)

    def text(self, name: str) -> str:
        """A flag that is a word; its own default where it is not given."""
        return str(self._given.get(name, FLAG[name].default))

    def on(self, name: str, default: bool = False) -> bool:
        """A flag that is switched."""
        return bool(self._given.get(name, default))

    def table(self, name: str) -> Mapping[str, object]:
        """A flag that is a JSON object; empty where it is not given."""
        value = self._given.get(name, {})
        assert isinstance(value, Mapping)
        return value

    def decide(self, name: str, value: object, reason: str, subject: str = "") -> None:
        """Record a value with its reason; `subject` is one of the profile's sources."""
        given = name in self._given and self._given[name] == value
        source = self.site.profile.source(subject) if subject else ""
        self._choices[name] = Choice(name, value, given, reason, source)

    def keep(self, name: str, value: object, default_reason: str, subject: str = "") -> None:
        """Record a value that is the default for a reason; where the flag is given, it stands."""
        if name not in self._given:
            self.decide(name, value, default_reason, subject)

    def refuse(self, reason: str, subject: str) -> NoReturn:
        """Raise RefusedError with the place in the release."""
        raise RefusedError(reason, self.site.profile.source(subject))
