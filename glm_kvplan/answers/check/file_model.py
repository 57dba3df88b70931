"""The shape of a deployment file, as pydantic models: read by the file's reader, used by everything behind it.

What is written here is what editors show: the texts end up in the JSON Schema. Imported by functions alone.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache, partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, create_model, field_validator
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from glm_kvplan.contexts import LARGEST_SHARE, LEAST_SHARE, contexts, parse_shares
from glm_kvplan.engines.by_name import NAMES, assumed_engine, engine_named
from glm_kvplan.engines.expectations import EXPECTATIONS, KINDS, Expectations
from glm_kvplan.engines.flag import Flag
from glm_kvplan.engines.protocol import Engine
from glm_kvplan.errors import InputError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.memory.gpu import known_gpus
from glm_kvplan.reading.secret_words import quoted
from glm_kvplan.units import LARGEST_COUNT, parse_count

Absent = SkipJsonSchema[None]  # a key that is left out; one without a value is refused
Gib = Annotated[float, Field(gt=0, le=1 << 20)]
Requests = Annotated[int, Field(ge=1, le=LARGEST_COUNT)]
Text = Annotated[str, Field(min_length=1, max_length=4096)]
VariableName = Annotated[str, Field(pattern=r"^([A-Za-z_][A-Za-z0-9_]*|[0-9]{1,3})$")]
Script = Annotated[str, Field(min_length=1, max_length=1 << 20)]

_COUNT = r"^\d{1,15}(\.\d{1,6})?[kKmM]?$"
_ENGINE_COUNT = r"^(auto|\d{1,15}(\.\d{1,6})?([kmgtKMGT]|[KMGT]i))$"


def _tokens(value: object) -> object:
    """A count as people write it, as a number."""
    if isinstance(value, str) and re.fullmatch(_COUNT, value):
        try:
            return parse_count(value, "it")
        except InputError:
            raise PydanticCustomError("count", "a whole number from 1 to 2**48") from None
    if not isinstance(value, int) or isinstance(value, bool):
        raise PydanticCustomError("count", "a whole number or text such as 128k")
    return value


Count = Annotated[
    int,
    Field(ge=1, le=LARGEST_COUNT),
    BeforeValidator(_tokens),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": LARGEST_COUNT},
                {"type": "string", "pattern": _COUNT, "description": "128k is 131072, 1m is 1048576"},
            ]
        }
    ),
]


_LENGTHS = "shares such as 80%:8k,20%:128k, or a mapping of length to share"
_ONE_SHARE = r"\s*\d{1,20}(\.\d{1,20})?%?\s*:\s*\d{1,15}(\.\d{1,6})?[kKmM]?\s*"
_SHARES = f"^{_ONE_SHARE}(,{_ONE_SHARE})*$"


def _lengths(value: object) -> object:
    """Context lengths with their shares, as the command line takes them or a mapping of length to share."""
    try:
        if isinstance(value, str) and re.fullmatch(_SHARES, value):
            return parse_shares(value, "contexts")
        if isinstance(value, Mapping):
            return contexts((parse_count(str(length), "contexts"), _share(share)) for length, share in value.items())
    except InputError as error:
        raise PydanticCustomError("count", "{said} ({why})", {"said": _LENGTHS, "why": str(error)}) from None
    raise PydanticCustomError("count", "{said}", {"said": _LENGTHS})


def _share(value: object) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LARGEST_COUNT:
        raise InputError(f"a share is a number from 0, not {quoted(value, 'share')}")
    return Fraction(str(value))


Lengths = Annotated[
    Any,
    BeforeValidator(_lengths),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": _SHARES, "description": "80%:8k,20%:128k"},
                {
                    "type": "object",
                    "minProperties": 1,
                    "propertyNames": {"pattern": _COUNT},
                    "additionalProperties": {"type": "number", "minimum": 0, "maximum": LARGEST_COUNT},
                    "description": "{8k: 80, 128k: 20}: shares of any sum",
                },
            ]
        }
    ),
]


def _release_schema() -> dict[str, Any]:
    """The releases by all names that mean them, and profile files."""
    assumed, names = assumed_engine(), ["installed"]
    for engine in map(engine_named, NAMES):
        releases = engine.releases()
        names += releases if engine is assumed else ()
        names += [engine.name, *(f"{engine.name}-{release}" for release in (*releases, "installed"))]
    return {"anyOf": [{"enum": names}, {"type": "string", "pattern": r"\.toml$"}]}


def _gpu_schema() -> dict[str, Any]:
    """The cards as `kvplan info gpus` names them; other spellings of them are read, too."""
    names = [name for key, gpu in known_gpus().items() for name in (key, key.upper(), gpu.name)]
    return {"anyOf": [{"enum": [*dict.fromkeys(names), "local"]}, {"type": "string", "pattern": r"^.+:\s*\d{1,9}$"}]}


class Part(BaseModel):
    """A mapping without unknown keys; a number is a number and text is text."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _has_a_value(cls, value: object) -> object:
        if value is None:
            raise PydanticCustomError("no_value", "a value")
        return value


