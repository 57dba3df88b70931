"""CUDA graphs: which phases capture, and up to which batch; the memory fraction reserves by them."""

from collections.abc import Mapping
from typing import Any

from glm_kvplan.engines.sglang.resolve.arguments import Arguments, Reason, Site
from glm_kvplan.errors import InputError, RefusedError

_DECODE = Reason("the engine's default", "arg_groups/cuda_graph_hook.py:32-102 at 0.5.23")
_GIVEN = Reason("given", "arg_groups/cuda_graph_hook.py:32-102 at 0.5.23")
_ON = Reason("on by default for this model on CUDA", "arg_groups/cuda_graph_hook.py:179-192 at 0.5.23")
_OFF_KDA = Reason("off by default for models with KDA layers", "arg_groups/cuda_graph_hook.py:179-188 at 0.5.23")
_OFF_PLATFORM = Reason("off by default outside CUDA", "model_executor/cuda_graph_config.py:119-123 at 0.5.23")
_OFF_PIPELINE = Reason(
    "pipeline stages capture no prefill by default", "arg_groups/cuda_graph_hook.py:144-158 at 0.5.23"
)
_OFF_CONTEXT = Reason(
    "context parallelism captures no prefill by default", "arg_groups/cuda_graph_hook.py:204-209 at 0.5.23"
)
_OFF_OTHER = Reason(
    "decode CP, two-batch overlap and other expert exchanges capture no prefill by default",
    "arg_groups/cuda_graph_hook.py:210-232 at 0.5.23",
)
_OFF_PREFILL_CP = Reason("prefill CP captures no prefill", "arg_groups/model_hook.py:316-325 at 0.5.23")
_ON_PREFILL_CP = Reason(
    "prefill CP over the whole TP group captures", "arg_groups/cuda_graph_hook.py:104-135 at 0.5.23"
)
_DECODE_ROLE = Reason("a PD decode server runs no prefill", "arg_groups/cuda_graph_hook.py:568-577 at 0.5.23")
_PREFILL_ROLE = Reason("a PD prefill server runs no decode", "arg_groups/cuda_graph_hook.py:557-567 at 0.5.23")
_GRAPHED_EXCHANGES = ("none", "deepep", "megamoe", "flashinfer")
_BACKENDS = ("full", "breakable", "tc_piecewise", "disabled")
_CONFIG_KEYS = ("backend", "max_bs", "bs")


def graph_backends(a: Arguments, site: Site) -> None:
    """Whether decode and prefill capture graphs, and the batches the user chose for them.

    Source: arg_groups/cuda_graph_hook.py:32-278 at 0.5.23. Precedence, lowest first: the off
    switches, --cuda-graph-backend-*, --cuda-graph-config.
    """
    decode, prefill = _phase(a, "decode"), _phase(a, "prefill")
    a.decode_graph = decode.get("backend", "full")
    a.because["decode_graph"] = _GIVEN if "backend" in decode else _DECODE
    a.decode_graph_max_bs = _largest(decode) or 0
    a.prefill_graph_max_bs = prefill.get("max_bs")
    a.prefill_graph_max_bs_chosen = "max_bs" in prefill
    a.prefill_graph_bs_chosen = "bs" in prefill
    a.prefill_graph_chosen = "backend" in prefill
    if a.prefill_graph_chosen:
        a.prefill_graph, why = prefill["backend"], _GIVEN
    else:
        a.prefill_graph, why = _default_prefill(a, site)
    a.because["prefill_graph"] = why
    if "tc_piecewise" in (a.decode_graph, a.prefill_graph) and not site.profile.piecewise_graphs:
        raise RefusedError(
            "tc_piecewise CUDA graphs were removed; use breakable, full or disabled",
            "model_executor/cuda_graph_config.py:185 at 0.5.23",
        )
    if a.disaggregation_mode == "prefill" and "backend" not in decode:
        a.decode_graph = "disabled"
        a.because["decode_graph"] = _PREFILL_ROLE
    elif a.disaggregation_mode == "decode" and not a.prefill_graph_chosen:
        a.prefill_graph = "disabled"
        a.because["prefill_graph"] = _DECODE_ROLE


