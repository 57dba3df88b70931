"""How layers are spread over pipeline stages."""

from functools import lru_cache

from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.errors import InputError
from glm_kvplan.model.geometry import Geometry


def stages_of(geometry: Geometry, deployment: Deployment) -> tuple[range, ...]:
    """The layer range of each pipeline stage of a deployment. Raises as `pipeline_stages`."""
    return pipeline_stages(geometry.num_hidden_layers, deployment.pp_size, deployment.pipeline_partition)


@lru_cache(maxsize=256)
def pipeline_stages(num_layers: int, pp_size: int, partition: tuple[int, ...] | None = None) -> tuple[range, ...]:
    """The layer range of each stage: an even split whose remainder goes to the last stages, or the user's own.

    Source: distributed/utils.py:110-150 at 0.5.23 (SGLANG_PP_LAYER_PARTITION overrides; ignored without PP).
    """
    if pp_size == 1:
        return (range(num_layers),)
    if partition is None:
        base, remainder = divmod(num_layers, pp_size)
        partition = tuple(base + (stage >= pp_size - remainder) for stage in range(pp_size))
    if len(partition) != pp_size or sum(partition) != num_layers:
        raise InputError(
            f"SGLANG_PP_LAYER_PARTITION: {','.join(map(str, partition))} must hold {pp_size} numbers "
            f"that add up to {num_layers} layers"
        )
    stages, first = [], 0
    for layers in partition:
        stages.append(range(first, first + layers))
        first += layers
    return tuple(stages)
