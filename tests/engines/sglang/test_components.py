"""The list of components: each says everything of itself, nobody else does, and one more shows up everywhere."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hand_counted import one_rank
from paths import ROOT
from sources import parsed

from glm_kvplan.cli import main
from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.sglang import components
from glm_kvplan.engines.sglang.boot_log.lines import SHAPES
from glm_kvplan.engines.sglang.components import COMPONENTS, draft_model, locations, rank_ledgers, tensor_specs
from glm_kvplan.engines.sglang.components.component import STATE_POOL, Component, Part, SegmentKind
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.components.pool_units import request_rows
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.model.draft import draft_from_config
from glm_kvplan.tensor import TensorSpec

SIZES = PoolSizes(64_000, 50, 10)
DRAFTS: dict[str, Any] = {
    "tp_size": 4, "linear_attn_tp_size": 4, "speculative_algorithm": "EAGLE", "speculative_num_draft_tokens": 4,
    "max_draft_tokens": 4, "max_running_requests": 10, "enable_hierarchical_cache": True,
}  # fmt: skip
RANKS = [
    one_rank(Deployment(**DRAFTS, enable_linear_replayssm_spec=replay), load_profile(release))
    for replay in (False, True)
    for release in ("0.5.21", "0.5.23")
]
OWN_DRAFT = draft_from_config(
    {
        **{"num_hidden_layers": 5, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096},
        **{"vocab_size": 154880, "max_position_embeddings": 1048576},
    }
)
RANKS.append(
    one_rank(
        Deployment(
            **{**DRAFTS, "speculative_algorithm": "DFLASH", "speculative_draft_model_path": "/draft"},
            **{"draft_model": OWN_DRAFT, "draft_kv_dtype": "uint8", "speculative_draft_window_size": 4096},
        ),
        load_profile("0.5.21"),
    )
)


# -- what a component says of itself -----------------------------------------------------------------------------------


def test_everything_a_component_makes_bears_its_name() -> None:
    assert len({component.name for component in COMPONENTS}) == len(COMPONENTS)
    for rank in RANKS:
        for component in COMPONENTS:
            assert component.title and component.segment.name and component.segment.note
            assert {spec.component for spec in component.tensors(rank, SIZES)} <= {component.name}
            assert {place.component for place in component.locations(rank)} <= {component.name}
            ledger = component.ledger(rank, SIZES)
            if ledger is not None:
                said = component.name, component.title, component.unit, component.charge is not None
                assert (*ledger.account[:3], ledger.account.charged) == said
            if component.unit in ("state slot", "request row"):
                price = 0 if component.price is None else component.price(rank)
                assert price == (0 if ledger is None else ledger.bytes_per_unit)
        names = [spec.name for spec in tensor_specs(rank, SIZES)]
        assert len(set(names)) == len(names)


def test_every_large_tensor_lies_in_one_place() -> None:
    """By the names of the records (test_pools.py); tensors of one component and place bear one pool's name."""
    for rank in RANKS:
        specs = {spec.name: spec for spec in tensor_specs(rank, SIZES)}
        named = [name for place in locations(rank) for name in place.tensors]
        assert len(set(named)) == len(named) and set(named) <= set(specs)
        state = {
            specs[name].pool for place in locations(rank) if place.hbm_pool == STATE_POOL for name in place.tensors
        }
        assert state == {"state"}
        for spec in specs.values():
            assert not spec.charged or spec.name in named


def test_no_tensor_is_charged_without_a_price() -> None:
    """The engine's budget has prices for tokens, slots and snapshots (test_pools.py), and for nothing else."""
    for rank in RANKS:
        for component in COMPONENTS:
            specs = tuple(component.tensors(rank, SIZES))
            priced = component.charge is not None and component.charge(rank) > 0
            assert any(spec.charged for spec in specs) == (priced and specs != ()), component.name


def test_a_formula_is_of_its_own_terms() -> None:
    """And its value is the bytes of a unit."""
    for rank in RANKS:
        for ledger in rank_ledgers(rank, SIZES):
            assert set(re.findall(r"[a-z_]+", ledger.account.formula)) <= {name for name, _ in ledger.terms}
            assert eval(ledger.account.formula, {}, dict(ledger.terms)) == ledger.bytes_per_unit, ledger.account.name


