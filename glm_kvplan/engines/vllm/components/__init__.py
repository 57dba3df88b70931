"""One file a kind of memory vLLM holds for this model; in their order: what a token, a state and a request cost."""

from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.vllm.components import compress_tail, index_keys, kda_state, latent_rows, mtp_layer
from glm_kvplan.engines.vllm.rank import Rank


def ledgers(rank: Rank, *, tokens: int, states: int, requests: int) -> tuple[Ledger, ...]:
    """Every kind of memory of so many tokens, states and requests on one GPU; what costs nothing is left out.

    What blocks take beyond it (their own rounding, the rest of a tail's block) is `blocks`' to say.
    """
    found = (
        latent_rows.ledger(rank, tokens),
        index_keys.ledger(rank, tokens),
        mtp_layer.ledger(rank, tokens),
        kda_state.ledger(rank, states),
        kda_state.padding(rank, states),
        compress_tail.ledger(rank, requests),
    )
    return tuple(ledger for ledger in found if ledger.bytes_per_unit)
