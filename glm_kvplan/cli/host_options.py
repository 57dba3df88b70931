"""The options that say what is known of a host's memory."""

import sys
from typing import Annotated

import typer

from glm_kvplan.engines.protocol import Plan
from glm_kvplan.errors import one_line
from glm_kvplan.units import GIB, parse_count
from glm_kvplan.workload import HostGiven

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


def read_host(plan: Plan, host_gib: float | None, pod_gib: float | None, prefix: str | None = None) -> HostGiven:
    """What the options say, the memory limit of the launch's own container where they do not say one.

    Raises InputError for values that cannot be, or that nothing would use.
    """
    container = plan.given.container
    if pod_gib is None and container is not None and container.memory_bytes is not None and plan.has_host_pools:
        pod_gib = container.memory_bytes / GIB
        text = f"host pools are held against the memory limit of container {container.label}: --pod-gib {pod_gib:.10g}"
        print(f"kvplan: note: {one_line(text)}", file=sys.stderr)
    return plan.host(host_gib, pod_gib, None if prefix is None else parse_count(prefix, "--context"))
