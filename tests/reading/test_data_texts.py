"""YAML, JSON and TOML as plain data; what is bounded, and that the common cases are PyYAML's own."""

import datetime
import textwrap

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from glm_kvplan.reading.json_text import read_json
from glm_kvplan.reading.toml_text import read_toml
from glm_kvplan.reading.unreadable import UnreadableError
from glm_kvplan.reading.yaml_text import read_yaml

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(_VALUES, st.booleans())
def test_yaml_comes_back(value: object, flow: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow)
    assert read_yaml(text)[0].data == yaml.safe_load(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "a: 1:30:00\nb: 0x1F\nc: 0o17\nd: 017\ne: 1_000\nf: yes\ng: ~\nh: 1e3\ni: 1.5e+3\nj: .inf\nk: 2020-01-01",
        "a: &x {k: 1, l: 2}\nb: {<<: *x, l: 3}\nc:\n  <<: [*x, {k: 9, m: 4}]\n  n: 5\n",
        "a: !!str 1\nb: !!int '2'\nc: ! 3\nd: 'x'\ne: \"y\\n\"\nf: |\n  a\n  b\ng: >\n  a\n  b\n",
        "2020-01-01: x\n1: y\ntrue: z\n~: w\n",
        "- a\n- - b\n  - c\n- {d: e}\n",
        "a: &x [1, 2]\nb: *x\nc: [*x, *x]\n",
    ],
)
def test_yaml_is_pyyamls(text: str) -> None:
    assert read_yaml(text)[0].data == yaml.safe_load(text)


def test_lines_and_repeated_keys() -> None:
    text = "a: 1\nb:\n  c: {d: 1,\n    e: 2}\n  f:\n  - g: 3\n  c: 4\n---\nh: 1\n"
    first, second = read_yaml(text)
    assert first.lines == {("a",): 1, ("b",): 2, ("b", "c"): 3, ("b", "c", "d"): 3, ("b", "c", "e"): 4, ("b", "f"): 5}
    assert first.repeated == ((("b", "c"), 7),)
    assert (second.line, second.lines) == (8, {("h",): 9})
    assert read_yaml("") == []
    assert read_yaml("a: =\nb: <<\n")[0].data == {"a": "=", "b": "<<"}  # signs of YAML 1.1 that nobody means


_BOMB = "".join(f"b{n}: &b{n} [{','.join([f'*b{n - 1}'] * 9) if n else ','.join('x' * 9)}]\n" for n in range(9))


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        (_BOMB, 6, "more than 200,000 values, aliases written out"),
        (f"a: &a {'x' * 100_000}\nb: [{'*a,' * 500}]", 2, "more than 200,000 values"),
        (f"a: &a {{k: {'x' * 100_000}}}\nb:\n" + "- {<<: *a}\n" * 500, None, "more than 200,000 values"),
        ("a: &a [1, *a]", 1, "stands inside what it names"),
        ("a: *b", 1, "an alias of nothing"),
        ("a: 1\nb: " + "[" * 100, 2, "nested too deeply"),
        ("a: " + "9" * 400, 1, "a number of 400 characters"),
        ("a: 0x" + "f" * 90, 1, "beyond 2"),
        ("a: 1" + ":30" * 200, 1, "a number of 601 characters"),
        ("a: 1" + ":30" * 200 + ".5", 1, "a number of"),
        ("a: !!bool x", 1, "'x' is no bool"),
        ("a: !!int ''", 1, "'' is no int"),
        ("a: !!timestamp x", 1, "is no timestamp"),
        ("a: 2024-99-99", 1, "is no timestamp"),
        ("a: !!python/object/apply:os.getcwd []", 1, "the tag"),
        ("a: !!binary aGk=", 1, "the tag"),
        ("\n!x {}", 2, "the tag '!x' is not read"),
        ("? [a]\n: b", 1, "a key is a collection"),
        ("<<: 1", 1, "merges mappings only"),
        ("a: \x01", None, "."),
        ("a: \ud800", None, "Unicode"),
    ],
)
def test_yaml_that_is_not_read(text: str, line: int | None, problem: str) -> None:
    with pytest.raises(UnreadableError, match=problem) as caught:
        read_yaml(text)
    assert line is None or caught.value.line == line


def test_json() -> None:
    assert read_json('{"a": 1, "b": {"c": 1, "c": 2}, "a": 3}') == ({"a": 3, "b": {"c": 2}}, ("c", "a"))
    for text, problem in (
        ("[" * 100_000, "nested"),
        ("[NaN]", "holds NaN"),
        ("9" * 101, "too many digits"),
        ("{", "is not JSON"),
    ):
        with pytest.raises(UnreadableError, match=problem):
            read_json(text)


def test_toml() -> None:
    assert read_toml("a.b = 1\n[c]\nd = 2020-01-01\n") == {"a": {"b": 1}, "c": {"d": datetime.date(2020, 1, 1)}}
    for text, problem in (
        ("a." * 40 + "a = 1", "more than 32 parts"),
        ('"a" . ' * 40 + "a = 1", "more than 32 parts"),
        ("a = " + "[" * 100_000, "nested"),
        ("a = " + "9" * 400, "beyond"),
        ("a = 0x" + "f" * 9000, "beyond"),
        ("a = " + "9" * 9000, "digits"),
        ("[a]\n" * 20_000, "tables"),
    ):
        with pytest.raises(UnreadableError, match=problem):
            read_toml(text)
    with pytest.raises(UnreadableError, match="Invalid") as caught:
        read_toml(textwrap.dedent("a = 1\nb = \n"))
    assert caught.value.line == 2


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=80) | st.lists(st.sampled_from(list("-:[]{}&*!|?<> \n\"'#a1=.,%@")), max_size=40).map("".join))
def test_any_text_is_data_or_unreadable(text: str) -> None:
    for reader in (read_yaml, read_json, read_toml):
        try:
            reader(text)
        except UnreadableError as error:
            assert "\n" not in error.problem
