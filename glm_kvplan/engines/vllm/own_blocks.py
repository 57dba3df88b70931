"""vLLM's own planning and allocation, given the same layers (`kvplan validate --with vllm`).

What each layer keeps (its state's shapes, a row's elements, a key, a ring) is handed to vLLM's classes. How they are
grouped, how wide a block becomes, how many there are, and where each layer's view lies are its own doing, and that is
what the comparison tests.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from glm_kvplan.allocate.allocation import Progress
from glm_kvplan.allocate.device import Device, import_torch
from glm_kvplan.engines.vllm.block_allocation import BlockAllocation, ViewFound, look_at
from glm_kvplan.engines.vllm.block_views import LayerViews, key_page_tokens
from glm_kvplan.engines.vllm.blocks import index_stride, row_stride
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.profile import EngineProfile
from glm_kvplan.errors import InputError, KvplanError
from glm_kvplan.tensor import TensorSpec

_PACKED, _REGIONS = "BLHNC", "LBHNC"  # how this model's caches lie: block outermost from 0.32.0 on


class MissingEngineError(KvplanError):
    """vllm does not import in this environment."""


def check_release(profile: EngineProfile) -> str:
    """The release of the vllm that imports here. Raises MissingEngineError; InputError if it is not `profile`'s."""
    from importlib.metadata import PackageNotFoundError, version

    vllm = _import("vllm")
    try:
        found = version("vllm")
    except PackageNotFoundError:  # an unpacked copy on the path
        found = str(getattr(vllm, "__version__", "unknown"))
    plain = found.partition("+")[0]
    if plain != profile.base_release:
        raise InputError(
            f"--with vllm: release {found[:40]} is here, the plan is for {profile.release}; give --engine vllm-{plain}"
        )
    return found


class OwnBlocks(BlockAllocation):
    """The tensor and the views that vLLM makes of the plan's layers."""

    def __init__(self, plan: Plan, views: tuple[LayerViews, ...], device: Device) -> None:
        super().__init__(views, device)
        self.plan = plan

    def take(self, specs: Iterable[TensorSpec], *, touch: bool = True, progress: Progress | None = None) -> None:
        """Let vLLM plan and allocate. It fills its tensor with zeros itself, whatever `touch` says."""
        torch = import_torch()
        (spec,) = specs
        interface = _import("vllm.v1.kv_cache_interface")
        planning = _planning()
        layout = interface.KVCacheLayout[_PACKED if self.plan.profile.blocks_packed else _REGIONS]
        config = _config(self.plan, layout)
        groups = planning.get_kv_cache_groups(config, dict(_layers(self.plan, interface, torch)))
        made = planning.get_kv_cache_config_from_groups(config, groups, spec.nbytes)
        caches = _import("vllm.v1.worker.utils").allocate_kv_cache(made, torch.device(self.device.name), layout)
        backing = next(iter(caches.values()))
        storage = backing.untyped_storage()
        whole = torch.empty(0, dtype=torch.int8, device=self.device.name).set_(storage, 0, (storage.nbytes(),), (1,))
        self._tensors.append((spec, [whole]))
        self.found += list(_found(self.views, made, caches, whole))
        self.synchronize()
        if progress is not None:
            progress(whole.nbytes)


def _found(views: tuple[LayerViews, ...], made: Any, caches: Mapping[str, Any], whole: Any) -> Iterator[ViewFound]:
    """Each of our kinds beside the layers that vLLM has at the same place, in shape, type, strides and offset."""
    for view in views:
        layers = [name for name in caches if _kind_of(name) == view.component]
        if view.component == "kda_state":
            number = int(view.name.rpartition(" ")[2]) - 1
            groups = [group for group in made.kv_cache_groups if _kind_of(group.layer_names[0]) == "kda_state"]
            layers = list(groups[number].layer_names)
        yield look_at(view, [caches[name] for name in layers], whole.nbytes)


def _kind_of(name: str) -> str:
    kinds = {"attn": "latent_rows", "k_cache": "index_keys", "tail_cache": "compress_tail"}
    return kinds.get(name.rpartition(".")[2], "kda_state")


