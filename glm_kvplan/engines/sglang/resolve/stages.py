"""Pipeline stages: the scheduler they run with, the layers each holds, and speculation over them."""

from glm_kvplan.engines.sglang.pipeline import pipeline_stages
from glm_kvplan.engines.sglang.resolve.arguments import Arguments, Reason, Site, switched_on
from glm_kvplan.errors import InputError, RefusedError

_NO_OVERLAP = Reason(
    "pipeline parallelism runs without the overlap scheduler", "arg_groups/overrides.py:1624-1628 at 0.5.23"
)


def pipeline_overlap(a: Arguments, site: Site) -> None:
    """Pipeline stages switch the overlap scheduler off, after the state strategy was chosen."""
    if a.pp_size > 1 and not a.disable_overlap_schedule:
        a.disable_overlap_schedule = True
        a.because["disable_overlap_schedule"] = _NO_OVERLAP


def check_stages(a: Arguments, site: Site) -> None:
    """The layers of each stage, and speculation over stages. Raises InputError, RefusedError."""
    if a.pp_size == 1:
        return
    layers = site.geometry.num_hidden_layers
    if a.pp_size > layers:
        raise InputError(f"--pp-size {a.pp_size}: the model has {layers} layers")
    text = site.environment.get("SGLANG_PP_LAYER_PARTITION")
    if text is not None:
        try:
            a.pipeline_partition = tuple(int(layer) for layer in text.split(","))
        except ValueError:
            raise InputError(f"SGLANG_PP_LAYER_PARTITION={text!r}: write layer counts such as 23,22") from None
        if min(a.pipeline_partition) < 0:
            raise InputError(f"SGLANG_PP_LAYER_PARTITION={text!r}: a stage cannot hold fewer than 0 layers")
        pipeline_stages(layers, a.pp_size, a.pipeline_partition)
    if a.speculative_algorithm is not None:
        _speculation(a, site, switched_on(site.environment, "SGLANG_ENABLE_PP_SPEC"))


def _speculation(a: Arguments, site: Site, everywhere: bool) -> None:
    source = "arg_groups/validation_hook.py:119-171 at 0.5.23"
    if not site.profile.pipeline_speculation:
        raise RefusedError(
            f"--pp-size with speculation: this release refuses it; {site.profile.otherwise(pipeline_speculation=True)}",
            "arg_groups/validation_hook.py:82 at 0.5.20",
        )
    prefill = a.disaggregation_mode == "prefill"
    if a.speculative_algorithm == "DSPARK":
        if everywhere or not prefill:
            raise RefusedError("--pp-size with DSPARK: on a PD prefill server only", source)
    elif a.speculative_algorithm != "EAGLE" or a.enable_multi_layer_eagle:
        raise RefusedError(f"--pp-size with {a.speculative_algorithm}: EAGLE (or NEXTN) only", source)
    elif everywhere:
        if a.disaggregation_mode != "null" or a.speculative_adaptive or a.enable_dp_attention:
            raise RefusedError(
                "SGLANG_ENABLE_PP_SPEC: without PD roles, adaptive speculation and attention DP only", source
            )
    elif not prefill:
        raise RefusedError(
            "--pp-size with speculation: on a PD prefill server only, or with SGLANG_ENABLE_PP_SPEC=1", source
        )
