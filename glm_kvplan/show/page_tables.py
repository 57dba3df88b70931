"""The sections without a chart: sizes, flags with their reasons, formulas, flags to paste, notes."""

from glm_kvplan.answers.pictures.picture import Picture
from glm_kvplan.engines.flag_words import flag_lines
from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.engines.sglang.sizing.binding_limits import Limit
from glm_kvplan.memory.budget import show_gib
from glm_kvplan.show.format import about, binary, gib, shown, three_digits, whole
from glm_kvplan.show.report_page import Cell, Section, Table
from glm_kvplan.show.words import Words

_SIZES = ("max_total_num_tokens", "max_mamba_cache_size", "max_running_requests")


def sizes(seen: Picture, words: Words) -> Section:
    """The engine's three integers with their limits, and the readings of memory they follow from."""
    answer, budget = seen.boot, seen.boot.budget
    rows = [
        (Cell(words(f"memory_{name}")), Cell(f"{show_gib(value, budget.how)} GiB", value), Cell(""), Cell(""))
        for name, value in (("before", budget.pre_gib), ("after", budget.available_gib))
    ]
    if answer.failure is None and answer.limits is not None:
        estimated = budget.estimated
        bounds = (
            _bound(answer.limits.tokens, estimated, words),
            words.term(answer.limits.slots.name),
            _bound(answer.limits.requests, estimated, words),
        )
        rows += [
            (Cell(name), _about(seen, place, words), Cell(_span(seen, place, words)), Cell(bounds[place]))
            for place, name in enumerate(_SIZES)
        ]
    workers = seen.plan.deployment.attn_dp_size
    sentences = (words("per_worker", count=whole(workers)),) if workers > 1 else ()
    header = tuple(words(f"head_{name}") for name in ("what", "value", "span", "bound"))
    return Section("sizes", words("section_sizes"), sentences, tables=(Table(header, tuple(rows), frozenset((1,))),))


def _about(seen: Picture, place: int, words: Words) -> Cell:
    """A size; to three digits where the estimate's error moves it."""
    value = seen.boot.solution.sizes[place]
    text = about(value, (None if end is None else end[place] for end in seen.boot.span))
    return Cell(words("at_most", value=text) if seen.boot.budget.upper_bound else text, value)


def _span(seen: Picture, place: int, words: Words) -> str:
    low, high = (words("refused_end") if end is None else three_digits(end[place]) for end in seen.boot.span)
    return "" if low == high else f"{low} … {high}"


def _bound(limits: tuple[Limit, ...], estimated: bool, words: Words) -> str:
    first = words.term(limits[0].name)
    if len(limits) == 1:
        return first
    value = f"~{three_digits(limits[1].value)}" if estimated else whole(limits[1].value)
    return words("next_limit", name=first, next=words.term(limits[1].name), value=value)


def flags(seen: Picture, words: Words) -> Section:
    """Every resolved flag with its reason and source."""
    rows = tuple(
        (
            Cell(choice.flag),
            Cell(shown(choice.value)),
            Cell(words("given" if choice.given else "engine")),
            Cell(choice.reason),
            Cell(choice.source),
        )
        for choice in seen.plan.choices
    )
    header = tuple(words(f"head_{name}") for name in ("flag", "value", "from", "reason", "source"))
    sentences = () if words.language == "en" else (words("flags_text"),)
    title = words("section_flags")
    summary = words("show_flags", count=len(rows))
    return Section("flags", title, sentences, tables=(Table(header, rows),), folded=True, summary=summary)


def formulas(seen: Picture, words: Words) -> Section:
    """Memory, the sizing step by step, the ledgers, and what serving needs: values and sources."""
    tables = [_memory_table(seen, words), _steps_table(seen, words)]
    if seen.ledgers:
        tables.append(_ledger_table(seen, words))
    if seen.boot.needs is not None:
        tables.append(_needs_table(seen, words))
    title = words("section_formulas")
    return Section("formulas", title, tables=tuple(tables), folded=True, summary=words("show_formulas"))