class Flags(Part):
    """Launch flags of one engine; its table says which (`flags_of`)."""


class Environment(Part):
    """Environment switches of one engine; its table says which."""


class Memory(Part):
    """The memory of one GPU and of one host in GiB, which engines' logs print as GB. What is left out is estimated."""

    pre_gib: Gib | Absent = Field(default=None, description="free on one GPU before the weights load")
    available_gib: Gib | Absent = Field(
        default=None, description="free on one GPU after target and draft weights have loaded"
    )
    target_weights_gib: Gib | Absent = Field(default=None, description="target weights on one GPU")
    draft_weights_gib: Gib | Absent = Field(default=None, description="draft (MTP) weights on one GPU")
    graphs_gib: Annotated[float, Field(ge=0, le=1 << 20)] | Absent = Field(
        default=None, description="taken on one GPU between the pools and the ready server: CUDA graphs"
    )
    checkpoint: Text | Absent = Field(
        default=None, description="weight format to estimate from: fp8, bf16, nvfp4-mlp, ..."
    )
    host_gib: Gib | Absent = Field(default=None, description="memory available on each host when the engine starts")
    pod_gib: Gib | Absent = Field(default=None, description="memory limit of the container, where it has one")
    source: Text | Absent = Field(default=None, description="where these figures were read")

    @property
    def given(self) -> MemoryGiven:
        """What is known of a GPU's memory."""
        return MemoryGiven(
            self.pre_gib,
            self.available_gib,
            self.target_weights_gib,
            self.draft_weights_gib,
            self.checkpoint,
            graphs_gib=self.graphs_gib,
        )


class Tolerate(Part):
    """Known shortfalls and warnings, each with a note that says why it is accepted."""


class Expect(Part):
    """What must come out. Tokens and requests count over the whole deployment: all DP workers and replicas."""

    min_context: Count | Absent = Field(default=None, description=EXPECTATIONS["min_context"])
    min_concurrency: Requests | Absent = Field(default=None, description=EXPECTATIONS["min_concurrency"])
    min_total_tokens: Count | Absent = Field(default=None, description=EXPECTATIONS["min_total_tokens"])
    max_running_requests: Requests | Absent = Field(default=None, description=EXPECTATIONS["max_running_requests"])
    headroom: Annotated[float, Field(ge=0, le=1 << 20)] | Literal["fits"] | Absent = Field(
        default=None, description=EXPECTATIONS["headroom"]
    )
    host_memory: Literal["fits"] | Absent = Field(default=None, description=EXPECTATIONS["host_memory"])
    contexts: Lengths | Absent = Field(
        default=None, description="lengths of the requests of min_concurrency, each with its share: 80%:8k,20%:128k"
    )
    confidence: Annotated[float, Field(ge=LEAST_SHARE, le=LARGEST_SHARE)] | Literal["mean"] | Absent = Field(
        default=None,
        description="of contexts: share of the time that is promised, each request's length drawn by chance (0.99), "
        "or mean",
    )
    tolerate: Tolerate = Field(default_factory=Tolerate, description="known shortfalls and warnings, each with a note")

    @property
    def wanted(self) -> Expectations:
        """What an engine is asked to judge."""
        found = Expectations(**{name: getattr(self, name) for name in Expectations._fields})
        if found.contexts is None or self.confidence is None:
            return found
        share = 0.0 if isinstance(self.confidence, str) else self.confidence
        return found._replace(contexts=found.contexts._replace(confidence=share))


class Deployment(Part):
    """One deployment of GLM-5.3-Flash: what runs where, and what must come out (`kvplan check`)."""

    source: Text | Absent = Field(default=None, description="where this deployment is from")
    model: Text | Absent = Field(
        default=None,
        description="config.json, its directory (beside this file), or a Hub id; without it the bundled copy",
    )
    revision: Text | Absent = Field(default=None, description="revision on the Hub")
    engine: Annotated[Text, WithJsonSchema(_release_schema())] | Absent = Field(
        default=None,
        description="release (0.5.23, vllm-0.33.0), or a profile file (.toml) beside this file; without it the one "
        "that is assumed of the engine that the launch starts",
    )
    gpu: Annotated[Text, WithJsonSchema(_gpu_schema())] | Absent = Field(
        default=None, description="GPU name or NAME:MIB (see `kvplan info gpus`)"
    )
    nodes: Annotated[int, Field(ge=1, le=4096)] | Absent = Field(default=None, description="hosts (--nnodes)")
    flags: Flags = Field(
        default_factory=Flags, description="launch flags; they win over those of launch and launch_file"
    )
    environment: Environment = Field(default_factory=Environment, description="environment switches of the engine")
    launch: Script | Absent = Field(default=None, description="the launch command, as typed")
    launch_file: Text | Absent = Field(
        default=None, description="the file of a launch beside this file: a script, a manifest, a Compose file, ..."
    )
    container: Text | Absent = Field(
        default=None, description="which server of the launch file, where it holds several: a container's name"
    )
    set: dict[VariableName, Annotated[str, Field(max_length=4096)] | int | float] = Field(
        default_factory=dict, description="values of variables that the launch leaves open"
    )
    memory: Memory = Field(default_factory=lambda: Memory(), description="what is known of the memory")
    expect: Expect = Field(default_factory=lambda: Expect(), description="what must come out")


