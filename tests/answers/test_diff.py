"""`kvplan diff`: what changes between two deployments, engines and GPUs."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import running
from paths import ROOT

from glm_kvplan.answers.diff.sides import Asked, sides_of
from glm_kvplan.answers.diff.starts import KINDS, Side, alike, start_changes
from glm_kvplan.contexts import contexts, parse_contexts
from glm_kvplan.engines.measures import SHARED
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.sizing.served_requests import served
from glm_kvplan.engines.sglang.sizing.start import boot
from glm_kvplan.engines.vllm.starting import begin
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.workload import Demand

EXAMPLES = ROOT / "examples"
B200 = str(EXAMPLES / "b200-tp4-mtp.kvplan.yaml")
SLOTS, FRACTION = (str(EXAMPLES / f"b200-tp4-mtp{name}.kvplan.yaml") for name in ("4-slots700", "6-frac80"))


def kvplan(*arguments: str) -> subprocess.CompletedProcess[str]:
    return running.kvplan("diff", *arguments)


def side_of(path: str, engine: str | None = None) -> Side:
    """One side alone."""
    asked = Asked(path, engine)
    return sides_of(asked, asked)[0]


def test_two_engines_differ_as_their_own_sizing_does() -> None:
    """SGLang 0.5.21 and 0.5.22 on the same B200 memory: tokens, slots, pages, fraction and bytes of a token."""
    found = start_changes(side_of(B200, "0.5.21"), side_of(B200, "0.5.22"))
    values = {change.name: (change.before, change.after) for change in found}
    assert values["max_total_num_tokens"] == (8_563_520, 9_932_544)
    assert values["max_mamba_cache_size"] == (706, 695)
    assert values["page_size"] == (64, 256)
    assert values["mem_fraction_static"] == pytest.approx((0.81225, 0.8037), abs=1e-12)
    assert values["indexer, bytes per token"] == (11 * 132, 11 * 33)
    assert "max_running_requests" not in values
    assert values["latent KV"] == (11 * 8_563_520 * 512, 11 * 9_932_544 * 512)


def test_changes_come_by_bytes_then_by_kind() -> None:
    found = start_changes(side_of(SLOTS), side_of(FRACTION))
    sizes = [abs(change.nbytes) for change in found]
    assert sizes == sorted(sizes, reverse=True)
    rest = [KINDS.index(change.kind) for change in found if not change.nbytes]
    assert rest == sorted(rest)
    pools = [change for change in found if change.kind == "pool"]
    assert sum(change.nbytes for change in pools) == 0  # what a pool takes, another or the free part gives
    assert {"speculative_num_draft_tokens", "mem_fraction_static"} <= {change.name for change in found}


def test_the_same_twice_differs_in_nothing_and_back_is_the_opposite() -> None:
    assert start_changes(side_of(SLOTS), side_of(SLOTS)) == ()
    there = {c.name: (c.before, c.after, c.nbytes) for c in start_changes(side_of(SLOTS), side_of(FRACTION))}
    back = {c.name: (c.after, c.before, -c.nbytes) for c in start_changes(side_of(FRACTION), side_of(SLOTS))}
    assert there == back


def test_a_side_that_does_not_start_says_why(tmp_path: Path) -> None:
    text = Path(B200).read_text(encoding="utf-8")
    short = tmp_path / "short.yaml"
    short.write_text(text.replace("available_gib: 126.0", "available_gib: 30.0"), encoding="utf-8")
    found = {change.name: change for change in start_changes(side_of(B200), side_of(str(short)))}
    assert found["start"].before == "starts"
    assert "mem_fraction_static" in str(found["start"].after)
    assert found["max_total_num_tokens"].after == 0
    assert not [change for change in found.values() if change.kind == "pool"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((B200, "--engine", "0.5.21", "--engine", "0.5.22"), "max_total_num_tokens"),
        ((B200, "--gpu", "b200", "--gpu", "b300"), "B300"),
        ((SLOTS, FRACTION, "--engine", "0.5.23"), "0.5.23"),
        ((B200, B200), "nothing that touches memory changes"),
    ],
)
def test_the_command(arguments: tuple[str, ...], says: str) -> None:
    done = kvplan(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert says in done.stdout


def test_the_command_as_json() -> None:
    document = json.loads(kvplan(SLOTS, FRACTION, "--json").stdout)
    assert (document["schema"], document["schema_version"]) == ("glm-kvplan/diff", 2)
    assert document["a"]["label"] == SLOTS and document["b"]["engine"] == "0.5.20"
    assert {change["kind"] for change in document["changes"]} == set(KINDS)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((B200,), "name a second one"),
        ((B200, SLOTS, FRACTION), "compares two"),
        ((B200, "--engine", "a", "--engine", "b", "--engine", "c"), "3 times"),
        ((B200, "gone.yaml"), "gone.yaml: cannot be read"),
        ((B200, "--engine", "0.5.21", "--engine", "0.1"), "no profile"),
        ((B200, SLOTS, "--", "python"), "launch: ..."),
    ],
)
def test_bad_use_is_one_line_and_exit_code_2(arguments: tuple[str, ...], says: str) -> None:
    done = kvplan(*arguments)
    assert done.returncode == 2
    assert says in done.stderr and done.stderr.count("\n") == 1


def side_at(flags: dict[str, object], engine: str | None, context: int) -> Side:
    made = plan(flags, gpu="h200", engine=engine)
    return Side(engine or "", made, made.started(MemoryGiven(138.5, 84.0), context))


def test_two_engines_differ_in_what_both_have() -> None:
    """The measures under shared names, of the same requests, and what ends them: neither's flags, limits or memory."""
    a = side_at({"tp_size": 4}, None, 32768)
    b = side_at({"tensor_parallel_size": 4}, "vllm-0.33.0", 32768)
    found = start_changes(a, b)
    assert {change.kind for change in found} <= {"served", "size", "limit"}
    assert {change.name for change in found} <= {*SHARED, "start", "requests bound by"}
    values = {change.name: (change.before, change.after) for change in found}
    assert "gpus" not in values  # four either way
    sizes = boot(a.plan, MemoryGiven(138.5, 84.0)).solution.sizes
    begun = begin(b.plan, MemoryGiven(138.5, 84.0)).start
    held = served(Demand(contexts([(32768, 1)]), 1 << 40), a.plan.deployment, sizes).requests
    assert values["requests_at_context"] == (held, begun.requests(32768))
    assert values["fixed_bytes"][1] == begun.blocks.fixed * begun.blocks.nbytes
    assert b.start.measure("longest_context") == begun.longest_context


