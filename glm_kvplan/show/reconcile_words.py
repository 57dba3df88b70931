"""What a reconciliation comes to in words, the same in every output format."""

from glm_kvplan.engines.sglang.boot_log.reconciliation import Reconciliation


def verdict(answer: Reconciliation) -> str:
    """One line: explained to rounding, or the first number that is not."""
    row = answer.first_unexplained
    if row is None:
        count = sum(row.explained is True for row in answer.rows)
        return f"explained to rounding: all {count} numbers"
    where = f" on {row.rank}" if row.rank else ""
    return f"not explained: {row.name}{where}: predicted {row.predicted or '-'}, printed {row.printed}"


def notes(answer: Reconciliation) -> list[str]:
    """What to know before reading the numbers."""
    boot, said = answer.boot, []
    if boot.arguments_cut:
        said.append("the server_args line is cut: flags behind the cut are taken as defaults")
    if not boot.arguments:
        said.append("the boot has no server_args line: the flags are the launch command's")
    if boot.failure is not None:
        said.append("the engine refused to start: see its own line in the log")
    elif not boot.ready:
        said.append("the log ends before the server was ready: what it holds until then is checked")
    return said
