"""The page of `kvplan advise --gpus`: how many GPUs, in which layout, and the command to paste."""

from collections.abc import Callable, Iterable, Iterator

from glm_kvplan.engines.fleets import FleetAnswer, FleetShown
from glm_kvplan.engines.mix_words import wanted_line
from glm_kvplan.show.format import count, whole
from glm_kvplan.show.page import Cell, Code, Column, Line, Page, Row, Section, Table
from glm_kvplan.show.said import Said, say


def fleets_page(answer: FleetAnswer, beside: Callable[[FleetShown], Iterable[Line]]) -> Page:
    """`beside` says what the engine knows of a server's memory, and of what the load needs of it."""
    head = answer.head
    lead = [Line(wanted_line(answer.demand))]
    sections = []
    if answer.best is not None:
        lead.append(Line(_verdict(answer.best), "good"))
        best = answer.best
        command: tuple[Line | Code, ...] = (_command(best), *_left_out(best), *beside(best), *_requests(best))
        sections.append(Section("command", command, say("The command to paste"), quiet=True))
    else:
        tried = tuple(whole(layout.gpus) for layout in answer.layouts)
        lead.append(Line(say("none of these numbers of GPUs serves it: {tried}", tried=tried or ("-",)), "bad"))
    sections.append(Section("layouts", (_layouts(answer),), say("What was tried"), quiet=True))
    return Page(head.title, tuple(lead), tuple(sections), answer.warnings, head.notes)


def _verdict(best: FleetShown) -> Said:
    return say(
        "{gpus} serve it: {servers} of {layout}",
        gpus=count(best.gpus, "GPU"),
        servers=count(best.servers, "server"),
        layout=best.layout,
    )


def _command(best: FleetShown) -> Code:
    several = say("on each of {hosts} hosts:", hosts=best.hosts_of_a_server)
    once = say("the command:") if best.servers == 1 else say("the command, once for each server:")
    return Code(best.command, several if best.hosts_of_a_server > 1 else once)


def _left_out(best: FleetShown) -> Iterator[Line]:
    if best.left_out:
        yield Line(
            say("your own flags that are not in it, as no memory follows from them: {flags}", flags=best.left_out)
        )


def _requests(best: FleetShown) -> Iterator[Line]:
    most = f"~{whole(best.most)}" if best.memory.certainty == "estimated" else whole(best.most)
    yield Line(say("at most {most} of these requests at once, all servers together", most=most))
    if best.served_at_least < best.served:
        least, served = whole(best.served_at_least), whole(best.served)
        yield Line(
            say("{least} of {served} at the low end of the memory's estimate", least=least, served=served), "careful"
        )


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
        tuple(_rows(sorted(shown, key=lambda one: one.gpus), answer.best)),
        say("what was tried: the best of each number of GPUs, and the runner-up"),
    )


def _rows(shown: Iterable[FleetShown], best: FleetShown | None) -> Iterator[Row]:
    for one in shown:
        ends: Said | str = "" if one.holds else say(one.limit)
        most = Cell(one.most, estimated=one.memory.certainty == "estimated")
        yield Row((one.gpus, one.servers, one.served, most, ends, one.layout), "good" if one == best else "")
