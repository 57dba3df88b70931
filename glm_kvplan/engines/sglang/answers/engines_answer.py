"""The releases kvplan knows, and what differs between two of them: the answers of `kvplan engines`, and their pages."""

from typing import NamedTuple

from glm_kvplan.engines.changes import Change
from glm_kvplan.engines.sglang.answers.release_comparison import EngineComparison
from glm_kvplan.engines.sglang.profile import BASELINE, EngineProfile, installed_release, load_profile, releases
from glm_kvplan.show.format import decimal
from glm_kvplan.show.page import Cell, Column, Line, Page, Row, Section, Table
from glm_kvplan.show.said import Text, say


class EnginesAnswer(NamedTuple):
    """Every release known with its fields; `installed` is the one found here."""

    installed: str | None
    engines: tuple[EngineProfile, ...]
    warnings: tuple[Text, ...]


def answer_engines() -> EnginesAnswer:
    installed, known = installed_release(), releases()
    warnings: tuple[Text, ...] = ()
    if installed is not None and installed not in known:
        warnings = (say("sglang {release} is installed here; kvplan has no profile of it", release=installed),)
    return EnginesAnswer(installed, tuple(map(load_profile, known)), warnings)


def engines_page(answer: EnginesAnswer) -> Page:
    """One row a release with what users meet first."""
    columns = (
        Column(say("release")),
        Column(say("page")),
        Column(say("index B/token/layer")),
        Column(say("state layers with MTP")),
        Column(say("note")),
    )
    found = tuple(_release_row(profile, answer.installed) for profile in answer.engines)
    more = Line(say("compare two: {command}", command="kvplan engines 0.5.21 0.5.22"), "muted")
    return Page("", (), (Section("engines", (Table(columns, found), more)),), answer.warnings)


def _release_row(profile: EngineProfile, installed: str | None) -> Row:
    notes = [say("the default")] if profile.release == BASELINE else []
    notes += [say("installed here")] if profile.release == installed else []
    return Row(
        (
            profile.release,
            "64 x index_kpool" if profile.page_size_times_index_kpool else str(profile.page_size),
            say("one key per index_kpool tokens" if profile.index_rows_pooled else "one key per token"),
            say("KDA and the draft layer" if profile.draft_layer_in_state_pool else "KDA"),
            say("{notes}", notes=tuple(notes)),
        )
    )


def comparison_page(answer: EngineComparison) -> Page:
    """The fields that differ, then what that does to two typical deployments, the most bytes first."""
    before, after = answer.before, answer.after
    columns = (Column(say("profile field"), "code"), Column(before), Column(after))
    fields = tuple(Row((each.name, _word(each.before), _word(each.after))) for each in answer.fields)
    sections = [Section("fields", (Table(columns, fields),), say("Profile fields"), quiet=True)]
    for number, compared in enumerate(answer.deployments):
        title = say(
            "{deployment}, {requests} requests of {context} tokens",
            deployment=compared.deployment,
            requests=answer.workload.concurrency,
            context=f"{answer.workload.context:,}",
        )
        sections.append(Section(f"deployment-{number}", (_change_table(compared.changes, before, after),), title))
    return Page(say("SGLang {before} → {after}", before=before, after=after), (), tuple(sections))


def _change_table(found: tuple[Change, ...], before: str, after: str) -> Table:
    """One row a change: what, its value before and after, the bytes it adds to the fullest rank."""
    columns = (Column(say("what")), Column(before), Column(after), Column(say("bytes on a rank"), "byte_change"))
    return Table(columns, tuple(_change_row(change) for change in found))


def _change_row(change: Change) -> Row:
    sized = change.kind in ("tensor", "rank")
    values = [decimal(value) if sized and isinstance(value, int) else _word(value) for value in change[2:4]]
    return Row((change.name, *values, Cell(change.nbytes or None)))


def _word(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