def _config(plan: Plan, layout: Any) -> Any:
    """The few settings that vLLM's planning reads."""
    deployment = plan.deployment
    return SimpleNamespace(
        cache_config=SimpleNamespace(
            num_gpu_blocks_override=None,
            block_size=deployment.block_size,
            enable_prefix_caching=deployment.enable_prefix_caching,
            prefix_cache_retention_interval=None,
            get_resolved_kv_cache_layout=lambda: layout,
            mamba_cache_mode="align" if deployment.enable_prefix_caching else "none",
            hash_block_size=None,
            prefix_match_unit=None,
        ),
        scheduler_config=SimpleNamespace(disable_hybrid_kv_cache_manager=False),
        attention_config=SimpleNamespace(hisparse_config=None),
        model_config=SimpleNamespace(max_model_len=deployment.max_model_len, hf_config=SimpleNamespace(model_type="")),
        parallel_config=SimpleNamespace(
            decode_context_parallel_size=deployment.decode_context_parallel_size,
            prefill_context_parallel_size=1,
            pipeline_parallel_size=1,
        ),
        speculative_config=None,
        kv_transfer_config=None,
        kv_events_config=None,
    )


def _layers(plan: Plan, interface: Any, torch: Any) -> Iterator[tuple[str, Any]]:
    """Every layer's cache in the model's order, by the names that vLLM gives them."""
    geometry, deployment, rank = plan.geometry, plan.deployment, plan.rank
    packed = plan.profile.blocks_packed
    size = deployment.block_size
    full = {*geometry.full_attention_layers}
    draft = range(geometry.num_hidden_layers, geometry.num_hidden_layers + deployment.draft_layers)
    scaled = deployment.cache_dtype == "fp8_ds_mla"
    whole = deployment.cache_dtype in ("auto", "bfloat16")
    row_stride_of = {"block_stride_alignment": row_stride(rank)} if packed else {}
    key_stride_of = (
        {"block_stride_alignment": index_stride(rank)} if packed else {"storage_block_size": key_page_tokens(rank)}
    )
    taps, channels = geometry.conv_state_shape
    heads, rows, columns = geometry.temporal_state_shape
    width = deployment.tensor_parallel_size
    state = interface.MambaSpec(
        block_size=size,
        shapes=(
            (taps + deployment.num_speculative_tokens, channels // width),
            (heads // width, rows, columns),
        ),
        dtypes=(getattr(torch, deployment.conv_dtype), getattr(torch, deployment.state_dtype)),
        page_size_padded=size * deployment.sized_row_bytes,
        mamba_cache_mode="align" if deployment.enable_prefix_caching else "none",
        num_speculative_blocks=deployment.num_speculative_tokens,
        num_prefill_checkpoint_blocks=int(deployment.prefill_checkpoint),
    )
    rows_spec = interface.MLAAttentionSpec(
        block_size=size,
        num_kv_heads=1,
        head_size=geometry.kv_lora_rank,
        dtype=torch.bfloat16 if whole else torch.uint8,
        cache_dtype_str=deployment.cache_dtype,
        **({"state_content_bytes": deployment.row_bytes} if scaled else {}),
        **row_stride_of,
    )
    keys_spec = interface.MLAAttentionSpec(
        block_size=size,
        num_kv_heads=1,
        head_size=geometry.index_head_dim + 4,
        dtype=torch.uint8,
        tokens_per_state=geometry.index_kpool,
        **key_stride_of,
    )
    tail_class = interface.CircularBufferSpec if packed else interface.KpoolTailSpec
    window = {} if packed else {"sliding_window": geometry.index_kpool}
    tail_spec = tail_class(
        block_size=deployment.tail_slots,
        num_kv_heads=2,
        head_size=geometry.index_head_dim,
        dtype=torch.bfloat16,
        head_size_v=0,
        **window,
    )
    for layer in (*range(geometry.num_hidden_layers), *draft):
        name = f"model.layers.{layer}.self_attn"
        if layer in full or layer in draft:
            yield f"{name}.indexer.k_cache", keys_spec
            yield f"{name}.indexer.tail_cache", tail_spec
            yield f"{name}.attn", rows_spec
        else:
            yield name, state


def _planning() -> Any:
    """Where vLLM groups layers and sizes blocks: a module of its own from 0.33.0 on."""
    module = _import("vllm.v1.core.kv_cache_utils")
    return module if hasattr(module, "get_kv_cache_groups") else _import("vllm.v1.core.kv_cache_planning")


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingEngineError(f"--with vllm: {name} does not import here ({error})") from None
