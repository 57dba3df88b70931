"""Where SGLang puts the weights: its parallel layout, kernels and drafts as `memory/weights.py` asks for them."""

from functools import lru_cache
from operator import attrgetter
from typing import Any

from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.flags import TABLE
from glm_kvplan.engines.sglang.pipeline import stages_of
from glm_kvplan.memory.budget import MemoryPart
from glm_kvplan.memory.draft_weights import DraftBytes, draft_bytes, left_behind
from glm_kvplan.memory.gpu import Gpu
from glm_kvplan.memory.placement import Placement
from glm_kvplan.model.geometry import Geometry
from glm_kvplan.units import GIB

_SAFETY, _MARGIN = 2, 256  # SGLANG_SPEC_EXPANSION_SAFETY_FACTOR, SGLANG_ROPE_CACHE_SAFETY_MARGIN
# What a placement follows from. JSON has no hash, and none that is a flag is read here.
_FLAGS = tuple(row.name for row in TABLE if "weights" in row.moves and row.kind != "json")
_values = attrgetter(*_FLAGS)


def placement(geometry: Geometry, deployment: Deployment, gpu: Gpu | None = None) -> Placement:
    """The placement of one engine of `deployment`, on `gpu` where it is known.

    Source: runtime_context.py:160-222, models/glm5_next.py, models/deepseek_v2.py, models/deepseek_nextn.py and
    layers/quantization/fp8_utils.py:2147-2310 at 0.5.23.
    """
    return _placed(geometry, gpu, _values(deployment))


@lru_cache(maxsize=1024)
def _placed(geometry: Geometry, gpu: Gpu | None, values: tuple[Any, ...]) -> Placement:
    """The placement of these flags: of those that move weights, whatever the others are."""
    deployment = Deployment(**dict(zip(_FLAGS, values, strict=True)))
    tp, attn_tp = deployment.tp_size, deployment.attn_tp_size
    runner, exchange = deployment.moe_runner_backend, deployment.moe_a2a_backend
    sm100 = gpu is not None and gpu.sm100
    own, fp4 = _own_draft(deployment), _fp4_runner(runner, gpu)
    vision_width = 1 if deployment.mm_enable_dp_encoder else attn_tp
    return Placement(
        gpus=deployment.world_size,
        stages=stages_of(geometry, deployment),
        attn_tp=attn_tp,
        tp=tp,
        moe=tp // deployment.moe_dp_size,
        shared=tp if exchange == "none" else 1,
        dense_tp=deployment.moe_dense_tp_size or tp,
        lm_head=attn_tp if deployment.enable_dp_lm_head else tp,
        vis_attn=vision_width,
        vis_mlp=vision_width,  # the engine says tp without DP attention: the same number
        draft=deployment.speculative,
        own_draft=own.groups if own is not None else (),
        own_draft_error=own.error if own is not None else 0,
        mtp_draft=deployment.eagle,
        # models/glm5_next.py:1321 at 0.5.23
        vision=deployment.multimodal and geometry.vision is not None and not deployment.language_only,
        relaid_linear=sm100,
        relaid_experts=sm100
        and (runner == "deep_gemm" or (runner == "auto" and exchange in ("deepep", "mooncake", "nixl"))),
        # layers/quantization/marlin_utils_fp4.py:468-573 and layers/quantization/modelopt_quant.py:2553-2584 at 0.5.23
        swizzled_copies=fp4 == "marlin",
        freed_copies=fp4 == "flashinfer_cutlass",
        split_cutlass=sm100 and tp > deployment.ep_size and fp4 == "flashinfer_cutlass",
        widened_mxfp4=gpu is not None and gpu.vendor == "rocm",
        modelopt_draft=True,  # models/deepseek_nextn.py:71-75, :294-299 at 0.5.23
        notes=tuple(_notes(deployment, own)) if deployment.speculative and not deployment.eagle else (),
    )


def _fp4_runner(runner: str, gpu: Gpu | None) -> str:
    """The kernel of ModelOpt NVFP4 experts.

    Source: arg_groups/overrides.py:805-831, :1513-1522 and layers/quantization/modelopt_quant.py:2376-2380 at 0.5.23.
    """
    if runner in ("experimental_sgl_marlin", "lora_marlin"):
        return "marlin"
    if runner != "auto" or gpu is None or gpu.vendor != "cuda":
        return runner
    return "flashinfer_trtllm" if gpu.sm100 else "flashinfer_cutlass" if gpu.blackwell else "marlin"


def _notes(deployment: Deployment, own: DraftBytes | None) -> list[str]:
    """What is to be said of the weights of a draft model of its own."""
    notes = []
    if own is not None and own.error:
        notes.append(
            f"the draft model is quantized: its weights are taken as {own.weights / GIB:.2f} GiB, half-way between all "
            f"of its projections packed and none (+-{own.error / GIB:.2f}); --draft-weights-gib settles it"
        )
    if own is None:
        name = deployment.speculative_algorithm
        notes.append(
            f"the {name} draft's weights are not counted: every size is an upper bound; give --draft-weights-gib"
        )
    return notes


def _own_draft(deployment: Deployment) -> DraftBytes | None:
    """Bytes of a block draft's tensors on a rank, as its config.json has them; None for any other draft."""
    draft = deployment.draft_model
    return draft_bytes(draft, deployment.attn_tp_size) if draft is not None and deployment.block_draft else None


def after_load(deployment: Deployment) -> MemoryPart | None:
    """What a draft takes between its "Load weight end" and the sizing: DFLASH's table and its copy of projections."""
    draft = deployment.draft_model
    if draft is None or deployment.speculative_algorithm != "DFLASH":
        return None
    drafts = deployment.speculative_num_draft_tokens or 0
    steps = deployment.speculative_num_steps or 0
    positions = deployment.context_length + steps * drafts * _SAFETY + _MARGIN
    return left_behind(draft, deployment.attn_tp_size, positions)
