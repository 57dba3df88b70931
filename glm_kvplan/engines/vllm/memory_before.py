"""What is left of a GPU for the blocks: given, printed by a log, or estimated from the card with an interval.

vLLM takes a share of the card, runs one full batch, and subtracts what that took at its peak: weights, context and
communication, activations, and an estimate of its CUDA graphs. Of these the share and the weights are known; the
others are estimated here from what public logs print, each with what it may be off.
"""

from math import ceil, floor, isfinite
from typing import NamedTuple

from glm_kvplan.certainty import Certainty, How
from glm_kvplan.engines.vllm.components.index_keys import key_bytes
from glm_kvplan.engines.vllm.rank import Rank
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.memory.budget import DRAFT, TARGET, UNMEASURED_WEIGHTS_ERROR, MemoryPart, check_free
from glm_kvplan.memory.gpu import Gpu
from glm_kvplan.memory.weights import WeightEstimate
from glm_kvplan.units import GB, GIB

LOG_STEP = 0.01  # GiB: what the log prints of the available memory
MEASURED_BATCH = 8192  # tokens of a step in every public figure
# GiB that are not free when vLLM asks, and their error: 139.2 of 139.79 GiB are free in three H200 logs; of a DGX Spark
# 101.8, 105.1, 110.3 and 110.4 of 121.6 (MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks, issues 47 and 118).
TAKEN, TAKEN_OF_SHARED = (0.6, 0.3), (14.7, 14.7)
GATHERED = 40  # multiples of the context the indexer's workspace holds before 0.32
ROWS_AT_ONCE = (5, 2)  # multiples of the context from 0.32 on: up to 256K, and above
LONG_CONTEXT = 256 * 1024

H200 = "H200 logs of 2026 (doc id 58946482992, 69102865712)"
DRIVER = MemoryPart(
    "kept by the driver", -0.6, 0.15, "estimated",
    "139.79 of the 140.40 GiB nvidia-smi reports of an H200: what four public logs' shares imply",
)  # fmt: skip
SEVERAL_GPUS = MemoryPart(
    "context, communication, workspaces", -1.8, 0.5, "estimated",
    f"1.6 to 2.1 GiB over the weights in {H200}: TP4, TP4 with MTP, TP4 with MTP and EP, TP8",
)  # fmt: skip
ONE_GPU = MemoryPart(
    "context and workspaces", -1.2, 0.6, "estimated",
    "no public figure of one GPU: what several take, less their communication",
)  # fmt: skip
ACTIVATION = MemoryPart(
    "activations", -1.8, 0.6, "estimated", f"1.4 to 2.2 GiB a step of 8,192 tokens beside the indexer's own in {H200}",
)  # fmt: skip
# CUDA graphs by generation: what vLLM's own estimate of them said.
GRAPHS = {
    9: MemoryPart("CUDA graphs", -2.2, 1.1, "estimated", f"vLLM's estimate said 1.2 to 3.14 GiB in {H200}"),
    10: MemoryPart("CUDA graphs", -3.0, 2.5, "estimated", "no public figure on SM100: between those of SM90 and SM120"),
    12: MemoryPart(
        "CUDA graphs", -20.9, 3.0, "estimated",
        "vLLM's estimate said 20.88 GiB on 4x RTX PRO 6000 with MTP (local-inference-lab#501)",
    ),
}  # fmt: skip
FEW_GRAPHS_ON_SM120 = MemoryPart(
    "CUDA graphs", -9.6, 2.0, "estimated",
    "vLLM's estimate said 9.56 GiB on 4x RTX PRO 6000 with captures up to 128 (local-inference-lab#501)",
)  # fmt: skip
FEW_CAPTURES = 128


class Available(NamedTuple):
    """Bytes for the blocks of one GPU. `low_bytes` and `high_bytes` are what they may be; equal where they are given.

    `how`: "given", "measured" or "estimated".
    """

    how: How
    nbytes: int
    low_bytes: int
    high_bytes: int
    parts: tuple[MemoryPart, ...]
    notes: tuple[str, ...] = ()
    checkpoint: str | None = None  # the format of the weights, where the estimate is of one

    @property
    def weights_gib(self) -> float:
        """Of the target and a draft, as far as they are known."""
        return -sum(part.gib for part in self.parts if part.name in (TARGET, DRAFT))

    @property
    def certainty(self) -> Certainty:
        """Of what follows from it: "derived" or "estimated"."""
        return "estimated" if self.how == "estimated" else "derived"