# What follows is made of tables that stand elsewhere, once: the kinds of a finding, an engine's flags and switches.


def _listed(base: type[Part], name: str, doc: str, entries: Mapping[str, tuple[Any, str]]) -> Any:
    """`base` with keys that may all be left out: a type and a text each."""
    fields: dict[str, Any] = {
        key: (kind | Absent, Field(default=None, description=text)) for key, (kind, text) in entries.items()
    }
    return create_model(name, __base__=base, __doc__=doc, **fields)


def deployment_of(engine: Engine) -> type[Deployment]:
    """The model of a file whose deployment runs on `engine`."""
    return _deployment_of(engine.name)


@cache
def _deployment_of(name: str) -> type[Deployment]:
    engine = engine_named(name)
    switches = {name: (Text | int, variable.help) for name, variable in engine.switches.items()}
    environment = _listed(
        Environment, f"{engine.title}Environment", f"{engine.title}'s environment switches that touch memory.", switches
    )
    tolerate = _listed(
        Tolerate,
        "Tolerate",
        str(Tolerate.__doc__),
        {name: (Text, f"why this is accepted: {text}") for name, text in KINDS.items()},
    )
    expect = _with(Expect, "Expect", tolerate=tolerate)
    parts = {"flags": flags_of(engine), "environment": environment, "expect": expect}
    made: type[Deployment] = _with(Deployment, "Deployment", **parts)
    return made


def flags_of(engine: Engine) -> type[Flags]:
    """The flags of one engine's table, each held to its record."""
    doc = f"{engine.title}'s launch flags that touch memory, by their argument names ({_example(engine)})."
    made: type[Flags] = _listed(
        Flags, f"{engine.title}Flags", doc, {flag.name: (_kind(engine, flag), flag.help) for flag in engine.flags}
    )
    return made


def _example(engine: Engine) -> str:
    first = engine.flags[0]
    return f"{first.name} for {first.option}"


def _with(base: Any, name: str, **parts: Any) -> Any:
    """`base` with another type for some of its sections."""
    fields: dict[str, Any] = {
        key: (part, Field(default_factory=part, description=base.model_fields[key].description))
        for key, part in parts.items()
    }
    return create_model(name, __base__=base, __doc__=base.__doc__, **fields)


def _kind(engine: Engine, flag: Flag) -> Any:
    """The type of a flag's value in a file: what `check_value` takes, as a schema can say it."""
    if flag.kind in ("flag", "switch", "present"):
        return bool
    if flag.kind == "str":
        return Literal[flag.choices] if flag.choices else Text
    if flag.kind == "int":
        return Annotated[int, Field(ge=int(flag.least), le=int(flag.most))]
    if flag.kind == "float":
        return Annotated[float, Field(gt=flag.least, le=flag.most)]
    if flag.kind == "count":
        return _engine_count(engine, flag)
    return {"json": dict[str, Any], "data": Any, "ints": list[int], "words": list[str]}[flag.kind]


def _engine_count(engine: Engine, flag: Flag) -> Any:
    """A number, or text with a unit as the engine reads it (1k is 1000; 1K or 1Ki is 1024)."""
    schema = {
        "anyOf": [
            {"type": "integer", "minimum": -LARGEST_COUNT, "maximum": LARGEST_COUNT},
            {"type": "string", "pattern": _ENGINE_COUNT, "description": "as the engine reads it: 1k is 1000"},
        ]
    }
    number = Field(ge=-LARGEST_COUNT, le=LARGEST_COUNT)
    return Annotated[int, number, BeforeValidator(partial(_read_count, engine, flag)), WithJsonSchema(schema)]


def _read_count(engine: Engine, flag: Flag, value: object) -> object:
    if isinstance(value, str):
        try:
            return engine.read_flag(flag, value)
        except InputError:
            value = None
    if not isinstance(value, int) or isinstance(value, bool):
        raise PydanticCustomError("count", "a whole number or text such as 128Ki")
    return value
