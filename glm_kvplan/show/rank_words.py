"""One rank's tensors in words, the same in every output format of `kvplan pools` and `kvplan validate`."""

from glm_kvplan.allocate.validation import Validation
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.show.format import count, whole
from glm_kvplan.tensor import TensorSpec


def sizes_line(sizes: PoolSizes) -> str:
    """`1,000,000 tokens, 200 state slots, 40 running requests`."""
    return (
        f"{count(sizes.tokens, 'token')}, {count(sizes.state_slots, 'state slot')}, "
        f"{count(sizes.running_requests, 'running request')}"
    )


def verdict(found: Validation[PoolSizes]) -> str:
    """The verdict in one line; it rests on the tensors' own bytes alone."""
    if found.ok:
        return f"equal to the byte: {whole(found.taken)} B in {sum(row.spec.count for row in found.rows)} tensors"
    wrong = sum(not row.equal for row in found.rows) + len(found.unexpected)
    return f"not equal: {wrong} of {len(found.rows)} predictions fail"


def explained(state: bool | None) -> str:
    """A word in front of an explanation: nothing where it holds or where nothing can be said."""
    return "NOT explained: " if state is False else ""


def label(spec: TensorSpec) -> str:
    """A tensor's name, with its place where that is not the device."""
    return spec.name if spec.place == "device" else f"{spec.name} ({spec.place})"


def shape(dimensions: tuple[int, ...]) -> str:
    """`131136x1x576`."""
    return "x".join(map(str, dimensions))
