"""`kvplan engines` in the terminal."""

from rich.table import Table
from rich.text import Text

from glm_kvplan.answers.diff.changes import Change
from glm_kvplan.answers.diff.engines import EngineComparison
from glm_kvplan.engines.sglang.profile import BASELINE, EngineProfile
from glm_kvplan.show.console import console
from glm_kvplan.show.format import decimal


def render_list(profiles: list[EngineProfile], installed: str | None) -> None:
    """Print one row a release with what users meet first."""
    table = _table("release", "page", "index B/token/layer", "state layers with MTP", "note")
    for profile in profiles:
        page = "64 x index_kpool" if profile.page_size_times_index_kpool else str(profile.page_size)
        index = "one key per index_kpool tokens" if profile.index_rows_pooled else "one key per token"
        layers = "KDA and the draft layer" if profile.draft_layer_in_state_pool else "KDA"
        notes = [
            *(["the default"] if profile.release == BASELINE else []),
            *(["installed here"] if profile.release == installed else []),
        ]
        table.add_row(profile.release, page, index, layers, ", ".join(notes))
    console().print(table)
    if installed is not None and installed not in [profile.release for profile in profiles]:
        console().print(Text(f"sglang {installed} is installed here; kvplan has no profile of it", style="yellow"))
    console().print(Text("compare two: kvplan engines 0.5.21 0.5.22", style="dim"))


def render(comparison: EngineComparison) -> None:
    """Print the fields that differ, then what that does to two typical deployments, the most bytes first."""
    out = console()
    out.print(Text(f"SGLang {comparison.before} -> {comparison.after}", style="bold"))
    table = _table("profile field", comparison.before, comparison.after)
    for name, old, new in comparison.fields:
        table.add_row(name, str(old), str(new))
    out.print(table)
    requests, context = comparison.workload.concurrency, comparison.workload.context
    for title, found in comparison.deployments:
        out.print(Text(f"\n{title}, {requests} requests of {context:,} tokens", style="bold"))
        out.print(change_table(found, comparison.before, comparison.after))


def change_table(found: tuple[Change, ...], before: str, after: str) -> Table:
    """One row a change: what, its value before and after, the bytes it adds to the fullest rank."""
    table = _table("what", before, after, "bytes on a rank")
    table.columns[3].justify = "right"
    for change in found:
        sized = change.kind in ("tensor", "rank")
        values = [decimal(value) if sized and isinstance(value, int) else _shown(value) for value in change[2:4]]
        table.add_row(change.name, *values, f"{change.nbytes:+,}" if change.nbytes else "")
    return table


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _table(*titles: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in titles:
        table.add_column(title, overflow="fold", no_wrap=title == "profile field")
    return table