def test_a_draft_that_is_not_known_takes_no_bytes_that_are() -> None:
    unknown = Deployment(**{**DRAFTS, "speculative_algorithm": "DFLASH", "speculative_draft_model_path": "/draft"})
    rank = one_rank(unknown, load_profile("0.5.21"))
    assert draft_model.row(rank) == 0 and draft_model.COMPONENT.ledger(rank, SIZES) is None


def test_what_dram_may_hold_is_said_once() -> None:
    """A ledger that can be backed up is one whose objects have a host pool while HiCache is on."""
    for rank in RANKS:
        copied = {place.component for place in locations(rank) if place.host_pool is not None}
        assert copied == {each.account.name for each in rank_ledgers(rank, SIZES) if each.account.backed_up}


def test_what_a_log_prints_of_a_component() -> None:
    """Every printed number is one of a message that the log reader knows, and counts a tensor of the component."""
    numbers = {(shape.name, number) for shape in SHAPES for number in shape.pattern.groupindex}
    for component in COMPONENTS:
        tensors = {spec.name for rank in RANKS for spec in component.tensors(rank, SIZES)}
        for each in component.printed:
            assert (each.message, each.number) in numbers and each.tensor in tensors


def test_no_other_file_tells_a_tensor_by_its_name() -> None:
    """Only its component's file, and the one that reads the engine's own objects, names a tensor."""
    sglang = ROOT / "glm_kvplan" / "engines" / "sglang"
    names = {spec.name for rank in RANKS for spec in tensor_specs(rank, SIZES)} | {"draft.", "replayssm_"}
    for path in (ROOT / "glm_kvplan").rglob("*.py"):
        if path.parent == sglang / "components" or path == sglang / "own_pools.py":
            continue
        words = {node.value for node in ast.walk(parsed(path)) if isinstance(node, ast.Constant)}
        assert not words & names, path


# -- one more ----------------------------------------------------------------------------------------------------------


def _scratch(rank: Rank, sizes: PoolSizes) -> tuple[TensorSpec, ...]:
    shape = (request_rows(rank.deployment, sizes), 1 << 18)
    return (TensorSpec("scratch_rows", "scratch", 1, "float32", shape, "device", False, "nowhere.py:1", "scratch"),)


def _scratch_ledger(rank: Rank, sizes: PoolSizes) -> Ledger:
    account = SCRATCH.account("megabytes * 2 ** 20", "nowhere.py:1 at 0.5.21")
    return Ledger(account, 1 << 20, request_rows(rank.deployment, sizes), (("megabytes", 1),))


def _scratch_difference(rank: Rank, sizes: PoolSizes) -> tuple[Part, ...]:
    return (Part("scratch rows", request_rows(rank.deployment, sizes) << 20, "a mebibyte for every request"),)


SCRATCH = Component(
    name="scratch",
    title="Scratch space",
    unit="request row",
    segment=SegmentKind("scratch space", "a mebibyte for every request", "request row"),
    tensors=_scratch,
    ledger=_scratch_ledger,
    difference=_scratch_difference,
)


def _marks(rank: Rank, sizes: PoolSizes) -> tuple[TensorSpec, ...]:
    """A hundred bytes a token, and a hundred more."""
    return (TensorSpec("marks", "marks", 1, "uint8", (sizes.tokens + 1, 100), "device", True, "nowhere.py:2", "marks"),)


def _marks_ledger(rank: Rank, sizes: PoolSizes) -> Ledger:
    return Ledger(MARKS.account("mark_bytes", "nowhere.py:2 at 0.5.21"), 100, sizes.tokens, (("mark_bytes", 100),))


MARKS = Component(
    name="marks",
    title="Token marks",
    unit="token",
    segment=SegmentKind("token marks", "a hundred bytes a token", "token"),
    charge=lambda rank: 100,
    tensors=_marks,
    ledger=_marks_ledger,
    difference=lambda rank, sizes: (Part("mark of nobody", 100, "one mark more than tokens"),),
)


def _desk_ledger(rank: Rank, sizes: PoolSizes) -> Ledger:
    return Ledger(DESK.account("desks * 4096", "nowhere.py:3 at 0.5.21"), 4096, 1, (("desks", 1),))


