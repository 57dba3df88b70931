"""What a rank has left once its pools are allocated: the budget's remainder less all that the budget never counted."""

from glm_kvplan.engines.sglang.components import tensor_specs
from glm_kvplan.engines.sglang.rank import ranks
from glm_kvplan.engines.sglang.sizing.solver import Solution
from glm_kvplan.engines.sglang.sizing.what_if import Setup
from glm_kvplan.tensor import device_bytes
from glm_kvplan.units import GIB


def free_bytes(setup: Setup, solution: Solution) -> int:
    """Bytes free after loading less every device tensor of the pools, on the pipeline stage with the least left.

    Negative where the pools would not fit. Tensor bytes, without an allocator's rounding.
    """
    allocated = max(device_bytes(tensor_specs(rank, solution.sizes)) for rank in ranks(setup))
    return int(solution.available_gib * GIB) - allocated
