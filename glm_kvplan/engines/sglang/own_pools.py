"""The engine's own pool classes, built from the same inputs as the specs (`kvplan validate --with sglang`).

Sizes, layer ids and the row width are handed to the constructors; shapes, dtypes, padding and which buffers exist
are the engine's own doing, and that is what the comparison tests.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from types import TracebackType
from typing import Any, Self

from glm_kvplan.allocate.allocation import Progress, Taken, account
from glm_kvplan.allocate.device import Device, import_torch
from glm_kvplan.allocate.device_failures import as_failure, give_back, let_go
from glm_kvplan.engines.sglang.components import pool_units
from glm_kvplan.engines.sglang.components.latent_kv import row_elements
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.profile import EngineProfile
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.errors import InputError, KvplanError
from glm_kvplan.tensor import TensorSpec

# Below this, what no spec names is a cursor or a table of pointers; the specs leave those out.
UNLISTED = 4096


class MissingEngineError(KvplanError):
    """sglang does not import in this environment."""


def check_release(profile: EngineProfile) -> str:
    """The release of the sglang that imports here. Raises MissingEngineError; InputError if it is not `profile`'s."""
    from importlib.metadata import PackageNotFoundError, version

    sglang = _import("sglang")
    try:
        found = version("sglang")
    except PackageNotFoundError:  # an unpacked copy on the path
        found = str(getattr(sglang, "__version__", "unknown"))
    if found != profile.release:
        raise InputError(
            f"--with sglang: release {found} is here, the plan is for {profile.release}; give --engine {found}"
        )
    return found


