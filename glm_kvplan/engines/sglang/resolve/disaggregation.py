"""PD disaggregation: what a prefill-only or decode-only server changes."""

from glm_kvplan.engines.sglang.resolve.arguments import Arguments, Reason, Site
from glm_kvplan.errors import RefusedError

_NO_RADIX = Reason(
    "a PD decode server keeps no prefix cache unless told to", "arg_groups/pd_disaggregation_hook.py:119-126 at 0.5.23"
)
_RADIX = Reason("--disaggregation-decode-enable-radix-cache", "arg_groups/pd_disaggregation_hook.py:112-118 at 0.5.23")
_TWICE = Reason(
    "twice the {a.max_running_requests} requests' share of each worker, which is 32 or less",
    "arg_groups/pd_disaggregation_hook.py:132-143 at 0.5.23",
)
_NONE = Reason(
    "none: no --max-running-requests, or more than 32 a worker",
    "arg_groups/pd_disaggregation_hook.py:132-143 at 0.5.23",
)


def role(a: Arguments, site: Site) -> None:
    """The prefix cache and the spare request rows of a decode server, and what a role switch excludes.

    Source: arg_groups/pd_disaggregation_hook.py:91-196 at 0.5.23. Only a user's max_running_requests is seen here.
    """
    if a.disaggregation_mode == "null":
        return
    fake = a.disaggregation_transfer_backend == "fake"
    if a.disaggregation_mode == "prefill":
        if fake:
            raise RefusedError(
                "a PD prefill server does not take the fake transfer backend",
                "arg_groups/pd_disaggregation_hook.py:146 at 0.5.23",
            )
    elif a.disaggregation_decode_enable_radix_cache:
        if fake:
            raise RefusedError(
                "--disaggregation-decode-enable-radix-cache: not with the fake transfer backend",
                "arg_groups/pd_disaggregation_hook.py:100-109 at 0.5.23",
            )
        a.disable_radix_cache = False
        a.because["disable_radix_cache"] = _RADIX
    else:
        a.disable_radix_cache = True
        a.because["disable_radix_cache"] = _NO_RADIX
    if a.disaggregation_mode == "decode" and a.disaggregation_decode_extra_slots is None:
        a.disaggregation_decode_extra_slots = _extra_slots(a, site)
        a.because["disaggregation_decode_extra_slots"] = _TWICE if a.disaggregation_decode_extra_slots else _NONE
    if a.enable_pd_role_switch:
        _check_role_switch(a, site)


def _extra_slots(a: Arguments, site: Site) -> int:
    if a.max_running_requests is None:
        return 0
    worker = a.max_running_requests // (a.replicas * a.attn_dp_size)
    worker = max(site.profile.least_requests_per_worker, worker)
    return 2 * worker if worker <= 32 else 0


def _check_role_switch(a: Arguments, site: Site) -> None:
    data_parallel = not site.profile.role_switch_with_data_parallel and a.attn_dp_size * a.replicas > 1
    experts = a.ep_size > 1 or a.moe_a2a_backend != "none"
    if data_parallel or experts or a.pp_size > 1 or a.dcp_size > 1 or a.speculative_algorithm is not None:
        raise RefusedError(
            "--enable-pd-role-switch: not with data, expert, pipeline or decode-context parallelism or speculation",
            "arg_groups/pd_disaggregation_hook.py:164-196 at 0.5.23",
        )


def check_retraction(a: Arguments, site: Site) -> None:
    """A host pool for retracted requests exists on decode servers only, and there not for models with state."""
    if a.disaggregation_decode_retraction_backup == "host_pool":
        raise RefusedError(
            "--disaggregation-decode-retraction-backup host_pool is for PD decode servers, and does not support models "
            "with KDA state; use cpu_tensor",
            "arg_groups/kv_cache_hook.py:351-359, mem_cache/registry.py:156-158 at 0.5.23",
        )
