"""Workloads read from words and files, and how many of their requests some pools hold, counted by hand."""

from fractions import Fraction
from pathlib import Path

import pytest

from glm_kvplan import contexts as lengths
from glm_kvplan.bisection import largest, largest_near, largest_unbounded, least
from glm_kvplan.contexts import MOST_BINS, Contexts, contexts, parse_contexts, read_histogram
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.sizing.served_requests import Served, check_demand, served, slots_of_request
from glm_kvplan.errors import InputError
from glm_kvplan.units import LARGEST_COUNT
from glm_kvplan.workload import Demand

PLAIN = Deployment()  # five state slots a request, nothing reserved ahead
MIX = Contexts((1000, 100), (1, 3))


def one(length: int) -> Contexts:
    return Contexts((length,), (1,))


# -- contexts ----------------------------------------------------------------------------------------------------------


def test_shares_become_whole_weights() -> None:
    assert contexts([(100, Fraction(1, 2)), (1000, Fraction(1, 3))]) == Contexts((1000, 100), (2, 3))
    assert contexts([(100, 1), (100, 2), (7, 0), (9, 5)]) == Contexts((100, 9), (3, 5))
    assert contexts([(1, 1), (LARGEST_COUNT, 1)]).longest == LARGEST_COUNT
    assert len(contexts((number + 1, 1) for number in range(MOST_BINS)).lengths) == MOST_BINS


def test_contexts_refused_in_words() -> None:
    for length in (0, -1, LARGEST_COUNT + 1):
        with pytest.raises(InputError, match=rf"context length {length} must lie between 1 and 2\*\*48"):
            contexts([(length, 1)])
    with pytest.raises(InputError, match="the share of context length 5 is negative"):
        contexts([(5, Fraction(-1, 9))])
    for none in ([], [(5, 0)]):
        with pytest.raises(InputError, match="no context length has a share above 0"):
            contexts(none)
    with pytest.raises(InputError, match=f"{MOST_BINS + 1} different context lengths; join them"):
        contexts((number + 1, 1) for number in range(MOST_BINS + 1))


def test_a_mix_dealt_out() -> None:
    """One in four is long: of two requests one, of five two (each share rounded up)."""
    assert MIX.mean == (1000 + 3 * 100) / 4 and MIX.longest == 1000
    assert [MIX.shared(number) for number in (1, 2, 4, 5)] == [(1, 0), (1, 1), (1, 3), (2, 3)]
    assert MIX.as_mean.tokens(5, 64) == 2 * 1024 + 3 * 128
    assert MIX.as_mean.tokens(5, 1) == 2 * 1000 + 3 * 100
    assert MIX.as_mean.tokens(4, 64, 28) == 1088 + 3 * 128 and MIX.as_mean.tokens(4, 64, 29) == 1088 + 3 * 192


def test_contexts_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_contexts(" 0.25:1000 , 0.75:100 ") == MIX
    assert parse_contexts("0.99:10").lengths == (10,)  # within a hundredth
    assert parse_contexts("0.505:10,0.505:20").lengths == (20, 10)
    for text, words in (
        ("0.98:10", "the shares of '0.98:10' add up to 0.98, not 1"),
        ("0.5:10,0.511:20", "add up to 1.011, not 1"),
        ("0.5:10,half:20", "'half:20' is not share:length, such as 0.8:8k"),
        ("0.5:10,20", "--context: '' is not a count"),
        ("words", "--context: 'words' is not a count"),
        ("lengths.m", "--context: 'lengths.m' is not a count"),
        ("lengths.M", "--context: 'lengths.M' is not a count"),
        ("some/lengths.k", r"some/lengths\.k: cannot be read"),
        ("lengths.csv", r"lengths\.csv: cannot be read"),
        (f"{'x' * 300}:8k", f"'{'x' * 60}' is not share:length"),  # nor a name that a file can have
        (f"0.5:10,0.511:20{' ' * 99}", "add up to 1.011"),
    ):
        with pytest.raises(InputError, match=words):
            parse_contexts(text)
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b:c"):
        Path(name).write_text("1000 1\n100 3\n", encoding="utf-8")
        assert parse_contexts(name) == MIX
    assert parse_contexts("./a.txt") == MIX


# -- histogram files ---------------------------------------------------------------------------------------------------


def histogram(tmp_path: Path, text: str, name: str = "lengths.txt") -> Contexts:
    (tmp_path / name).write_bytes(text.encode())
    return read_histogram(tmp_path / name)


