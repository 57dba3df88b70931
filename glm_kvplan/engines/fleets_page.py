"""The page of `kvplan advise --gpus`: how many GPUs, in which layout, and the command to paste."""

from collections.abc import Callable, Iterable, Iterator

from glm_kvplan.engines.fleet_values import FleetAnswer, FleetShown, Unserved
from glm_kvplan.engines.fleets import MOST_GPUS
from glm_kvplan.engines.mix_words import wanted_line
from glm_kvplan.show.format import count, whole
from glm_kvplan.show.page import Cell, Code, Column, Line, Page, Row, Section, Table, Verdict
from glm_kvplan.show.said import Said, Text, say


def fleets_page(answer: FleetAnswer, beside: Callable[[FleetShown], Iterable[Line]]) -> Page:
    """`beside` says what the engine knows of a server's memory, and of what the load needs of it."""
    head = answer.head
    wanted = (
        wanted_line(answer.demand),
        *_promised(answer),
        *_low(answer),
        *(_reason(one, answer.kept) for one in answer.unserved),
    )
    sections = []
    if answer.best is not None:
        best = answer.best
        verdict = Verdict(_verdict(best), "good", wanted)
        command: tuple[Line | Code, ...] = (_command(best), *_left_out(best), *beside(best), *_requests(answer))
        sections.append(Section(command, say("The command to paste"), quiet=True))
    else:
        verdict = Verdict(_none(answer), "bad", (*wanted, _enough(answer)))
    if answer.layouts:
        sections.append(Section((_layouts(answer),), say("What was tried"), quiet=True, spare=1))
    return Page(head.title, (), tuple(sections), answer.warnings, head.notes, verdict=verdict)


def _verdict(best: FleetShown) -> Said:
    return say(
        "Yes: {gpus} serve it: {servers} of {layout}",
        gpus=count(best.gpus, "GPU"),
        servers=count(best.servers, "server"),
        layout=best.layout,
    )


def _none(answer: FleetAnswer) -> Said:
    numbers = {*(one.gpus for one in answer.layouts), *(one.gpus for one in answer.unserved)}
    tried = tuple(map(whole, sorted(numbers)))
    return say("No: none of these numbers of GPUs serves it: {tried}", tried=tried)


def _command(best: FleetShown) -> Code:
    template = "the command:" if best.servers == 1 else "the command, once for each of {servers} servers:"
    if best.hosts_of_a_server > 1:
        template = "on each of {hosts} hosts:"
        if best.servers > 1:
            template = "for each of {servers} servers, on each of its {hosts} hosts:"
    return Code(best.command, say(template, servers=best.servers, hosts=best.hosts_of_a_server))


def _promised(answer: FleetAnswer) -> Iterator[Said]:
    """Of a mix: for how much of the time."""
    if answer.demand.lengths > 1 and answer.demand.confidence:
        share = f"{100 * answer.demand.confidence:g}%"
        yield say("{share} of the time, each request's length drawn by chance", share=share)


def _low(answer: FleetAnswer) -> Iterator[Said]:
    """How much of the load is sure, where memory is estimated."""
    best = answer.best
    if best is not None and best.served_at_least < best.served:
        least, served = whole(best.served_at_least), whole(best.served)
        yield say("{least} of {served} at the low end of the memory's estimate", least=least, served=served)


def _enough(answer: FleetAnswer) -> Said:
    """Where none serves: the next step."""
    if answer.serving_gpus is None:
        return say("nor was a number found that does, up to {most} GPUs", most=whole(MOST_GPUS))
    return say("{option} serves it", option=f"--gpus {answer.serving_gpus}")


def _reason(one: Unserved, kept: tuple[str, ...]) -> Said:
    """Why so many GPUs hold no request; `kept` are flags of the layout that are the launch's own."""
    gpus, lead = count(one.gpus, "GPU"), "{gpus}: with {flags} " if kept else "{gpus}: "
    if one.server_gpus is None and one.reason is None:
        template = lead + "no layout of a server that divides them is known"
        return say(template, gpus=gpus, flags=" ".join(kept))
    server = count(one.server_gpus or one.gpus, "GPU")
    if one.reason is None:
        template = lead + "a server takes {server}, which do not divide them"
        return say(template, gpus=gpus, flags=" ".join(kept), server=server)
    return say("{gpus}, a server of {server}: {reason}", gpus=gpus, server=server, reason=one.reason)


def _left_out(best: FleetShown) -> Iterator[Line]:
    if best.left_out:
        template = "your own flags that are not in it, their values not kept or of another layout: {flags}"
        yield Line(say(template, flags=best.left_out))


def _requests(answer: FleetAnswer) -> Iterator[Line]:
    """The most that the best can have at once, and the runner-up, by what is other about it."""
    best, second = answer.best, answer.runner_up
    assert best is not None
    template = "with this layout and share of the memory at most {most} of these requests at once, all servers together"
    if best.admitted < best.most:
        template += "; the command's own limit is {admitted}"
    yield Line(say(template, most=_most(best), admitted=whole(best.admitted)))
    alone = not answer.unserved and all(layout.gpus == best.gpus for layout in answer.layouts)
    if alone and best.gpus % 2 == 0 and best.most >= 2 * answer.demand.concurrency:
        fewer = f"--gpus {best.gpus // 2},{best.gpus}"
        yield Line(say("half as many GPUs may do: {option} tries them", option=fewer))
    if second is not None:
        template = "runner-up: {gpus}, {servers} of {parts}; at most {most}"
        parts = tuple(part for part in _parts(second) if part not in _parts(best)) or _parts(second)
        gpus, servers = count(second.gpus, "GPU"), count(second.servers, "server")
        yield Line(say(template, gpus=gpus, servers=servers, parts=parts, most=_most(second)))


def _most(one: FleetShown) -> str:
    return f"~{whole(one.most)}" if one.memory.certainty == "estimated" else whole(one.most)


def _layouts(answer: FleetAnswer) -> Table:
    columns = (
        Column(say("GPUs"), "count"),
        Column(say("servers"), "count"),
        Column(say("serves"), "count"),
        Column(say("at most"), "count"),
        Column(say("ended by")),
        Column(say("layout of a server")),
    )
    shown = list(answer.layouts)
    if answer.runner_up is not None and answer.runner_up not in shown:
        shown.append(answer.runner_up)
    return Table(
        columns,
        tuple(_rows(sorted(shown, key=lambda one: one.gpus), answer.best, _parts_of_all(answer, shown))),
        say("what was tried: the best of each number of GPUs, and the runner-up"),
    )


def _parts_of_all(answer: FleetAnswer, shown: list[FleetShown]) -> tuple[Text, ...]:
    """What all layouts have, and the verdict says of the best."""
    if answer.best is None or len(shown) == 1:
        return ()
    return tuple(part for part in _parts(answer.best) if all(part in _parts(one) for one in shown))


def _parts(one: FleetShown) -> tuple[Text, ...]:
    parts = dict(one.layout.values).get("parts") if isinstance(one.layout, Said) else None
    return parts if isinstance(parts, tuple) else (one.layout,)


def _rows(shown: Iterable[FleetShown], best: FleetShown | None, common: tuple[Text, ...]) -> Iterator[Row]:
    for one in shown:
        layout = say("{parts}", parts=tuple(part for part in _parts(one) if part not in common))
        ends: Said | str = "" if one.holds else say(one.limit)
        most = Cell(one.most, estimated=one.memory.certainty == "estimated")
        yield Row((one.gpus, one.servers, one.served, most, ends, layout), "good" if one == best else "")