def _phase(a: Arguments, phase: str) -> dict[str, Any]:
    """The settings the user chose for one phase: `backend`, `max_bs` and `bs`, each only where given."""
    prefill = phase == "prefill"
    chosen: dict[str, Any] = {}
    if a.disable_cuda_graph or (a.disable_prefill_cuda_graph if prefill else a.disable_decode_cuda_graph):
        chosen["backend"] = "disabled"
    if prefill:
        backend, largest, sizes = a.cuda_graph_backend_prefill, a.cuda_graph_max_bs_prefill, a.cuda_graph_bs_prefill
    else:
        backend, largest, sizes = a.cuda_graph_backend_decode, a.cuda_graph_max_bs_decode, a.cuda_graph_bs_decode
    if backend is not None:
        chosen["backend"] = backend
    if largest is not None:
        chosen["max_bs"] = largest
    if sizes is not None:
        chosen["bs"] = sizes
    if a.cuda_graph_config is not None:
        chosen.update(_configured(a.cuda_graph_config, phase))
    return chosen


def _configured(config: Mapping[str, Any], phase: str) -> dict[str, Any]:
    settings = config.get(phase, {})
    if not isinstance(settings, Mapping):
        raise InputError(f'--cuda-graph-config: {phase!r} must be an object such as {{"max_bs": 256}}')
    chosen = {key: settings[key] for key in _CONFIG_KEYS if settings.get(key) is not None}
    if chosen.get("backend", "full") not in _BACKENDS:
        raise InputError(f"--cuda-graph-config: {phase}.backend is one of {', '.join(_BACKENDS)}")
    sizes = [*chosen.get("bs", ())] if isinstance(chosen.get("bs", ()), list | tuple) else [None]
    if phase == "decode" and "bs" in chosen and not sizes:  # of prefill it is a server that captures none, later
        raise InputError("--cuda-graph-config: decode.bs is empty, and the engine takes its largest")
    if "max_bs" in chosen:
        sizes.append(chosen["max_bs"])
    if not all(type(size) is int and 0 < size <= 1 << 32 for size in sizes):
        raise InputError(f"--cuda-graph-config: {phase}.bs and {phase}.max_bs are whole numbers above 0")
    return chosen


def _largest(phase: Mapping[str, Any]) -> int | None:
    """The largest captured batch the user chose; an explicit list wins over a maximum."""
    sizes = phase.get("bs")
    return max(sizes) if sizes else phase.get("max_bs")


def _default_prefill(a: Arguments, site: Site) -> tuple[str, Reason]:
    """The prefill graph where the user chose none: breakable, unless one of the engine's rules switches it off."""
    if site.gpu.vendor != "cuda":
        return "disabled", _OFF_PLATFORM
    if not site.profile.prefill_graph_default:
        return "disabled", _OFF_KDA
    if a.pp_size > 1:
        return "disabled", _OFF_PIPELINE
    if a.attn_cp_size > 1:
        return "disabled", _OFF_CONTEXT
    if a.dcp_size > 1 or a.enable_two_batch_overlap or a.moe_a2a_backend not in _GRAPHED_EXCHANGES:
        return "disabled", _OFF_OTHER
    return "breakable", _ON


def context_parallel_graph(a: Arguments, site: Site) -> None:
    """Prefill CP switches the prefill graph off, after the memory fraction has already reserved for it.

    Source: arg_groups/model_hook.py:316-325 at 0.5.23; where the release can capture it, only an unsupported one.
    """
    if not a.enable_prefill_cp:
        return
    if a.prefill_graph == "breakable" and _captures_context_parallel(a, site):
        return
    a.prefill_graph = "disabled"
    a.because["prefill_graph"] = _OFF_PREFILL_CP


def context_parallel_graph_default(a: Arguments, site: Site) -> None:
    """Newer releases switch the graph on again for a prefill CP they can capture.

    Source: arg_groups/cuda_graph_hook.py:104-133 at 0.5.23.
    """
    if not a.enable_prefill_cp or a.prefill_graph_chosen or not _captures_context_parallel(a, site):
        return
    if a.dcp_size > 1 or a.enable_two_batch_overlap or a.moe_a2a_backend not in _GRAPHED_EXCHANGES:
        return
    a.prefill_graph = "breakable"
    a.because["prefill_graph"] = _ON_PREFILL_CP


def _captures_context_parallel(a: Arguments, site: Site) -> bool:
    return (
        site.profile.context_parallel_prefill_graph
        and a.pp_size == a.dp_size == a.ep_size == 1
        and a.attn_cp_size == a.tp_size > 1
        and a.cp_strategy == "interleave"
        and a.attention_backend == "dsa"
    )
