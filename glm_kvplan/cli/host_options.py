"""The options that say what is known of a host's memory."""

from typing import TYPE_CHECKING, Annotated

import typer

from glm_kvplan.cli.answering import note
from glm_kvplan.engines.protocol import Plan
from glm_kvplan.units import GIB
from glm_kvplan.workload import HostGiven

if TYPE_CHECKING:
    from glm_kvplan.contexts import Contexts

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


def read_host(
    ctx: typer.Context, plan: Plan, host_gib: float | None, pod_gib: float | None, mix: "Contexts | None" = None
) -> HostGiven:
    """What the options say, the memory limit of the launch's own container where they do not say one.

    The mean of `mix` is the cached prefix whose coverage is told.

    Raises InputError for values that cannot be, or that nothing would use.
    """
    container = plan.given.container
    if pod_gib is None and container is not None and container.memory_bytes is not None and plan.has_host_pools:
        pod_gib = container.memory_bytes / GIB
        limit = f"the memory limit of container {container.label}: --pod-gib {pod_gib:.10g}"
        note(ctx, f"host pools are held against {limit}")
    given = plan.host(host_gib, pod_gib)
    return given if mix is None else given._replace(prefix_tokens=max(1, round(mix.mean)))