class EnginePools:
    """The engine's pools on one device, with the interface of `Allocation`."""

    def __init__(self, rank: Rank, device: Device, sizes: PoolSizes) -> None:
        self.rank, self.sizes, self.device = rank, sizes, device
        self._tensors: dict[str, list[Any]] = {}
        self._pools: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def take(self, specs: Iterable[TensorSpec], *, touch: bool = True, progress: Progress | None = None) -> None:
        """Build the pools. The engine fills them with zeros itself, whatever `touch` says."""
        try:
            # The pools ask for the decode-context-parallel width; this model runs with none.
            with _import("sglang.srt.runtime_context").get_parallel().override(attn_dcp_size=1):
                self._build(import_torch())
        except BaseException as error:
            taken = sum(each.nbytes for each in self.taken().values())
            failure = as_failure(error, self.device, taken)
            let_go(error)  # the pool whose constructor failed is in no list of ours
            self.release()
            if failure is not None:
                raise failure from None
            raise
        if progress is not None:
            progress(sum(spec.nbytes for spec in specs))

    def _build(self, torch: Any) -> None:
        if pool_units.hosts_draft(self.rank):
            raise InputError("--with sglang builds no pools of a draft model of its own; leave --with out")
        requests = self._request_pool(torch)
        self._pools += [requests, requests.mamba_pool]
        self._tensors.update(_request_tensors(requests))
        cache = self._token_pool(torch, requests)
        self._pools.append(cache.full_kv_pool)
        self._tensors.update(_cache_tensors("", cache.full_kv_pool))
        allocator = _import("sglang.srt.mem_cache.allocator.paged").PagedTokenToKVPoolAllocator(
            self.sizes.tokens,
            page_size=self.rank.deployment.page_size,
            dtype=cache.dtype,
            device=self.device.name,
            kvcache=cache,
            need_sort=False,
        )
        self._pools.append(allocator)
        self._tensors["token_allocator.free_pages"] = [allocator.free_pages]
        if pool_units.draft_layers(self.rank):
            draft = self._draft_pool(torch, requests)
            self._pools.append(draft)
            self._tensors.update(_cache_tensors("draft.", draft))

    def taken(self) -> dict[str, Taken]:
        """Torch's account of the engine's tensors, by the names the specs use."""
        return {name: account(tensors) for name, tensors in self._tensors.items() if tensors}

    def unexpected(self) -> tuple[str, ...]:
        """Tensors of the engine's pools, larger than a few pointers, that no spec names."""
        known = {id(tensor) for tensors in self._tensors.values() for tensor in tensors}
        return tuple(
            f"{type(pool).__name__}.{name} {tuple(tensor.shape)}"
            for pool in self._pools
            for name, tensor in _tensors_of(pool)
            if id(tensor) not in known and tensor.nbytes >= UNLISTED
        )

    def storage_bytes(self) -> int:
        """Bytes of the storages behind the device tensors, each storage once."""
        storages = {
            tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
            for name, tensors in self._tensors.items()
            if name != "req_generation"
            for tensor in tensors
        }
        return sum(storages.values())

    def release(self) -> None:
        """Give everything back."""
        held = [tensor for pool in self._pools for _, tensor in _tensors_of(pool)]
        for tensor in (*held, *(tensor for tensors in self._tensors.values() for tensor in tensors)):
            with suppress(RuntimeError):  # of a device that no longer answers
                tensor.untyped_storage().resize_(0)
        self._tensors, self._pools = {}, []
        del held
        give_back(self.device)

    def _request_pool(self, torch: Any) -> Any:
        geometry, deployment, _, stage = self.rank
        mamba = _import("sglang.srt.configs.mamba_utils")
        shape = mamba.KimiLinearStateShape.create(
            tp_world_size=deployment.linear_attn_tp_size,
            num_heads=geometry.linear_num_heads,
            head_dim=geometry.linear_head_dim,
            conv_kernel_size=geometry.short_conv_kernel_size,
        )
        dtypes = mamba.Mamba2StateDType(
            conv=getattr(torch, deployment.mamba_conv_dtype), temporal=getattr(torch, deployment.mamba_ssm_dtype)
        )
        layers = [layer for layer in geometry.linear_attention_layers if layer in stage]
        params = mamba.KimiLinearCacheParams(shape=shape, layers=list(geometry.linear_attention_layers), dtype=dtypes)
        extra = pool_units.state_layers(self.rank) - len(layers)
        common: dict[str, Any] = {
            "size": self.sizes.running_requests,
            "mamba_size": self.sizes.state_slots,
            "max_context_len": deployment.context_length + deployment.request_table_extra,
            "device": self.device.name,
            "enable_memory_saver": False,
            "cache_params": params,
            "mamba_layer_ids": [*layers, *range(geometry.num_hidden_layers, geometry.num_hidden_layers + extra)],
            "enable_mamba_extra_buffer": deployment.extra_buffer,
            "speculative_num_draft_tokens": (
                pool_units.draft_tokens(deployment) if pool_units.snapshots_allocated(deployment) else None
            ),
            "speculative_eagle_topk": deployment.speculative_eagle_topk,
            "enable_overlap_schedule": not deployment.disable_overlap_schedule,
            "start_layer": stage.start,
            "enable_linear_replayssm_spec": pool_units.replay_ring(self.rank),
            "linear_replayssm_cache_len": deployment.linear_replayssm_cache_len,
        }
        if pool_units.decode_pool(deployment):
            pool = _import("sglang.srt.disaggregation.decode").HybridMambaDecodeReqToTokenPool
            return pool(pre_alloc_size=pool_units.prealloc_requests(deployment), **common)
        pool = _import("sglang.srt.mem_cache.memory_pool").HybridReqToTokenPool
        lazy = deployment.mamba_radix_cache_strategy == "extra_buffer_lazy" and deployment.extra_buffer
        return pool(
            mamba_spec_state_size=self.sizes.running_requests,
            enable_mamba_extra_buffer_lazy=lazy,
            enable_linear_replayssm=pool_units.decode_ring(deployment),
            **common,
        )

    def _cache_arguments(self, torch: Any, requests: Any) -> dict[str, Any]:
        geometry, deployment, profile, _ = self.rank
        dtype, row = row_elements(geometry, deployment.kv_layout, profile)
        return {
            "size": self.sizes.tokens,
            "page_size": deployment.page_size,
            "dtype": torch.bfloat16 if dtype == "bfloat16" else torch.float8_e4m3fn,
            "kv_lora_rank": geometry.kv_lora_rank,
            "qk_rope_head_dim": geometry.qk_rope_head_dim,
            "device": self.device.name,
            "enable_memory_saver": False,
            "index_head_dim": geometry.index_head_dim,
            "kv_cache_dim": row,
            "index_kpool": geometry.index_kpool,
            "index_kpool_compress": geometry.index_kpool_compress,
            "tail_extra_slots": pool_units.draft_tokens(deployment),
            "max_running_requests": requests.req_to_token.shape[0],
        }

    def _token_pool(self, torch: Any, requests: Any) -> Any:
        geometry, deployment, _, stage = self.rank
        full = [layer for layer in geometry.full_attention_layers if layer in stage]
        pool = _import("sglang.srt.mem_cache.memory_pool").HybridLinearKVPool
        return pool(
            head_num=1,
            head_dim=geometry.latent_width,
            full_attention_layer_ids=full,
            mamba_pool=requests.mamba_pool,
            enable_kv_cache_copy=deployment.speculative,
            use_mla=True,
            use_dsa=True,
            skip_topk_layers=[layer not in geometry.index_layers for layer in full],
            start_layer=stage.start,
            **self._cache_arguments(torch, requests),
        )

    def _draft_pool(self, torch: Any, requests: Any) -> Any:
        pool = _import("sglang.srt.mem_cache.memory_pool").DSATokenToKVPool
        layers = pool_units.draft_layers(self.rank)
        return pool(layer_num=layers, **self._cache_arguments(torch, requests))