DESK = Component(
    name="desk",
    title="Desk of a rank",
    unit="rank",
    segment=SegmentKind("desk", "a page of memory a rank", "rank"),
    tensors=lambda rank, sizes: (
        TensorSpec("desk_top", "desk", 1, "uint8", (4096,), "device", False, "nowhere.py:3", "desk"),
    ),
    ledger=_desk_ledger,
    difference=lambda rank, sizes: (Part("desk", 4096, "one a rank"),),
)
SERVER = ["--gpu", "b200", "--tp-size", "4", "--kv-cache-dtype", "fp8_e4m3"]


@pytest.fixture
def one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Components no engine has: one outside the budget, one that every token pays for, one that grows with nothing."""
    monkeypatch.setattr(components, "COMPONENTS", (*COMPONENTS, SCRATCH, MARKS, DESK))


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as left:
        main([*words, *SERVER])
    out, err = capsys.readouterr()
    assert left.value.code in (0, None) and not err, err
    return out


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed(capsys, *words, "--json"))
    return found


@pytest.mark.usefixtures("one_more")
def test_one_more_in_an_estimate(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("estimate", "--context", "64k", "--concurrency", "10")
    out = printed(capsys, *words, "--explain")
    for line in (
        r"Scratch space +1,048,576 B/row +11 ",
        r"Token marks +100 B/token +655,360 ",
        r"Desk of a rank +4,096 B/rank +1 ",
        r"  scratch rows +\+11,534,336",
        r"  mark of nobody +\+100",
        r"scratch space\* ",
        r"token marks ",
        r"  = 1 \* 2 \*\* 20\n",
    ):
        assert re.search(f"(?m)^{line}", out), line
    stage = answer(capsys, *words)["stages"][0]
    ledgers = {each["name"]: (each["unit"], each["bytes"], each["charged"]) for each in stage["ledgers"]}
    assert ledgers["scratch"] == ("request row", 11 << 20, False)
    assert ledgers["marks"] == ("token", 65_536_000, True)
    parts = {each["name"]: each["bytes"] for each in stage["difference"]}
    assert (parts["scratch rows"], parts["mark of nobody"]) == (11 << 20, 100)
    assert stage["allocated_bytes"] - stage["charged_bytes"] == sum(parts.values())


@pytest.mark.usefixtures("one_more")
def test_one_more_is_sized_and_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    """The budget pays for the marks, so there are fewer tokens; both lie on the map."""
    words = ("solve", "--pre-gib", "170", "--available-gib", "100")
    found = answer(capsys, *words)
    segments = {each["name"]: each for each in found["memory_map"]["segments"]}
    rows = found["max_running_requests"] + 1
    tokens = found["max_total_num_tokens"]
    assert found["costs"]["cell_bytes"] == 11 * (512 + 132) + 100
    assert (segments["scratch space"]["bytes"], segments["scratch space"]["charged"]) == (rows << 20, False)
    assert (segments["token marks"]["bytes"], segments["token marks"]["charged"]) == (100 * (tokens + 1), True)
    assert segments["scratch space"]["components"] == ["scratch"]
    out = printed(capsys, *words, "--all")
    assert re.search(r"(?m)^scratch space\* ", out) and re.search(r"(?m)^token marks ", out)


@pytest.mark.usefixtures("one_more")
def test_one_more_among_the_pools(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("pools", "--max-total-tokens", "64000", "--max-mamba-cache-size", "50", "--max-running-requests", "10")
    found = answer(capsys, *words)
    tensors = {each["name"]: (each["component"], each["shape"]) for each in found["tensors"]}
    assert tensors["scratch_rows"] == ("scratch", [11, 1 << 18]) and tensors["marks"] == ("marks", [64_001, 100])
    assert found["unexplained_bytes"] == 0
    out = printed(capsys, *words)
    assert re.search(r"(?m)^scratch *\n scratch_rows +1 11x262144", out) and re.search(r"(?m)^marks *\n marks ", out)


@pytest.mark.usefixtures("one_more")
def test_one_more_in_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    for name in ("plan.md", "plan.html"):
        target = tmp_path / name
        printed(capsys, "report", "-o", str(target), "--context", "64k", "--concurrency", "10")
        text = target.read_text(encoding="utf-8")
        for words in ("scratch space", "token marks", "Scratch space", "Token marks", "nowhere.py:1 at 0.5.21"):
            assert words in text, (name, words)
