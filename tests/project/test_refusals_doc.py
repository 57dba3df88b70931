"""docs/refusals.md lists every start-up check, with the releases that make it and where the engine does."""

import re

from paths import ROOT

from glm_kvplan.engines.sglang.profile import load_profile, releases
from glm_kvplan.engines.sglang.resolve.start_checks import CHECKS

ROW = re.compile(r"\| `(\w+)` \| ([^|]+) \| [^|]+ \| ([^|]+) \|")


def test_every_start_up_check_is_listed() -> None:
    text = (ROOT / "docs" / "refusals.md").read_text(encoding="utf-8")
    listed = {name: (made.strip(), source.strip()) for name, made, source in ROW.findall(text)}
    expected = {}
    for check in CHECKS:
        made = [release for release in releases() if check.name not in load_profile(release).absent_checks.split()]
        expected[check.name] = ("all" if len(made) == len(releases()) else ", ".join(made), check.source)
    assert listed == expected


def test_every_function_says_whether_it_is_modelled() -> None:
    text = (ROOT / "docs" / "refusals.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if re.match(r"\| `\w+\.", line)]
    assert len(rows) > 100
    for row in rows:
        assert re.search(r"\| (yes|no|in part|not yet)[:,]", row), row
