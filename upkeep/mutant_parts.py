"""The parts of the package that mistakes are drawn in, and the test files that judge each."""

SGLANG, VLLM = "glm_kvplan/engines/sglang", "glm_kvplan/engines/vllm"


def _named(folder: str, names: str) -> tuple[str, ...]:
    return tuple(f"tests/{folder}/test_{name}.py" for name in names.split())


_RESOLVE = _named(
    "engines/sglang",
    "easily_missed start_checks start_records resolve_rules deployment start "
    "skipped_checks draft_model resolve launch_oracle",
) + _named("project", "refusals_doc")
_SIZES = _named(
    "engines/sglang",
    "ledgers locations costs prices limits components pools split article sizing_edges sizing easily_missed "
    "workload host host_edges host_fit layouts fleets attribution memory_map memory_parts serving_headroom "
    "stray_and_rings remedies launch_oracle draft_model start promises needs",
) + _named("memory", "calibration")
# name: (files and folders, test files that run in one process)
PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "resolve": ((f"{SGLANG}/resolve",), _RESOLVE),
    "sizing": ((f"{SGLANG}/sizing",), _SIZES),
    "components": ((f"{SGLANG}/components", f"{SGLANG}/own_pools.py"), _SIZES),
    "boot_log": (
        (f"{SGLANG}/boot_log",),
        _named(
            "engines/sglang",
            "easily_missed likely_card log_launch bootlog reconcile reconcile_layouts bootlog_files server_info "
            "reconcile_oracle draft_model",
        )
        + _named("cli", "reconcile_command")
        + _named("memory", "calibration")
        + _named("reading", "wrapped_logs logs_of_several_servers log_corpus exchange"),
    ),
    "vllm": (
        (VLLM,),
        _named(
            "engines/vllm",
            "vllm_flags vllm_memory vllm_log vllm_requests vllm_solve vllm_refusals vllm_plans vllm_public "
            "vllm_random vllm_pools vllm_estimate vllm_explain vllm_reconcile vllm_command vllm_advice",
        )
        + _named("answers", "sweep_engines"),
    ),
    "launch": (
        ("glm_kvplan/launch", f"{SGLANG}/launch_command.py"),
        _named(
            "launch",
            "shell bash_itself bash_constructs command command_refused command_rules launch_file branches "
            "launch_corpus check_manifest other_forms",
        )
        + _named("engines/sglang", "log_launch"),
    ),
    "weight_format": (
        ("glm_kvplan/engines/weight_format.py",),
        _named("engines/sglang", "weight_format") + _RESOLVE + _named("model", "weights model weight_flags"),
    ),
    "answers": (
        ("glm_kvplan/answers", f"{SGLANG}/answers", f"{SGLANG}/checks", f"{SGLANG}/sizing/remedies.py"),
        _named("answers", "check check_file diff sweep_axes sweep sweep_where sweep_frontier")
        + _named("engines/sglang", "remedies needs explain host easily_missed advice"),
    ),
}
