"""Tensor, data and context parallelism: what runs, what the model class cannot, and what is not planned here."""

from typing import NamedTuple

from glm_kvplan.engines.vllm.resolve.site import Decisions
from glm_kvplan.errors import InputError


class Layout(NamedTuple):
    """How many GPUs share what."""

    tensor: int
    data: int
    decode_context: int
    hosts: int
    experts: bool
    all2all: str

    @property
    def batched_experts(self) -> bool:
        """Experts exchange in batches of fixed size (ParallelConfig.use_batched_dp_moe)."""
        return self.all2all in ("deepep_low_latency", "nixl_ep") and self.experts and self.data > 1


def parallel_layout(given: Decisions) -> Layout:
    """The widths. Raises RefusedError where the model cannot run so, InputError for what is not planned."""
    site = given.site
    tensor = given.whole("tensor_parallel_size")
    data = given.whole("data_parallel_size")
    heads = site.geometry.num_attention_heads
    if heads % tensor:
        given.refuse(f"--tensor-parallel-size {tensor} does not divide the {heads} attention heads", "heads")
    if site.geometry.linear_num_heads % tensor:
        given.refuse(
            f"--tensor-parallel-size {tensor} does not divide the {site.geometry.linear_num_heads} KDA heads",
            "state_shape",
        )
    given.keep("tensor_parallel_size", tensor, "one GPU unless given")
    given.keep("data_parallel_size", data, "one engine unless given")
    pipeline = given.whole("pipeline_parallel_size")
    if pipeline > 1:
        given.refuse(
            f"--pipeline-parallel-size {pipeline}: the model class makes no empty tensors between stages, so every "
            "stage but the first fails as it profiles; use --tensor-parallel-size",
            "pipeline",
        )
    if given.whole("prefill_context_parallel_size") > 1:
        raise InputError("--prefill-context-parallel-size above 1 is not planned here; leave it out")
    decode_context = given.whole("decode_context_parallel_size")
    if decode_context > 1 and tensor % decode_context:
        given.refuse(
            f"--decode-context-parallel-size {decode_context} does not divide --tensor-parallel-size {tensor}",
            "dcp_width",
        )
    if decode_context > 1:
        given.decide("decode_context_parallel_size", decode_context, "given: a request's tokens lie on so many GPUs")
    hosts = given.whole("nnodes")
    if tensor * data % hosts:
        given.refuse(f"--nnodes {hosts} does not divide the {tensor * data} GPUs", "hosts")
    given.keep("nnodes", hosts, "one host unless given")
    experts = given.on("enable_expert_parallel")
    return Layout(tensor, data, decode_context, hosts, experts, given.text("all2all_backend"))
