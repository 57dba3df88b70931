"""The options that say what is known of a host's memory."""

from typing import TYPE_CHECKING, Annotated

import typer

from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.errors import InputError
from glm_kvplan.units import parse_count

if TYPE_CHECKING:
    from glm_kvplan.engines.sglang.sizing.host_answer import HostGiven

_PANEL = "Host memory (HiCache)"

HostGib = Annotated[
    float | None,
    typer.Option(
        "--host-gib",
        help="Available on one host before the server starts: are the pools within it?",
        rich_help_panel=_PANEL,
        metavar="GIB",
    ),
]
PodGib = Annotated[
    float | None,
    typer.Option("--pod-gib", help="A container's memory limit on one host.", rich_help_panel=_PANEL, metavar="GIB"),
]
Prefix = Annotated[
    str | None,
    typer.Option(
        "--context", help="Tokens of a cached prefix, for coverage. [128k]", rich_help_panel=_PANEL, metavar="TOKENS"
    ),
]


def read_host(
    deployment: Deployment, host_gib: float | None, pod_gib: float | None, prefix: str | None = None
) -> "HostGiven":
    """What the options say. Raises InputError for values that cannot be, or that nothing would use."""
    from glm_kvplan.engines.sglang.sizing.host_answer import host_given

    tokens = None if prefix is None else parse_count(prefix, "--context")
    if tokens is not None and not deployment.enable_hierarchical_cache:
        raise InputError("--context is the cached prefix of HiCache's coverage; add --enable-hierarchical-cache")
    return host_given(deployment, host_gib=host_gib, pod_gib=pod_gib, prefix_tokens=tokens)
