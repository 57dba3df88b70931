"""The blocks' tensor made real with torch, and every layer's view laid over it as vLLM lays it."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from glm_kvplan.allocate.allocation import Allocation, Progress
from glm_kvplan.allocate.device import Device, import_torch
from glm_kvplan.engines.vllm.block_views import BACKING, LayerViews
from glm_kvplan.tensor import DTYPE_BYTES, TensorSpec


class ViewFound(NamedTuple):
    """What torch says of one kind's views. `inside`: none of them ends behind the tensor."""

    name: str
    layers: int
    dtype: str
    shape: tuple[int, ...]
    inside: bool
    equal: bool


class BlockAllocation(Allocation):
    """One GPU's blocks. `views` are laid over the tensor as soon as it is there; what was found is kept in `found`."""

    def __init__(self, views: tuple[LayerViews, ...], device: Device) -> None:
        super().__init__(device)
        self.views = views
        self.found: list[ViewFound] = []

    def take(self, specs: Iterable[TensorSpec], *, touch: bool = True, progress: Progress | None = None) -> None:
        super().take(specs, touch=touch, progress=progress)
        backing = next(tensors[0] for spec, tensors in self._tensors if spec.name == BACKING)
        self.found += [look_at(view, _laid(backing, view), backing.nbytes) for view in self.views]


def _laid(backing: Any, view: LayerViews) -> list[Any]:
    """One tensor a layer, over the same bytes. Raises RuntimeError where one would leave the tensor."""
    torch = import_torch()
    width = DTYPE_BYTES[view.dtype]
    typed = backing.view(getattr(torch, view.dtype))
    inner = _inner_strides(view.shape)
    return [
        torch.as_strided(
            typed,
            view.shape,
            (view.first_stride // width, *inner),
            (view.offset + layer * view.layer_stride) // width,
        )
        for layer in range(view.layers)
    ]


def _inner_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1]
    for width in reversed(shape[2:]):
        strides.append(strides[-1] * width)
    return tuple(reversed(strides))


def look_at(view: LayerViews, tensors: list[Any], total: int) -> ViewFound:
    """Layers' tensors beside their prediction, in shape, type, strides and place."""
    torch = import_torch()
    width = DTYPE_BYTES[view.dtype]
    strides = (view.first_stride // width, *_inner_strides(view.shape))
    inside = all(_end(tensor) <= total for tensor in tensors) and view.end <= total
    begins = [view.offset + layer * view.layer_stride for layer in range(view.layers)]
    equal = [tensor.storage_offset() * tensor.element_size() for tensor in tensors] == begins
    for tensor in tensors:
        same = (tensor.dtype, tuple(tensor.shape)) == (getattr(torch, view.dtype), view.shape)
        equal = equal and same and tuple(tensor.stride()) == strides
    last = tensors[-1]
    dtype = str(last.dtype).removeprefix("torch.")
    return ViewFound(view.name, len(tensors), dtype, tuple(last.shape), inside, equal and inside)


def _end(tensor: Any) -> int:
    """The byte behind a tensor's last element."""
    steps = ((width - 1) * stride for width, stride in zip(tensor.shape, tensor.stride(), strict=True))
    end: int = (tensor.storage_offset() + sum(steps) + 1) * tensor.element_size()
    return end
