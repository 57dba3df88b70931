"""HiCache: the host pools' ratio, layout and transfer kernel."""

from glm_kvplan.engines.sglang.resolve.arguments import Arguments, Reason, Site
from glm_kvplan.errors import RefusedError

_RATIO = Reason("the engine's default", "arg_groups/hicache_hook.py:100-126 at 0.5.23")
_RATIO_AUTO = Reason(
    "the engine's default, lowered at start-up until the host pools fit", "arg_groups/hicache_hook.py:100-126 at 0.5.23"
)
_RATIO_BUFFER = Reason(
    "host memory is only a buffer in front of storage", "arg_groups/hicache_hook.py:100-126 at 0.5.23"
)
_NO_FRACTION = Reason("an explicit ratio or size is taken as given", "arg_groups/hicache_hook.py:123-124 at 0.5.23")
_DIRECT = Reason("page_first_direct moves with direct copies", "arg_groups/hicache_hook.py:171-185 at 0.5.23")
_PAGE_FIRST_DIRECT = Reason("direct copies need page_first_direct", "arg_groups/hicache_hook.py:186-195 at 0.5.23")
_STORAGE = Reason(
    "{a.hicache_storage_backend} does not store layer_first", "arg_groups/hicache_hook.py:197-245 at 0.5.23"
)


def ratio(a: Arguments, site: Site) -> None:
    """The default ratio and whether it is lowered to what host memory holds.

    A decode server leaves the ratio open here. Source: arg_groups/hicache_hook.py:97-126 at 0.5.23.
    """
    automatic = site.profile.hicache_automatic_ratio
    if not automatic or a.hicache_ratio is not None or a.hicache_size > 0:
        a.hicache_host_memory_fraction = None
        if automatic:
            a.because["hicache_host_memory_fraction"] = _NO_FRACTION
    if a.hicache_ratio is None and a.disaggregation_mode != "decode":
        buffers = a.hicache_host_memory_mode == "buffer_only"
        a.hicache_ratio = 1.2 if buffers else 2.0
        lowered = a.hicache_host_memory_fraction is not None
        a.because["hicache_ratio"] = _RATIO_BUFFER if buffers else _RATIO_AUTO if lowered else _RATIO


def layout(a: Arguments, site: Site) -> None:
    """The host layout and transfer kernel, made to fit each other.

    Source: arg_groups/hicache_hook.py:18-297 at 0.5.23.
    """
    retracts = a.disaggregation_mode == "decode" and a.disaggregation_decode_retraction_backup in (None, "host_pool")
    if not (a.enable_hierarchical_cache or retracts):
        if a.hicache_size > 0:
            a.warnings.append("--hicache-size builds no host pool without --enable-hierarchical-cache")
        return
    if a.hicache_host_memory_mode == "buffer_only":
        _check_buffer(a, site)
    if a.hicache_mem_layout == "page_first_direct" and a.hicache_io_backend == "kernel":
        a.hicache_io_backend = "direct"
        a.because["hicache_io_backend"] = _DIRECT
    if a.hicache_mem_layout == "page_first" and a.hicache_io_backend == "direct":
        a.hicache_mem_layout = "page_first_direct"
        a.because["hicache_mem_layout"] = _PAGE_FIRST_DIRECT
    stores_pages = a.hicache_storage_backend in ("mooncake", "npu_memcache")
    if stores_pages and a.hicache_mem_layout == "layer_first" and a.hicache_io_backend != "kernel_ascend":
        a.hicache_mem_layout = "page_first_direct" if a.hicache_io_backend == "direct" else "page_first"
        a.because["hicache_mem_layout"] = _STORAGE


def _check_buffer(a: Arguments, site: Site) -> None:
    mode = "--hicache-host-memory-mode buffer_only"
    if a.hicache_storage_backend is None:
        raise RefusedError(
            f"{mode} needs --hicache-storage-backend: host memory is a buffer before it",
            "arg_groups/hicache_hook.py:273 at 0.5.23",
        )
    if a.hicache_write_policy == "write_back" and not site.profile.hicache_buffer_write_back:
        raise RefusedError(
            f"{mode} has no host tier to write back to; use write_through", "arg_groups/hicache_hook.py:238 at 0.5.21"
        )
    if a.disaggregation_mode == "decode":
        raise RefusedError(f"{mode} does not run on a PD decode server", "arg_groups/hicache_hook.py:290 at 0.5.23")


def check_radix(a: Arguments, site: Site) -> None:
    """A host cache extends the prefix cache: it cannot run without one (arg_groups/kv_cache_hook.py:394 at 0.5.23)."""
    if a.enable_hierarchical_cache and a.disable_radix_cache:
        cause = "a PD decode server has none" if a.disaggregation_mode == "decode" else "--disable-radix-cache"
        raise RefusedError(
            f"--enable-hierarchical-cache needs the prefix cache ({cause})", "arg_groups/kv_cache_hook.py:394 at 0.5.23"
        )