def available(
    rank: Rank,
    gpu: Gpu,
    *,
    available_gib: float | None = None,
    pre_gib: float | None = None,
    weights_gib: float | None = None,
    draft_weights_gib: float | None = None,
    weights: WeightEstimate | None = None,
    booted: bool = False,
) -> Available:
    """The memory of the blocks: --kv-cache-memory-bytes, or what the log prints as available, or an estimate.

    `available_gib` is the log's "Available KV cache memory"; `pre_gib` what is free before vLLM starts. `booted`: a log
    shows that enough was. Raises RefusedError where less is free than the share vLLM takes, as far as that is known,
    InputError where the weights are not known.
    """
    deployment = rank.deployment
    for flag, value in (("--available-gib", available_gib), ("--pre-gib", pre_gib), ("--weights-gib", weights_gib)):
        if value is not None and not (isfinite(value) and value >= 0):
            raise InputError(f"{flag} {value}: must be a number of GiB, not negative")
    if pre_gib is not None:
        check_free(gpu, pre_gib)
    images = max(int(deployment.mm_ipc_gpu_memory_gb * GIB), 0) if deployment.multimodal else 0
    booted = booted or available_gib is not None
    fixed = deployment.kv_cache_memory_bytes
    notes = () if booted else _enough_free(rank, gpu, pre_gib, only_said=fixed is not None)
    if fixed is not None:
        return _exactly(fixed - images, "given", "--kv-cache-memory-bytes")._replace(notes=notes)
    if available_gib is not None:
        exact = int(available_gib * GIB) - images
        half = int(LOG_STEP / 2 * GIB)
        printed = round(available_gib, 2) == available_gib
        found = _exactly(exact, "measured", "Available KV cache memory")
        return found._replace(low_bytes=exact - half, high_bytes=exact + half) if printed else found
    return _estimated(rank, gpu, weights_gib, draft_weights_gib, weights, images)._replace(notes=notes)


def _exactly(nbytes: int, how: How, source: str) -> Available:
    return Available(how, nbytes, nbytes, nbytes, (MemoryPart("available", nbytes / GIB, 0.0, how, source),))


def total_gib(gpu: Gpu) -> float:
    """What CUDA calls the card's memory: a little less than nvidia-smi does."""
    return gpu.memory_mib / 1024 + (0.0 if gpu.integrated else DRIVER.gib)


def _enough_free(rank: Rank, gpu: Gpu, pre_gib: float | None, *, only_said: bool) -> tuple[str, ...]:
    """Nothing starts where less is free than the share. Unless it is given, what is free is estimated: refused where it
    is less, said where it may be; `only_said` where nothing else of the answer is an estimate.
    """
    share, total = rank.deployment.gpu_memory_utilization, total_gib(gpu)
    wanted, source = total * share, rank.profile.source("requested")
    if pre_gib is not None:
        left = pre_gib + (0 if gpu.integrated else DRIVER.error_gib)
        if left < wanted:
            raise RefusedError(
                f"{pre_gib:.2f} GiB are free and --gpu-memory-utilization {share} of a {gpu.name} is {wanted:.2f} GiB; "
                f"lower it to {floor(left / total * 100) / 100:g}",
                source,
            )
        return ()
    taken, error = TAKEN_OF_SHARED if gpu.integrated else TAKEN
    left = total - taken
    if left < wanted and not only_said:
        raise RefusedError(
            f"about {left:.1f} (+-{error:.1f}) GiB are free and --gpu-memory-utilization {share} of a {gpu.name} is "
            f"{wanted:.2f} GiB; lower it to {floor(left / total * 100) / 100:g}, or say with --pre-gib what is free",
            source,
        )
    if left - error < wanted:
        return (
            f"about {left:.1f} (+-{error:.1f}) GiB are free and --gpu-memory-utilization {share} of a {gpu.name} is "
            f"{wanted:.2f} GiB: vLLM does not start where less is free; --pre-gib says what is",
        )
    return ()


