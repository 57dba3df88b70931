"""Tensors as answers show them, whatever the engine: predicted, and what an allocation found in their place."""

from typing import NamedTuple

from glm_kvplan.allocate.allocation import Taken
from glm_kvplan.tensor import TensorSpec


class TensorShown(NamedTuple):
    """`count` equal tensors of one name; `bytes` of all of them."""

    name: str
    pool: str
    component: str
    count: int  # type: ignore[assignment]  # not tuple.count
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    place: str
    charged: bool
    source: str


class TensorFound(NamedTuple):
    """A predicted tensor (`head`), what was found in its place (None: no such tensor), and whether they are equal."""

    head: TensorShown
    taken: Taken | None
    equal: bool


def show_tensor(spec: TensorSpec) -> TensorShown:
    return TensorShown(
        spec.name,
        spec.pool,
        spec.component,
        spec.count,
        spec.dtype,
        spec.shape,
        spec.nbytes,
        spec.place,
        spec.charged,
        spec.source,
    )
