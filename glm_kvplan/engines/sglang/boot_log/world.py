"""The engines inside one log: plain data parallelism starts whole copies, each sized on its own memory."""

from dataclasses import replace

from glm_kvplan.engines.sglang.boot_log.boot import Boot
from glm_kvplan.engines.sglang.deployment import Deployment


def world_sizes(boot: Boot, deployment: Deployment) -> tuple[tuple[str, Boot], ...]:
    """(label, boot of one copy's ranks); one unlabelled entry without replicas."""
    numbers = sorted({rank.dp for rank in boot.ranks})
    if deployment.replicas == 1 or len(numbers) < 2:
        return (("", boot),)
    return tuple(
        (f"DP{number}", replace(boot, ranks={rank: found for rank, found in boot.ranks.items() if rank.dp == number}))
        for number in numbers
    )
