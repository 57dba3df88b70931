"""The shape of a deployment file, as pydantic models. Imported only by the reader and by `kvplan schema`.

What is written here is what editors show: the texts end up in the JSON Schema.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from glm_kvplan.engines.expectations import EXPECTATIONS, KINDS
from glm_kvplan.engines.flag import Flag
from glm_kvplan.engines.sglang.environment import ENVIRONMENT
from glm_kvplan.engines.sglang.flags import FLAGS
from glm_kvplan.engines.sglang.profile import BASELINE
from glm_kvplan.units import LARGEST_COUNT

Gib = Annotated[float, Field(gt=0, le=1 << 20)]
Requests = Annotated[int, Field(ge=1, le=LARGEST_COUNT)]
Text = Annotated[str, Field(min_length=1, max_length=4096)]
Script = Annotated[str, Field(min_length=1, max_length=1 << 20)]
Count = (
    Annotated[int, Field(ge=1, le=LARGEST_COUNT)]
    | Annotated[str, Field(pattern=r"^\d{1,15}(\.\d{1,6})?[kKmM]?$", description="128k is 131072, 1m is 1048576")]
)
EngineCount = (
    Annotated[int, Field(ge=-LARGEST_COUNT, le=LARGEST_COUNT)]
    | Annotated[
        str,
        Field(pattern=r"^\d{1,15}(\.\d{1,6})?(k|M|G|T|Ki|Mi|Gi|Ti)$", description="as the engine: 1k 1000, 1Ki 1024"),
    ]
)


class Part(BaseModel):
    """A mapping without unknown keys; a number is a number and text is text."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


def _part(name: str, doc: str, fields: dict[str, tuple[Any, str]]) -> Any:
    """A model whose fields may all be left out."""
    definitions: dict[str, Any] = {
        key: (kind, Field(default=None, description=text)) for key, (kind, text) in fields.items()
    }
    return create_model(name, __base__=Part, __doc__=doc, **definitions)


def _kind(flag: Flag) -> Any:
    if flag.kind in ("flag", "switch"):
        return bool
    if flag.kind == "str":
        return Literal[flag.choices] if flag.choices else Text
    if flag.kind == "int":
        return Annotated[int, Field(ge=int(flag.least), le=int(flag.most))]
    if flag.kind == "float":
        return Annotated[float, Field(gt=flag.least, le=flag.most)]
    return {"count": EngineCount, "json": dict[str, Any], "ints": list[int]}[flag.kind]


Flags = _part(
    "Flags",
    "The engine's launch flags that touch memory, by their argument names (tp_size for --tp-size).",
    {flag.name: (_kind(flag), flag.help) for flag in FLAGS},
)
Environment = _part(
    "Environment",
    "The engine's environment switches that touch memory.",
    {name: (Text | int, variable.help) for name, variable in ENVIRONMENT.items()},
)
Memory = _part(
    "Memory",
    "The memory of one GPU and of one host in GiB, which the engine's log prints as GB. What is left out is estimated.",
    {
        "pre_gib": (Gib, "free on one GPU before the weights load"),
        "available_gib": (Gib, "free on one GPU after target and draft weights have loaded"),
        "target_weights_gib": (Gib, "target weights on one GPU"),
        "draft_weights_gib": (Gib, "draft (MTP) weights on one GPU"),
        "checkpoint": (Text, "weight format to estimate from: fp8, bf16, nvfp4-mlp, ..."),
        "host_gib": (Gib, "memory available on each host when the engine starts"),
        "pod_gib": (Gib, "memory limit of the container, where it has one"),
        "source": (Text, "where these figures were read"),
    },
)
Tolerate = _part(
    "Tolerate",
    "Known shortfalls and warnings, each with a note that says why it is accepted.",
    {name: (Text, f"why this is accepted: {text}") for name, text in KINDS.items()},
)
_EXPECTED: dict[str, Any] = {
    "min_context": Count,
    "min_concurrency": Requests,
    "min_total_tokens": Count,
    "max_running_requests": Requests,
    "headroom": Annotated[float, Field(ge=0, le=1 << 20)] | Literal["fits"],
    "host_memory": Literal["fits"],
}
Expect = _part(
    "Expect",
    "What must come out. Tokens and requests count over the whole deployment: all DP workers and replicas.",
    {
        **{name: (kind, EXPECTATIONS[name]) for name, kind in _EXPECTED.items()},
        "tolerate": (Tolerate, "known shortfalls and warnings, each with a note"),
    },
)
DeploymentModel = _part(
    "Deployment",
    "One deployment of GLM-5.3-Flash on SGLang: what runs where, and what must come out (`kvplan check`).",
    {
        "source": (Text, "where this deployment is from"),
        "model": (Text, "config.json, its directory (beside this file), or a Hub id; without it the bundled copy"),
        "revision": (Text, "revision on the Hub"),
        "engine": (Text, f"SGLang release, or a profile file (.toml) beside this file; without it {BASELINE}"),
        "gpu": (Text, "GPU name or NAME:MIB (see `kvplan gpus`)"),
        "nodes": (Annotated[int, Field(ge=1, le=4096)], "hosts (--nnodes)"),
        "flags": (Flags, "launch flags; they win over those of launch and launch_file"),
        "environment": (Environment, "environment switches of the engine"),
        "launch": (Script, "the launch command, as typed"),
        "launch_file": (Text, "a launch script or a Kubernetes manifest beside this file"),
        "container": (Text, "which container of the manifest, where several launch the engine"),
        "memory": (Memory, "what is known of the memory"),
        "expect": (Expect, "what must come out"),
    },
)
