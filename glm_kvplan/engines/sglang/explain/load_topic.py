"""The topic of two loads side by side: the ledgers of tokens and of requests are sums of their own."""

from glm_kvplan.engines.explanation import Explanation, SideBySide, SideRow
from glm_kvplan.engines.sglang.explain.topic import Ground
from glm_kvplan.engines.sglang.sizing.workload_cost import Estimate, Workload, estimate
from glm_kvplan.units import GB

_SHORTER = 64  # the load beside, where none is named: the same tokens in requests of a 64th of the length


def loads(ground: Ground) -> Explanation:
    """What each ledger takes on one rank under both loads."""
    one = ground.answer.workload
    cut = min(_SHORTER, one.context)
    pair = (one, ground.beside or Workload(one.context // cut, one.concurrency * cut))
    found = (ground.answer, estimate(ground.plan, pair[1]))
    ledgers = [answer.largest.ledgers for answer in found]
    rows = [SideRow(mine.account.title, (mine.total, other.total)) for mine, other in zip(*ledgers, strict=True)]
    totals = tuple(sum(ledger.total for ledger in each) for each in ledgers)
    tokens, states = ([_of(answer, unit) for answer in found] for unit in ("token", "state slot"))
    return Explanation(
        "tokens and requests are two sums, and neither follows from the other",
        (
            f"On one rank the tokens take {tokens[0] / GB:.1f} and {tokens[1] / GB:.1f} GB, the states of running "
            f"requests {states[0] / GB:.1f} and {states[1] / GB:.1f} GB.",
            "Tokens bound max_total_num_tokens, requests bound the state slots; prefix checkpoints take slots beside "
            "these.",
        ),
        (),
        "",
        "",
        "; ".join(dict.fromkeys(ledger.account.source for ledger in ledgers[0])),
        SideBySide(
            "one rank",
            tuple(f"{load.concurrency:,} x {load.context:,} tokens" for load in pair),
            ("decimal", "decimal"),
            (*rows, SideRow("total", totals)),
        ),
    )


def _of(answer: Estimate, unit: str) -> int:
    """Bytes of the ledgers that are paid by the unit."""
    return sum(ledger.total for ledger in answer.largest.ledgers if ledger.account.unit == unit)