def test_lines_as_people_write_them(tmp_path: Path) -> None:
    assert histogram(tmp_path, "# lengths\n\nn count\n1000,1\n  100 ; 2 \n\n100\t1 # and one more\n") == MIX
    assert histogram(tmp_path, "\ufeff1000;0.25\n100;0.75\n") == MIX
    assert histogram(tmp_path, "1000\n100\n100\n100\n") == MIX
    assert histogram(tmp_path, "1000 1\n\n# a note\n100 3") == MIX
    assert histogram(tmp_path, '{"1000": 0.5, "100": 1.5, "7": 0}', "a.JSON") == MIX
    assert histogram(tmp_path, "[1000, [100, 3]]", "b.json") == MIX
    assert histogram(tmp_path, f"[[1000, {LARGEST_COUNT}]]", "c.json").weights == (LARGEST_COUNT,)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.txt", "n count\n\n1000 x\n", r"a\.txt:3: 'x' is not a count"),
        ("a.txt", "1000 1\nwords 1\n", r"a\.txt:2"),
        ("a.txt", "5 -1\n", r"a\.txt:1: '-1' is not a count"),
        ("a.json", "{", r"a\.json: is not JSON"),
        ("a.json", "[[5, -1]]", r"a\.json: -1 is not a count of requests"),
        ("a.json", f"[[5, {LARGEST_COUNT + 1}]]", r"a\.json: \d+ is not a count of requests"),
        ("a.json", '[["x", 1]]', r"a\.json"),
        ("a.json", '"words"', "no context length"),
    ],
)
def test_files_refused_where_they_are_wrong(tmp_path: Path, name: str, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        histogram(tmp_path, text, name)


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe1")
    with pytest.raises(InputError, match=r"bytes\.txt: is not UTF-8 text"):
        read_histogram(tmp_path / "bytes.txt")
    with pytest.raises(InputError, match=r"none\.txt: cannot be read \(No such file"):
        read_histogram(tmp_path / "none.txt")
    monkeypatch.setattr(lengths, "LARGEST_FILE", 1 << 20)
    text = "1000 1\n100 3\n#"
    assert histogram(tmp_path, text.ljust(1 << 20, ".")) == MIX
    with pytest.raises(InputError, match=r"lengths\.txt: larger than 1 MiB.*; join the lengths"):
        histogram(tmp_path, text.ljust((1 << 20) + 1, "."))


# -- what pools hold ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "got"),
    [
        (PoolSizes(10_000, 100, 50), Served(7, 7, "concurrency")),
        (PoolSizes(10_000, 100, 7), Served(7, 7, "concurrency")),
        (PoolSizes(10_000, 100, 6), Served(6, 6, "running requests")),
        (PoolSizes(10_000, 34, 50), Served(6, 6, "state slots")),
        (PoolSizes(10_000, 4, 0), Served(0, 0, "running requests")),
        (PoolSizes(896, 100, 50), Served(7, 7, "concurrency")),
        (PoolSizes(895, 100, 50), Served(6, 6, "tokens")),
        (PoolSizes(128, 100, 50), Served(1, 1, "tokens")),
        (PoolSizes(100, 100, 50), Served(0, 0, "tokens")),  # a token must stay beside the context
        (PoolSizes(101, 100, 50), Served(0, 0, "tokens")),  # and the context takes whole pages
    ],
)
def test_what_stops_one_more(sizes: PoolSizes, got: Served) -> None:
    """Seven requests of 100 tokens: two pages of 64 and five slots each."""
    assert served(Demand(one(100), 7), PLAIN, sizes) == got


