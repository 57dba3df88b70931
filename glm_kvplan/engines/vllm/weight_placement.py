"""Where vLLM puts the weights: its parallel layout and drafts as `memory/weights.py` asks for them."""

from glm_kvplan.engines.vllm.rank import Rank
from glm_kvplan.memory.placement import Placement

# Exchanges under which each rank of a TP group takes its own tokens to the experts, shared ones included.
SEQUENCE_PARALLEL = (
    *("allgather_reducescatter", "deepep_high_throughput", "deepep_low_latency", "deepep_v2"),
    *("flashinfer_nvlink_one_sided", "mori_high_throughput", "mori_low_latency", "nixl_ep"),
)


def placement(rank: Rank) -> Placement:
    """The placement of one engine: experts lie over all engines' GPUs, everything else over one engine's.

    Source: model_executor/layers/fused_moe/config.py:1106 and config/parallel.py:768 at 0.33.0.
    """
    deployment = rank.deployment
    tensor, data = deployment.tensor_parallel_size, deployment.data_parallel_size
    own_tokens = (
        deployment.enable_expert_parallel
        and tensor > 1
        and data > 1
        and deployment.all2all_backend in SEQUENCE_PARALLEL
    )
    return Placement(
        gpus=tensor,
        stages=(range(rank.geometry.num_hidden_layers),),
        attn_tp=tensor,
        tp=tensor,
        moe=tensor * data,
        shared=1 if own_tokens else tensor,
        dense_tp=tensor,
        lm_head=tensor,
        vis_attn=tensor,
        vis_mlp=tensor,
        draft=deployment.draft_layers > 0,
        mtp_draft=deployment.draft_layers > 0,
        vision=deployment.multimodal and rank.geometry.vision is not None,
    )
