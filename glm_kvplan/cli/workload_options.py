"""The options that describe a workload, and what they say."""

from typing import TYPE_CHECKING, Annotated

import typer

from glm_kvplan.engines.protocol import Plan
from glm_kvplan.errors import InputError
from glm_kvplan.units import is_count, parse_count
from glm_kvplan.workload import DEFAULT_CONTEXT, Demand, Workload

if TYPE_CHECKING:
    from glm_kvplan.contexts import Contexts

WORKLOAD = "Workload"  # the panel

Context = Annotated[
    str | None,
    typer.Option(
        "--context", help="Tokens of one request: 131072, 128k, 1m. [128k]", rich_help_panel=WORKLOAD, metavar="TOKENS"
    ),
]
Concurrency = Annotated[
    str | None,
    typer.Option(
        "--concurrency",
        help="Requests at once, over the whole deployment. [as many as the flags ask for, or 1]",
        rich_help_panel=WORKLOAD,
        metavar="N",
    ),
]
Lengths = Annotated[
    str | None,
    typer.Option(
        "--context",
        help="Context lengths: 128k, a mix 0.8:8k,0.2:128k, or a histogram file (length,count a line). [128k]",
        rich_help_panel=WORKLOAD,
        metavar="LENGTHS",
    ),
]
Confidence = Annotated[
    str,
    typer.Option(
        "--confidence",
        help="Of a mix: share of the time that is promised, each request's length drawn by chance; or `mean`.",
        rich_help_panel=WORKLOAD,
        metavar="SHARE",
        autocompletion=lambda: ["0.9", "0.95", "0.99", "mean"],
    ),
]
PrefixStates = Annotated[
    int,
    typer.Option(
        "--prefix-states",
        min=0,
        help="States to keep for each conversation's shared prefix, beside a running request's own slots.",
        rich_help_panel=WORKLOAD,
        metavar="N",
    ),
]


def read_workload(plan: Plan, context: str | None, concurrency: str | None) -> Workload:
    """The workload of equal requests that Context and Concurrency describe.

    Without a context 128K, or the server's longest if that is shorter; without a concurrency as many requests as the
    flags ask for, or one.
    """
    tokens = min(DEFAULT_CONTEXT, plan.context_length) if context is None else read_tokens(plan, context, "--context")
    if concurrency is None:
        return Workload(tokens, plan.asked_requests or 1)
    return Workload(tokens, read_concurrency(concurrency))


def read_concurrency(text: str, command: str = "") -> int:
    """Requests at once. Raises InputError; for several of them the axis of a sweep is named."""
    if "," in text:
        from glm_kvplan.cli.guesses import refuse_axis

        refuse_axis(command, "concurrency", "--concurrency", text, lambda part: parse_count(part, "--concurrency"))
    return parse_count(text, "--concurrency")


def read_load(plan: Plan, text: str, name: str) -> Workload:
    """The workload that `8x128k` describes. Raises InputError."""
    requests, _, tokens = text.lower().partition("x")
    if not tokens:
        raise InputError(f"{name} {text[:60]!r}: write requests x tokens, such as 8x128k")
    return Workload(read_tokens(plan, tokens, name), parse_count(requests, name))


def read_demand(
    plan: Plan, lengths: str | None, concurrency: str | None, prefix_states: int, confidence: str = "0.99"
) -> Demand:
    """The demand that Lengths, Concurrency, PrefixStates and Confidence describe; the rest as in `read_workload`."""
    from glm_kvplan.contexts import one_length, parse_contexts

    usual = read_workload(plan, None, concurrency)
    mix = one_length(usual.context) if lengths is None else parse_contexts(lengths)
    return Demand(mix._replace(confidence=read_confidence(confidence)), usual.concurrency, prefix_states)


def read_held(plan: Plan, lengths: str | None, concurrency: str | None, confidence: str) -> Workload | Demand:
    """What bytes are asked for: as `read_demand`, and no length more than the server takes."""
    read_confidence(confidence)
    if lengths is None or is_count(lengths.strip()):
        return read_workload(plan, lengths, concurrency)
    demand = read_demand(plan, lengths, concurrency, 0, confidence)
    _refuse_longer(plan, demand.context, "--context", lengths)
    return demand


def read_confidence(text: str) -> float:
    """A share of the time, as 0.99 or 99%; 0 for the mean. Raises InputError for anything else."""
    if text == "mean":
        return 0.0
    number = text.strip().removesuffix("%")
    try:
        share = float(number) if number == text.strip() else round(float(number) / 100, 9)
    except ValueError:
        share = 0.0
    if not 0.5 <= share <= 0.9999:  # of contexts.py, which one length does without
        raise InputError(
            f"--confidence {text[:60]}: give a share of the time between 0.5 and 0.9999 (or 50% and 99.99%), or mean"
        )
    return share


def read_mix(lengths: str | None, confidence: str = "0.99") -> "Contexts | None":
    """The contexts of --context."""
    share = read_confidence(confidence)
    if lengths is None:
        return None
    from glm_kvplan.contexts import parse_contexts

    return parse_contexts(lengths)._replace(confidence=share)


def read_tokens(plan: Plan, text: str, name: str) -> int:
    """Tokens of one request, no more than the server takes."""
    tokens = parse_count(text, name)
    _refuse_longer(plan, tokens, name, text)
    return tokens


def _refuse_longer(plan: Plan, tokens: int, name: str, text: str | None) -> None:
    """What is to be laid out must be what the server takes; what is only counted (solve, sweep, advise, check) need
    not be: of requests that it refuses the count is 0.
    """
    if tokens > (most := plan.context_length):
        option = plan.given.profile.engine.context_option
        raise InputError(f"{name} {text}: {tokens} tokens are more than the server accepts ({most}, {option})")