def _memory_table(seen: Picture, words: Words) -> Table:
    rows = tuple(
        (Cell(part.name), Cell(f"{part.gib:+.2f} GiB", part.gib), Cell(words.term(part.how)), Cell(part.source))
        for part in seen.boot.budget.parts
    )
    header = tuple(words(f"head_{name}") for name in ("what", "value", "certainty", "source"))
    return Table(header, rows, frozenset((1,)), words("formulas_memory"))


def _steps_table(seen: Picture, words: Words) -> Table:
    rows = tuple(
        (
            Cell(step.name),
            Cell(step.formula),
            Cell(step.formula_in_numbers),
            Cell(f"{_exact(step.value)} {step.unit}", step.value),
            Cell(step.source),
        )
        for step in seen.steps
    )
    header = tuple(words(f"head_{name}") for name in ("what", "formula", "numbers", "value", "source"))
    return Table(header, rows, frozenset((3,)), words("formulas_steps"))


def _exact(value: int | float) -> str:
    return whole(value) if isinstance(value, int) else repr(value)


def _ledger_table(seen: Picture, words: Words) -> Table:
    rows = tuple(
        (
            Cell(ledger.account.title),
            Cell(ledger.account.formula),
            Cell(ledger.formula_in_numbers),
            Cell(
                words(
                    "ledger_total",
                    bytes=whole(ledger.bytes_per_unit),
                    unit=words.term(ledger.account.unit),
                    units=whole(ledger.units),
                    total=whole(ledger.total),
                ),
                ledger.total,
            ),
            Cell(ledger.account.source),
        )
        for ledger in seen.ledgers
    )
    header = tuple(words(f"head_{name}") for name in ("what", "formula", "numbers", "value", "source"))
    return Table(header, rows, frozenset((3,)), words("formulas_ledgers"))


def _needs_table(seen: Picture, words: Words) -> Table:
    assert seen.boot.needs is not None
    rows = tuple(
        (
            Cell(words.term(item.name)),
            Cell(binary(item.nbytes) if item.certainty == "exact" else f"~{gib(item.nbytes)}", item.nbytes),
            Cell(words.term(item.certainty)),
            Cell(item.bound),
            Cell(item.source),
        )
        for item in seen.boot.needs.items
    )
    header = tuple(words(f"head_{name}") for name in ("what", "value", "certainty", "bound_note", "source"))
    return Table(header, rows, frozenset((1,)), words("formulas_needs"))


def _at_most(value: int, seen: Picture, words: Words) -> str:
    """A number that follows from the memory, with `at most` before it where that is an upper bound."""
    return words("at_most", value=whole(value)) if seen.boot.budget.upper_bound else whole(value)


def paste(seen: Picture, words: Words) -> Section:
    """The plan's flags, and the plan's flags under the advised split."""
    plan, advice = seen.plan, seen.advice
    code = []
    if plan.flags:
        code.append((words("paste_now"), flag_lines(FLAG, plan.flags, plan.environment)))
    if advice.solution is not None:
        intro = words(
            "paste_advised",
            tokens=_at_most(advice.solution.tokens, seen, words),
            slots=_at_most(advice.solution.state_slots, seen, words),
            requests=_at_most(advice.solution.running_requests, seen, words),
            served=_at_most(advice.served.requests, seen, words),
            wanted=whole(seen.demand.concurrency),
        )
        code.append((intro, flag_lines(FLAG, {**plan.flags, **advice.flags}, plan.environment)))
    sentences = () if plan.flags else (words("paste_none"),)
    return Section("paste", words("section_paste"), sentences, code=tuple(code))


def notes(seen: Picture, words: Words) -> Section | None:
    """What was said on the way: of the model, the launch command and the resolved flags."""
    found = (*seen.plan.notes, *seen.plan.deployment.warnings, *seen.boot.weight_notes)
    return Section("notes", words("section_notes"), found) if found else None