def _estimated(
    rank: Rank,
    gpu: Gpu,
    weights_gib: float | None,
    draft_gib: float | None,
    weights: WeightEstimate | None,
    images: int,
) -> Available:
    deployment = rank.deployment
    total = total_gib(gpu)
    requested = ceil(total * GIB * deployment.gpu_memory_utilization) / GIB
    parts = [MemoryPart(f"{gpu.name} memory", gpu.memory_mib / 1024, 0.0, "given", gpu.source)]
    if not gpu.integrated:
        parts.append(DRIVER)
    left_out = MemoryPart("left to others", requested - total, 0.0, "given", "--gpu-memory-utilization")
    parts += [left_out, *_weight_parts(rank, weights_gib, draft_gib, weights)]
    if deployment.cpu_offload_gb:
        offloaded = deployment.cpu_offload_gb * GB / GIB
        parts.append(MemoryPart("offloaded weights", offloaded, 0.2, "given", "--cpu-offload-gb"))
    parts.append(SEVERAL_GPUS if deployment.gpus > 1 else ONE_GPU)
    parts += [_gather_workspace(rank), _activation(rank)]
    if deployment.cuda_graphs and deployment.graphs_reserved:
        parts.append(_graphs(rank, gpu))
    if images:
        parts.append(MemoryPart("decoded images", -images / GIB, 0.0, "given", "--mm-ipc-gpu-memory-gb"))
    middle = sum(part.gib for part in parts)
    # Independent amounts: the errors add in squares.
    error = sum(part.error_gib**2 for part in parts) ** 0.5
    return Available(
        "estimated",
        int(middle * GIB),
        int((middle - error) * GIB),
        int((middle + error) * GIB),
        tuple(parts),
        checkpoint=weights.checkpoint if weights is not None and weights_gib is None else None,
    )


def _weight_parts(
    rank: Rank, weights_gib: float | None, draft_gib: float | None, weights: WeightEstimate | None
) -> list[MemoryPart]:
    """Target and draft weights. The MTP layer uses the target's embedding and head, so they are not counted again."""
    parts = []
    if weights_gib is not None:
        parts.append(MemoryPart(TARGET, -weights_gib, 0.0, "given", "--weights-gib"))
    elif weights is None:
        raise InputError("the weights are unknown: give --weights-gib or --checkpoint, or --available-gib of a log")
    else:
        parts.append(_weight_part(TARGET, weights.target[0], weights))
    if draft_gib is not None:
        parts.append(MemoryPart(DRAFT, -draft_gib, 0.0, "given", "--draft-weights-gib"))
    elif rank.deployment.draft_layers and weights is not None:
        part = _weight_part(DRAFT, weights.draft[0] - weights.returned[0], weights)
        parts.append(part._replace(error_gib=0.1))
    elif rank.deployment.draft_layers:
        raise InputError("--draft-weights-gib is missing: the MTP layer loads before the blocks are sized")
    return parts


def _weight_part(name: str, nbytes: int, weights: WeightEstimate) -> MemoryPart:
    error = nbytes / GIB * UNMEASURED_WEIGHTS_ERROR if weights.error_gib is None else weights.error_gib
    return MemoryPart(name, -nbytes / GIB, error, "estimated", weights.evidence)


def _gather_workspace(rank: Rank) -> MemoryPart:
    """The indexer's workspace, which a profiling run allocates whole: known to the byte."""
    length = rank.deployment.max_model_len
    key = key_bytes(rank.geometry)
    if rank.profile.index_gather_bounded:
        factor = ROWS_AT_ONCE[0] if length <= LONG_CONTEXT else ROWS_AT_ONCE[1]
        nbytes = key * 8 * factor * length // rank.geometry.index_kpool
    else:
        nbytes = key * GATHERED * length
    return MemoryPart("indexer workspace", -nbytes / GIB, 0.0, "derived", rank.profile.source("index_gather"))


def _activation(rank: Rank) -> MemoryPart:
    """What a full step takes at its peak, by its tokens. Never measured but with 8,192: the error grows with it."""
    share = rank.deployment.max_num_batched_tokens / MEASURED_BATCH
    return ACTIVATION._replace(gib=ACTIVATION.gib * share, error_gib=ACTIVATION.error_gib * max(share, 0.5))


def _graphs(rank: Rank, gpu: Gpu) -> MemoryPart:
    generation, largest = gpu.capability[0], rank.deployment.largest_capture
    if generation == 12 and largest is not None and largest <= FEW_CAPTURES:
        return FEW_GRAPHS_ON_SM120
    return GRAPHS[generation]
