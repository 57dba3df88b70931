"""Start-up checks that a launch skips because no flag that they ask first is turned: skipping changes no answer."""

from test_resolve import outcome, records

from glm_kvplan.engines.sglang.resolve.start_checks import CHECKS, due
from glm_kvplan.engines.sglang.resolve.start_checks.start_check import ENVIRONMENT, Check, Launch, asked_only, refuse


def made_up(refuses: object) -> frozenset[str]:
    return asked_only(Check("made_up", refuses, "", ""))  # type: ignore[arg-type]


def test_what_a_check_asks_first() -> None:
    assert made_up(lambda a: a.schedule_policy == "lof" and a.tp_size > 1) == {"schedule_policy"}
    assert made_up(lambda a: a.tp_size > 1 and a.schedule_policy == "lof") == {"tp_size"}
    assert made_up(lambda a: a.hopper and a.schedule_policy == "lof") == frozenset()
    assert made_up(lambda a: a.schedule_policy != "lof") == frozenset()  # refuses by default: never skipped
    assert made_up(lambda a: a.switch("SGLANG_USE_AITER")) == frozenset()
    assert made_up(lambda a: a.site.gpu.sm100) == frozenset()
    assert made_up(lambda a: "SGLANG_GRPC_PORT" in a.site.environment) == {ENVIRONMENT}
    both = made_up(lambda a: bool(a.enable_eplb) or a.schedule_policy == "lof")
    assert both == {"enable_eplb", "schedule_policy"}


def test_no_recorded_launch_fails_a_check_that_it_skipped() -> None:
    for record in records():
        deployment = outcome(record)
        if deployment is not None:
            assert deployment.site is not None
            made = due(deployment, deployment.site)
            assert len(made) < len(CHECKS) // 2
            refuse([check for check in CHECKS if check not in made], Launch(deployment, deployment.site))
