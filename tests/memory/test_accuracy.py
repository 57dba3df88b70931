"""Public measurements against predictions; docs/accuracy.md shows the same rows."""

import sys

import pytest
from paths import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import accuracy


@pytest.mark.parametrize("row", accuracy.rows(), ids=lambda row: f"{row.case}: {row.value}")
def test_prediction_agrees_with_the_measurement(row: accuracy.Row) -> None:
    assert row.agrees, row


def test_capped_requests_follow_from_the_printed_slots() -> None:
    printed = accuracy.load("gb10x2-tp2-capped")["printed"]
    plan = accuracy.planned(accuracy.load("gb10x2-tp2-capped"))
    assert 10 // plan.deployment.slots_per_request == printed["max_running_requests"]


def test_the_page_is_what_the_command_writes() -> None:
    assert (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8") == accuracy.document()