def test_a_mix_is_held_at_full_length() -> None:
    demand = Demand(MIX.as_mean, 8)  # 2 x 1,024 and 6 x 128
    assert served(demand, PLAIN, PoolSizes(2 * 1024 + 6 * 128, 100, 50)).requests == 8
    assert served(demand, PLAIN, PoolSizes(2 * 1024 + 6 * 128 - 1, 100, 50)) == Served(7, 7, "tokens")
    assert served(demand, PLAIN, PoolSizes(1024 + 3 * 128, 100, 50)) == Served(4, 4, "tokens")
    assert served(demand, PLAIN, PoolSizes(1024 + 3 * 128 - 1, 100, 50)) == Served(3, 3, "tokens")
    assert served(demand, PLAIN, PoolSizes(1023, 100, 50)) == Served(0, 0, "tokens")
    assert served(demand, PLAIN, PoolSizes(1000, 100, 50)) == Served(0, 0, "tokens")
    drafts = Deployment(speculative_algorithm="EAGLE", speculative_num_draft_tokens=4, max_draft_tokens=4)
    ahead = Demand(one(121), 9)  # and twice four tokens: a third page
    assert served(ahead, drafts, PoolSizes(9 * 192, 100, 50)).requests == 9
    assert served(ahead, drafts, PoolSizes(9 * 192 - 1, 100, 50)).requests == 8
    mixed = Demand(Contexts((121, 57), (1, 1), confidence=0), 4)  # 2 x 192 and 2 x 128
    assert served(mixed, drafts, PoolSizes(640, 100, 50)).requests == 4
    assert served(mixed, drafts, PoolSizes(639, 100, 50)) == Served(3, 3, "tokens")
    assert served(mixed, drafts, PoolSizes(511, 100, 50)) == Served(2, 2, "tokens")


def test_a_length_the_server_refuses_is_not_served() -> None:
    """The same for a mix with one such length: 0, as every command counts it."""
    short, sizes = Deployment(context_length=100), PoolSizes(10_000, 100, 50)
    assert served(Demand(one(100), 7), short, sizes).requests == 7
    assert served(Demand(one(101), 7), short, sizes) == Served(0, 0, "context length")
    assert served(Demand(Contexts((101, 57), (1, 999)), 7), short, sizes) == Served(0, 0, "context length")


def test_workers_share_a_demand() -> None:
    wide = Deployment(tp_size=4, attn_dp_size=2, replicas=2)
    sizes = PoolSizes(10_000, 100, 50)
    assert served(Demand(one(100), 9), wide, sizes) == Served(9, 3, "concurrency")
    assert served(Demand(one(100), 8), wide, sizes) == Served(8, 2, "concurrency")
    assert served(Demand(one(100), 99), wide, sizes._replace(running_requests=3)) == Served(12, 3, "running requests")
    kept = Demand(one(100), 99, prefix_states=2)
    assert slots_of_request(kept, PLAIN) == 7
    assert served(kept, wide, sizes) == Served(14 * 4, 14, "state slots")


def test_demands_no_pool_serves() -> None:
    check_demand(Demand(one(100), 1), PLAIN)
    check_demand(Demand(one(1_048_576), LARGEST_COUNT, LARGEST_COUNT), PLAIN)
    check_demand(Demand(one(100), 1), Deployment(disable_radix_cache=True))
    for demand, deployment, words in (
        (Demand(one(5), 0), PLAIN, r"concurrency 0 must lie between 1 and 2\*\*48"),
        (Demand(one(5), LARGEST_COUNT + 1), PLAIN, "concurrency .* must lie between"),
        (Demand(one(5), 1, -1), PLAIN, r"prefix states -1 must lie between 0 and 2\*\*48"),
        (Demand(one(5), 1, LARGEST_COUNT + 1), PLAIN, "prefix states .* must lie between"),
        (Demand(one(5), 1, 1), Deployment(disable_radix_cache=True), "prefix states need the radix cache"),
    ):
        with pytest.raises(InputError, match=words):
            check_demand(demand, deployment)


# -- searching by halving ----------------------------------------------------------------------------------------------


def test_searches_find_the_point() -> None:
    for high in range(1, 20):
        for point in range(1, high + 1):
            assert largest(lambda number, point=point: number <= point, 1, high) == point
            for likely in range(-1, high + 3):
                assert largest_near(likely, lambda number, point=point: number <= point, 1, high) == point
            assert least(lambda number, point=point: number >= point, 0, high) == point
    for point in range(1, 70):
        assert largest_unbounded(lambda number, point=point: number <= point) == point
    assert largest_unbounded(lambda number: False) is None
    assert largest_unbounded(lambda number: True) == (1 << 30) - 1


def test_searches_ask_few_times() -> None:
    asked: list[int] = []

    def below(number: int) -> bool:
        asked.append(number)
        return number <= 700_000

    assert largest(below, 0, 1 << 20) == 700_000 and len(asked) <= 21
    asked.clear()
    assert largest_near(700_003, below, 0, 1 << 20) == 700_000 and len(asked) <= 5
    asked.clear()
    assert largest_unbounded(below) == 700_000 and len(asked) <= 42
