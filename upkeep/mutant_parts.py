"""The parts of the package that mistakes are drawn in: files and folders."""

SGLANG, VLLM = "glm_kvplan/engines/sglang", "glm_kvplan/engines/vllm"
OWN_CLASSES = (f"{SGLANG}/own_pools.py", f"{VLLM}/own_blocks.py")  # mostly run where the engine's package is: opt-in
PARTS: dict[str, tuple[str, ...]] = {
    "resolve": (f"{SGLANG}/resolve",),
    "sizing": (f"{SGLANG}/sizing",),
    "components": (f"{SGLANG}/components",),
    "boot_log": (f"{SGLANG}/boot_log",),
    "vllm": (VLLM,),
    "own_classes": OWN_CLASSES,
    "launch": ("glm_kvplan/launch", f"{SGLANG}/launch_command.py"),
    "weight_format": ("glm_kvplan/engines/weight_format.py",),
    "answers": ("glm_kvplan/answers", f"{SGLANG}/answers", f"{SGLANG}/checks", f"{SGLANG}/sizing/remedies.py"),
}
