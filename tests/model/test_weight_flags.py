"""What launch flags say of the weights, and how sure the estimate is."""

import glm_kvplan as kv
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.memory.given import MemoryGiven


def test_language_only_leaves_the_vision_tower_out_of_the_weights() -> None:
    """The reference table of weights: 0.31 GiB less on TP4 FP8."""

    def weights(**flags: object) -> float:
        plan = kv.plan({"tp_size": 4, **flags}, gpu="h200")
        gib = Server(plan, MemoryGiven()).budget.weights_gib
        assert gib is not None
        return gib

    assert round(weights() - weights(language_only=True), 2) == 0.31


def test_the_expert_kernels_move_the_weights() -> None:
    """The same table: SM100 with deep_gemm at TP4 EP4, 75.79 GiB."""
    plan = kv.plan({"tp_size": 4, "ep_size": 4, "moe_runner_backend": "deep_gemm"}, gpu="b200")
    gib = Server(plan, MemoryGiven()).budget.weights_gib
    assert gib is not None and round(gib, 2) == 75.79


def test_a_measured_error_of_the_weights_counts_once() -> None:
    """The reference gives one error for target and draft together, so a draft adds none of its own."""

    def error(**flags: object) -> float:
        plan = kv.plan({"tp_size": 4, **flags}, gpu="b200")
        return Server(plan, MemoryGiven()).budget.error_gib

    assert error(speculative_algorithm="EAGLE") == error()