@pytest.mark.parametrize(("engine", "flags"), [(None, {"tp_size": 4}), ("vllm", {"tensor_parallel_size": 4})])
def test_every_engine_gives_the_shared_measures_whether_it_starts_or_not(
    engine: str | None, flags: dict[str, object]
) -> None:
    made = plan(flags, gpu="h200", engine=engine)
    for memory in (MemoryGiven(138.5, 84.0), MemoryGiven(138.5, 0.01 if engine else 22.0)):
        start = made.started(memory, 8192, mix=parse_contexts("0.8:4k,0.2:8k"))
        assert set(SHARED) <= {measure.name for measure in start.measures}
        for name in ("requests_at_context", "requests_of_mix"):
            assert (start.measure(name) == 0) == (start.failure is not None)
        assert start.measure("gpus") == 4


def test_the_command_compares_two_engines(tmp_path: Path) -> None:
    other = tmp_path / "vllm.kvplan.yaml"
    other.write_text("launch: vllm serve zai-org/GLM-5.3-Flash -tp 4\ngpu: b200\nmemory: {available_gib: 84}\n")
    done = kvplan(B200, str(other))
    assert (done.returncode, done.stderr) == (0, "")
    assert "vLLM 0.33.0" in done.stdout and "requests at once" in done.stdout and "two engines" in done.stdout
    document = json.loads(kvplan(B200, str(other), "--json").stdout)
    assert document["same_engine"] is False
    assert {change["name"] for change in document["changes"]} <= {*SHARED, "start", "requests bound by"}


def test_what_is_alike_is_counted() -> None:
    """What is alike and what differs are all measures and flags there are."""
    a, b = side_of(B200, "0.5.21"), side_of(B200, "0.5.22")
    numbers, flags = alike(a, b)
    found = [change.kind for change in start_changes(a, b)]
    assert numbers + found.count("served") + found.count("size") == len(a.start.measures)
    assert flags + found.count("flag") == len({choice.flag for side in (a, b) for choice in side.plan.choices})
    assert alike(a, a) == (len(a.start.measures), len(a.plan.choices))
    assert f"the same on both: {numbers} numbers, {flags} resolved flags" in " ".join(
        kvplan(B200, "--engine", "0.5.21", "--engine", "0.5.22").stdout.split()
    )


def test_what_ends_the_requests_of_two_engines() -> None:
    """SGLang's pool of tokens, vLLM's of blocks: as solve says of each."""
    files = [str(EXAMPLES / "two-engines" / f"{engine}-h200-tp4.yaml") for engine in ("sglang", "vllm")]
    document = json.loads(kvplan(*files, "--json").stdout)
    (limit,) = [change for change in document["changes"] if change["kind"] == "limit"]
    assert (limit["name"], limit["before"], limit["after"]) == ("requests bound by", "tokens", "blocks")


@pytest.mark.parametrize("columns", ["80", "100"])
def test_reasons_are_readable_beside_long_values(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = kvplan(str(EXAMPLES / "vllm-h200-tp4-mtp3.kvplan.yaml"), "--gpu", "h200", "--gpu", "b200").stdout
    assert re.search(r"the first that reads auto\b.*", lines)  # no word a line