def _request_tensors(requests: Any) -> dict[str, list[Any]]:
    state = requests.mamba_pool.mamba_cache
    found: dict[str, list[Any]] = {
        "req_to_token": [requests.req_to_token],
        "req_generation": [requests.req_generation],
        "req_index_to_mamba_index_mapping": [requests.req_index_to_mamba_index_mapping],
        "conv_state": list(state.conv),
        "temporal_state": [state.temporal],
        "intermediate_conv_window": list(getattr(requests.mamba_pool, "_intermediate_conv_window_phys", ())),
        "mamba_allocator.free_slots": [requests.mamba_allocator.free_slots],
    }
    optional = {
        "req_index_to_mamba_ping_pong_track_buffer_mapping": requests,
        "intermediate_ssm": state,
        "replayssm_write_pos": requests.mamba_pool,
        **dict.fromkeys(("replayssm_d", "replayssm_k", "replayssm_g"), state),
        **dict.fromkeys(("replayssm_rawv", "replayssm_rawk", "replayssm_beta"), state),
    }
    for name, owner in optional.items():
        tensor = getattr(owner, name, None)
        if tensor is not None:
            found[name] = [tensor]
    return found


def _cache_tensors(prefix: str, pool: Any) -> dict[str, list[Any]]:
    found = {
        "kv_buffer": pool.kv_buffer,
        "index_k_buffer": pool.index_key_cache.buffer,
        "compress_tail_k": pool._compress_tail_k or [],
        "compress_tail_score": pool._compress_tail_score or [],
        "data_ptrs": [pool.data_ptrs],
    }
    # Layers without an indexer of their own keep an empty tensor in its place.
    return {prefix + name: [each for each in tensors if each.numel()] for name, tensors in found.items()}


def _tensors_of(pool: Any) -> Iterator[tuple[str, Any]]:
    tensor_type = import_torch().Tensor
    for name, value in vars(pool).items():
        if isinstance(value, tensor_type):
            yield name, value
        elif isinstance(value, (list, tuple)):
            yield from ((name, each) for each in value if isinstance(each, tensor_type))


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except Exception as error:  # whatever an import of the engine raises, the answer is the same line
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise MissingEngineError(
            f"--with sglang: {name} does not import here ({reason}); run this in the engine's own container, "
            "see docs/validate.md"
        ) from None
