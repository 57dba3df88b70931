"""Prefill and decode servers in one launch file: a command answers for each, one after the other."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import typer

from glm_kvplan.cli.answering import print_notes
from glm_kvplan.cli.language import spoken
from glm_kvplan.cli.memory_options import MEMORY
from glm_kvplan.cli.options import container_taken, sources_of
from glm_kvplan.engines.planner import read_launch
from glm_kvplan.errors import one_line


def each_role(command: Callable[..., int]) -> Callable[..., int]:
    """The command, run for the prefill and for the decode server where the launch file starts both.

    Not where one is named, nor for JSON, which is one answer: there the several are refused as elsewhere. Readings of
    memory are those of one server.
    """

    @wraps(command)
    def answer(ctx: typer.Context, **values: Any) -> int:
        asked, launch = sources_of(ctx)
        measured = MEMORY.name in ctx.meta and MEMORY.of(ctx) != type(MEMORY.of(ctx))()
        if launch is None or asked.container is not None or values.get("json") or measured:
            return command(ctx, **values)
        from glm_kvplan.engines.launches import roles_of

        roles = roles_of(launch, lambda label: read_launch(launch, asked.engine, label).command.role)
        if not roles:
            return command(ctx, **values)
        codes = []
        for role, label in roles.items():
            print(one_line(spoken()(f"{label}: the {role} server")) + "\n", flush=True)
            container_taken(ctx, label)
            codes.append(command(ctx, **values))
            print(end="", flush=True)
            print_notes(ctx.obj["notes"])
            print()
        first, last = roles.values()
        print(one_line(f"Between them: each request's cache rows and its state pass from {first} to {last}."))
        return max(codes)

    return answer
