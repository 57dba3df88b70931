"""Public measurements against predictions; docs/accuracy.md shows the same rows."""

import sys

import pytest
from paths import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import accuracy
import public_boots

from glm_kvplan.memory.before_load import ONE_GPU, OTHER, PLATFORMS, SEVERAL_GPUS
from glm_kvplan.memory.measurements import Measurement, measurements


@pytest.mark.parametrize("row", accuracy.rows(), ids=lambda row: f"{row.case}: {row.value}")
def test_prediction_agrees_with_the_measurement(row: accuracy.Row) -> None:
    assert row.agrees, row


def test_capped_requests_follow_from_the_printed_slots() -> None:
    printed = accuracy.load("gb10x2-tp2-capped")["printed"]
    plan = accuracy.planned(accuracy.load("gb10x2-tp2-capped"))
    assert 10 // plan.deployment.slots_per_request == printed["max_running_requests"]


@pytest.mark.parametrize("judged", public_boots.judged(), ids=lambda judged: judged.boot.id)
def test_the_stated_interval_covers_every_public_boot(judged: public_boots.Judged) -> None:
    """From flags alone: at least 19 of 20 on each platform group, and no group has twenty."""
    assert judged.inside, judged


def test_fitted_without_its_server_a_boot_is_inside_nineteen_times_in_twenty() -> None:
    found = [judged for judged in public_boots.left_out() if judged is not None]
    assert len(found) == len(measurements()) - 1  # of ROCm one server tells what it takes before the load
    assert sum(judged.inside for judged in found) >= 0.95 * len(found)


def test_what_is_stated_is_what_the_boots_say() -> None:
    """Rounded to a tenth; a platform with two servers has a figure of its own, and every one else its vendor's."""
    fitted = public_boots.fit(measurements())
    stated = {
        (name, one): each for one, table in ((False, SEVERAL_GPUS), (True, ONE_GPU)) for name, each in table.items()
    }
    assert set(stated) == set(fitted)
    for key, (gib, error) in fitted.items():
        assert (stated[key].gib, stated[key].error_gib) == pytest.approx((gib, error), abs=0.051), key
    servers = public_boots.servers(measurements())
    assert {key for key in fitted if key[0] in PLATFORMS.values()} == {
        key for key, each in servers.items() if len(each) > 1 and key[0] != "ROCm"
    }
    assert stated[OTHER, False].error_gib > stated["SM100", False].error_gib  # fewer measurements: wider


@pytest.mark.parametrize("boot", measurements(), ids=lambda boot: boot.id)
def test_a_measurement_says_where_it_is_from_and_what_it_printed(boot: Measurement) -> None:
    assert boot.source
    assert boot.sized or boot.pre_gib is not None
    assert boot.tokens is None or boot.tokens_step > 1 or boot.tokens % 64 == 0
    assert public_boots.group(boot) in SEVERAL_GPUS or public_boots.group(boot) == "Ampere"


def test_the_page_is_what_the_command_writes() -> None:
    assert (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8") == accuracy.document()
