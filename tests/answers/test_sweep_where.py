"""`--where`, `--sort` and `--best`: expressions against Python's own meaning, and text that is no expression."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glm_kvplan.answers.sweep import order
from glm_kvplan.answers.sweep.conditions import read_where
from glm_kvplan.answers.sweep.order import Order, read_order
from glm_kvplan.engines.sweep_columns import Column
from glm_kvplan.errors import InputError

COLUMNS = (
    Column("n", "int", ""),
    Column("x", "float", ""),
    Column("word", "text", ""),
    Column("radix", "flag", ""),
)
ROWS: list[tuple[Any, ...]] = [
    (n, x, word, radix)
    for n in (None, 0, 64, 65536)
    for x in (None, -1.5, 10.0)
    for word in (None, "fits", "it's")
    for radix in (None, True, False)
]


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("n >= 64", lambda n, x, w, r: n is not None and n >= 64),
        ("n >= 64 and x > 9.5", lambda n, x, w, r: n is not None and n >= 64 and x is not None and x > 9.5),
        ("n==64k", lambda n, x, w, r: n == 65536),
        ("x < -1", lambda n, x, w, r: x is not None and x < -1),
        ("0 <= n < 65", lambda n, x, w, r: n is not None and 0 <= n < 65),
        ("word == 'fits' or word == \"it's\"", lambda n, x, w, r: w is not None),
        ("not word == 'fits'", lambda n, x, w, r: w != "fits"),
        ("word != 'fits'", lambda n, x, w, r: w is not None and w != "fits"),
        ("radix", lambda n, x, w, r: r is True),
        ("not radix", lambda n, x, w, r: r is not True),
        ("radix == false", lambda n, x, w, r: r is False),
        ("radix == true", lambda n, x, w, r: r is True),
        ("radix != false", lambda n, x, w, r: r is True),
        ("n == none", lambda n, x, w, r: n is None),
        ("n != none and x == none", lambda n, x, w, r: n is not None and x is None),
        ("n < x", lambda n, x, w, r: n is not None and x is not None and n < x),
        ("n == 0 or n == 64 and x == 10", lambda n, x, w, r: n == 0 or (n == 64 and x == 10)),
        ("(n == 0 or n == 64) and x == 10", lambda n, x, w, r: n in (0, 64) and x == 10),
        ("not (n == 0 or not (x == 10))", lambda n, x, w, r: not (n == 0 or x != 10)),
    ],
)
def test_what_expressions_mean(text: str, meaning: Any) -> None:
    test = read_where(text, COLUMNS)
    assert [test(row) for row in ROWS] == [meaning(*row) for row in ROWS]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the end"),
        ("n", "comparison"),
        ("n = 64", "equal is =="),
        ("n >=", "'the end'"),
        ("n >= 64 and", "'the end'"),
        ("n >= 64)", "and, or, or the end"),
        ("(n >= 64", "closing parenthesis"),
        ("n > 1 x > 2", "and, or, or the end"),
        ("m > 1", "no column"),
        ("wrod == 'a'", "nearest: word"),
        ("n == 'fits'", "cannot compare"),
        ("n == and", "stands where a name or a value must"),
        ("n == or", "stands where a name or a value must"),
        ("n == not", "stands where a name or a value must"),
        ("word == fits", "no column"),
        ("radix > false", "two flags"),
        ("n > none", "none is compared"),
        ("n > 1; import os", "cannot be read"),
        ("__import__('os').system('x')", "cannot be read"),
        ("__import__ == 1", "no column"),
        ("n.__class__ == 1", "cannot be read"),
        ("'open", "cannot be read"),
        ("not " * 60 + "radix", "nested"),
        ("(" * 60 + "radix" + ")" * 60, "nested"),
        ("radix or " * 600 + "radix", "characters"),
    ],
)
def test_what_is_no_expression(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told) as error:
        read_where(text, COLUMNS)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("n > 1 x > 2", "'x' (character 7)"),
        ("n >=", "'the end' (character 5)"),
        ("radix;radix;radix;radix;radix", "';radix;radix;radix;r' (character 6)"),
    ],
)
def test_a_mistake_is_shown_with_its_place(text: str, place: str) -> None:
    with pytest.raises(InputError) as error:
        read_where(text, COLUMNS)
    assert f"--where: {place} " in str(error.value)


def test_the_nearest_columns_are_named_three_at_most() -> None:
    columns = [Column(f"column_{letter}", "int", "") for letter in "abcd"]
    with pytest.raises(InputError) as error:
        read_where("column_x > 1", columns)
    assert sum(column.name in str(error.value) for column in columns) == 3


def test_the_longest_and_the_deepest_expression() -> None:
    """4,000 characters are read, and 50 levels, however many groups stand beside them."""
    longest = "radix or " * 443 + "    not radix"
    assert len(longest) == 4000 and read_where(longest, COLUMNS)
    with pytest.raises(InputError, match="4001 characters; 4000 are read"):
        read_where(longest + " ", COLUMNS)
    beside = "(radix) and " * 60
    assert read_where(beside + "not " * 49 + "radix", COLUMNS)
    with pytest.raises(InputError, match="more than 50 deep"):
        read_where(beside + "not " * 50 + "radix", COLUMNS)


_PIECES = (
    "n",
    "x",
    "word",
    "radix",
    "and",
    "or",
    "not",
    "(",
    ")",
    "==",
    "<",
    ">=",
    "1",
    "2.5",
    "'a'",
    "none",
    "m",
    ".",
)


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(_PIECES), max_size=25).map(" ".join)))
def test_any_text_is_a_test_or_one_line(text: str) -> None:
    try:
        test = read_where(text, COLUMNS)
    except InputError:
        return
    assert {test(row) for row in ROWS} <= {True, False}


@given(st.lists(st.tuples(st.one_of(st.none(), st.integers(-5, 5)), st.integers())), st.booleans(), st.integers(1, 8))
def test_best_is_the_start_of_the_sorted(rows: list[tuple[Any, ...]], descending: bool, count: int) -> None:
    order = Order(0, descending)
    found = order.sorted(rows)
    assert order.best(rows, count) == found[:count]
    known = [row for row in rows if row[0] is not None]
    assert found[: len(known)] == sorted(known, key=lambda row: row[0], reverse=descending)
    assert found[len(known) :] == [row for row in rows if row[0] is None]


def test_rows_beyond_those_that_memory_should_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "MOST_SORTED", 3)
    rows = [(2,), (3,), (1,)]
    assert Order(0, True).sorted(rows) == [(3,), (2,), (1,)]
    with pytest.raises(InputError, match="--sort holds 3 rows at most; add --best N"):
        Order(0, True).sorted([*rows, (4,)])
    assert Order(0, True).best([*rows, (4,)], 2) == [(4,), (3,)]


def test_orders() -> None:
    assert read_order("x:desc", COLUMNS) == Order(1, True)
    assert read_order("word", COLUMNS) == read_order("word:asc", COLUMNS) == Order(2, False)
    for text in ("y", "x:down", ""):
        with pytest.raises(InputError, match="--sort"):
            read_order(text, COLUMNS)
