"""The deployment file: what is read, what is refused, and where an error points."""

import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paths import ROOT

from glm_kvplan.answers.check.deployment_file import DeploymentFile, parse_deployment, read_deployment_file
from glm_kvplan.answers.check.file_plan import plan_of
from glm_kvplan.answers.check.file_schema import json_schema
from glm_kvplan.answers.check.positions import PlacedError, line_of, toml_lines
from glm_kvplan.engines.by_name import NAMES, engine_named, find_release
from glm_kvplan.errors import InputError
from glm_kvplan.memory.gpu import find_gpu, known_gpus


def read(text: str) -> DeploymentFile:
    return parse_deployment(text, "plan.yaml", Path())


def complaint(text: str) -> str:
    with pytest.raises(PlacedError) as error:
        read(text)
    assert "\n" not in str(error.value)
    return str(error.value)


YAML = """\
source: somewhere
engine: 0.5.22
gpu: B200
nodes: 2
flags:
  tp_size: 8
  context_length: 128Ki
  mem_fraction_static: 1
environment:
  SGLANG_VLM_CACHE_SIZE_MB: 50
memory:
  pre_gib: 177
  available_gib: 100.5
  host_gib: 512
expect:
  min_context: 128k
  headroom: 12
  tolerate:
    launch: known
"""
TOML = """\
# a comment
source = "somewhere"
engine = "0.5.22"
gpu = "B200"
nodes = 2

[flags]
tp_size = 8
context_length = "128Ki"
mem_fraction_static = 1

[environment]
SGLANG_VLM_CACHE_SIZE_MB = 50

[memory]
pre_gib = 177
available_gib = 100.5
host_gib = 512

[expect]
min_context = "128k"
headroom = 12
tolerate.launch = "known"
"""


@pytest.mark.parametrize("text", [YAML, TOML], ids=["yaml", "toml"])
def test_every_key_is_read(text: str) -> None:
    file = read(text)
    content = file.content
    assert (content.source, content.engine, content.gpu) == ("somewhere", "0.5.22", "B200")
    assert file.flags == {"tp_size": 8, "context_length": 131072, "mem_fraction_static": 1, "nnodes": 2}
    assert file.environment == {"SGLANG_VLM_CACHE_SIZE_MB": "50"}
    assert (content.memory.pre_gib, content.memory.available_gib, content.memory.host_gib) == (177, 100.5, 512)
    assert (content.expect.min_context, content.expect.headroom) == (131072, 12)
    assert file.tolerate == {"launch": "known"}


@pytest.mark.parametrize("text", [YAML, TOML], ids=["yaml", "toml"])
def test_lines_are_those_of_the_text(text: str) -> None:
    file, rows = read(text), text.splitlines()
    for path, word in (
        (("gpu",), "gpu"),
        (("flags", "tp_size"), "tp_size"),
        (("expect", "min_context"), "min_context"),
        (("expect", "tolerate", "launch"), "launch"),
        (("memory", "host_gib"), "host_gib"),
    ):
        assert word in rows[file.line(*path) - 1]
    assert file.line("expect", "min_concurrency") == file.line("expect")
    assert file.line("nothing") == 1


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("flags: {tp_size: 4}\nexpct: {}\n", 2, "did you mean expect?"),
        ("flags:\n  tp_size: 4\n  tp: 4\n", 3, "did you mean tp_size?"),
        ("flags:\n  --max-running-requests: 4\n", 2, "did you mean max_running_requests?"),
        ("flags:\n  served_model_name: x\n", 2, "launch flags that touch memory"),
        ("flags: {tp_size: 4}\nexpect:\n  min_contxt: 4\n", 3, "did you mean min_context?"),
        ("flags: {tp_size: 4}\nexpect:\n  tolerate:\n    headrom: x\n", 4, "did you mean headroom?"),
        ("flags:\n  tp_size: 4\n  tp_size: 8\n", 3, "given twice (first in line 2)"),
        ("flags:\n  tp_size: true\n", 2, "a whole number"),
        ("flags:\n  tp_size: 4.0\n", 2, "a whole number"),
        ('flags:\n  tp_size: "4"\n', 2, "a whole number"),
        ("flags:\n  disable_radix_cache: 1\n", 2, "true or false"),
        ("flags:\n  kv_cache_dtype: int9\n", 2, "'fp8_e4m3'"),
        ("flags:\n  tp_size:\n", 2, "has no value"),
        ("flags:\n  context_length: 128q\n", 2, "128Ki"),
        ("engine: 0.5\nflags: {tp_size: 4}\n", 1, "takes text"),
        ("flags: {tp_size: 4}\nexpect:\n  min_concurrency: 0\n", 3, "1 or more"),
        ("flags: {tp_size: 4}\nexpect:\n  min_context: 1.5k1\n", 3, "128k"),
        ("flags: {tp_size: 4}\nexpect:\n  headroom: short\n", 3, "'fits'"),
        ("flags: {tp_size: 4}\nmemory:\n  pre_gib: .nan\n", 3, "finite"),
        ("flags: {tp_size: 4}\nmemory:\n  pre_gib: -1\n", 3, "more than 0"),
        ("flags: {tp_size: 4}\nmemory:\n  pre_gib: x\n", 3, "memory.pre_gib: 'x' is not accepted; it takes a number"),
        ("flags: {tp_size: 4}\nmemory: {pre_gib: 1048577}\n", 2, "it takes at most 1,048,576"),
        ("flags:\n  cuda_graph_bs_decode: 4\n", 2, "a list of whole numbers"),
        ("flags:\n  json_model_override_args: 4\n", 2, "it takes a mapping"),
        ("flags:\n  mem_fraction_static: 1.5\n", 2, "at most 1.0"),
        ("flags:\n  mem_fraction_static: 0\n", 2, "more than 0.0"),
        ("flags:\n  tp_size: 0\n", 2, "1 or more"),
        ("flags:\n  kv_cache_dtype: x\n", 2, "it takes one of 'auto', "),
        ("flags: {tp_size: 4}\nexpect:\n  host_memory: x\n", 3, "it takes 'fits'"),
        ("flags: {tp_size: 4}\nexpect:\n  min-context: 1\n", 3, "did you mean min_context?"),
        ("flags:\n  tp-size: 1\n", 2, "did you mean tp_size?"),
        ("flags:\n  tp_size: 65537\n", 2, "at most 65,536"),
        ("flags:\n  context_length: true\n", 2, "True is not accepted; it takes a whole number or text such as 128Ki"),
        ("source: ''\nflags: {tp_size: 4}\n", 1, "text that is not empty"),
        ("source: " + "x" * 4097 + "\nflags: {tp_size: 4}\n", 1, "shorter text"),
        ("nodes: 0\nflags: {tp_size: 4}\n", 1, "1 or more"),
        ("flags: {tp_size: 4}\nset: {a: [1]}\n", 2, "set.a: [1] is not accepted; it takes text or a whole number or a"),
        ("flags: {tp_size: 4}\nset: {a-b: 1}\n", 2, "'set.a-b': a variable's name has letters, digits and _"),
        ("flags: {tp_size: 4}\nexpect: {min_context: true}\n", 2, "a whole number or text such as 128k"),
        ("flags: {tp_size: 4}\nexpect: {min_context: 999999999999m}\n", 2, "a whole number from 1 to 2**48"),
        ("flags: {tp_size: 4}\nexpect: {min_context: 281474976710657}\n", 2, "at most 281,474,976,710,656"),
        ("flags: {tp_size: 4}\nexpect: {headroom: -1}\n", 2, "0.0 or more or 'fits'"),
        ("flags: {tp_size: 4}\nexpect:\n  contexts: {8k: -1}\n", 3, "(a share is a number from 0, not -1)"),
        ("flags: {tp_size: 4}\nexpect:\n  contexts: {8k: true}\n", 3, "(a share is a number from 0, not True)"),
        ("flags: {tp_size: 4}\nexpect:\n  contexts: 7\n", 3, "80%:8k,20%:128k, or a mapping of length to share"),
        ("flags: {tp_size: 4}\nexpect:\n  contexts: 8k\n", 3, "80%:8k,20%:128k, or a mapping of length to share"),
        ("flags: {tp_size: 4}\nexpect:\n  contexts: 100%:8k\n", 3, "contexts say how long the requests of min_conc"),
        ("flags: {tp_size: 4}\nexpect:\n  confidence: 0.9\n", 3, "confidence is promised of contexts"),
        (
            "flags: {tp_size: 4}\nexpect:\n  min_concurrency: 1\n  contexts: 100%:8k\n  confidence: 0.49\n",
            5,
            "0.5 or more",
        ),
        ("flags: {tp_size: 4}\nexpect:\n  tolerate: {gpu_cuont: x}\n", 3, "did you mean gpu_count?"),
        ("flags: {tp_size: 4}\nmemory:\n  qqqq: 1\n", 3, "known: pre_gib, available_gib, "),
        ("flags:\n  totally_unknown_thing: 1\n", 2, "flags are SGLang's launch flags that touch memory"),
        ("flags:\n  --tp-size: 4\n", 2, "did you mean tp_size?"),
        ("flags:\n  tp: 4\n", 2, "did you mean tp_size?"),
        ("flags:\n  gpu_memory_utilization: 0.9\n", 2, "did you mean mem_fraction_static?"),
        ("flags: {x: 1}\nsource: 1\n", 1, "unknown key 'flags.x'"),
        ("source: 1\nflags: {x: 1}\n", 1, "source: 1 is not accepted"),
        ("1: 2\nflags: {tp_size: 4}\n", 1, "the key '1' is not text"),
        ("flags:\n  tp_size: 4\nflags:\n  tp_size: 8\n", 3, "flags is given twice (first in line 1)"),
        ("nodes: 2\nflags: {nnodes: 3}\n", 1, "nodes 2 against flags.nnodes 3"),
        ("launch: x\nlaunch_file: y\n", 2, "once"),
        ("launch: x\ncontainer: y\n", 2, "launch_file"),
        ("gpu: B200\n", 1, "nothing is launched"),
        ("", 1, "empty"),
        ("- 1\n", 1, "not a list"),
        ("1: 2\n", 1, "not text"),
        ("flags: [1\n", 2, "not YAML"),
        ("a: 1\n---\nb: 2\n", 2, "several documents"),
        ("apiVersion: v1\nkind: Pod\n", 1, "Kubernetes manifest"),
        ("x: &a {b: *a}\n", 1, "an alias stands inside what it names"),
        ("d: 2024-99-99\n", 1, "not YAML"),
        ("flags = {tp_size = 4}\n[expect]\nmin_context = = 3\n", 3, "not TOML"),
        ("flags = {tp_size = 4}\n[expect]\nheadroom = nan\n", 3, "finite"),
        ("flags = 4\n", 1, "a mapping"),
    ],
)
def test_complaints_point_at_their_line(text: str, line: int, says: str) -> None:
    found = complaint(text)
    assert found.startswith(f"plan.yaml:{line}: ")
    assert says in found and "Input should" not in found


@pytest.mark.parametrize(("confidence", "share"), [("", 0.99), (", confidence: mean", 0.0), (", confidence: 0.9", 0.9)])
def test_how_much_of_the_time_a_mix_is_promised(confidence: str, share: float) -> None:
    found = read(f"flags: {{}}\nexpect: {{min_concurrency: 1, contexts: '80%:8k,20%:128k'{confidence}}}\n")
    mix = found.content.expect.wanted.contexts
    assert mix is not None and (mix.confidence, mix.longest) == (share, 131_072)
    assert read("flags: {}\nexpect: {min_concurrency: 1}\n").content.expect.wanted.contexts is None


def test_an_unknown_key_is_shown_in_part() -> None:
    assert "unknown key 'flags." + "y" * 74 + "';" in complaint("flags:\n  " + "y" * 99 + ": 1\n")


def test_nodes_that_flags_repeat_are_the_same() -> None:
    assert read("nodes: 2\nflags: {nnodes: 2}\n").flags == read("nodes: 2\nflags: {}\n").flags == {"nnodes": 2}


def test_the_most_keys_and_the_largest_file(tmp_path: Path) -> None:
    """10,000 keys are read as a mapping, whatever they then are; a file of 1 MiB, too."""
    assert "unknown key" in complaint("flags:\n" + "".join(f"  a{n}: 1\n" for n in range(9_999)))
    path = tmp_path / "a.yaml"
    path.write_text("flags: {tp_size: 4}\n#".ljust(1 << 20, "x"))
    assert read_deployment_file(path).flags == {"tp_size": 4}


def test_what_is_told_of_standard_input_is_told_by_its_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comments and empty lines say nothing of it."""
    for text in ("\n# tp = 4\n[flags]\ntp_size = 4\n", "# x\n\nflags.tp_size = 4\n", "# a = 1\nflags: {tp_size: 4}\n"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        file = read_deployment_file("-")
        assert (file.path, file.flags) == ("stdin", {"tp_size": 4})
    with pytest.raises(PlacedError, match="stdin:1: is empty"):
        parse_deployment("# nothing\n", "stdin", Path())


def test_too_many_keys_and_deep_nesting_are_refused() -> None:
    assert "more than 10,000 keys" in complaint("flags:\n" + "".join(f"  a{n}: 1\n" for n in range(10_001)))
    assert "not YAML" in complaint("a: " + "[" * 5_000)


def test_other_files(tmp_path: Path) -> None:
    def problem(name: str, data: bytes) -> str:
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(InputError) as error:
            read_deployment_file(path)
        return str(error.value)

    assert "ends in .yaml" in problem("plan.txt", b"x")
    assert "not UTF-8" in problem("a.yaml", b"\xff\xfe\x00")
    assert "binary" in problem("b.yaml", b"a\x00b")
    assert "larger than 1 MiB" in problem("c.yaml", b"#" * ((1 << 20) + 1))
    with pytest.raises(InputError, match="cannot be read"):
        read_deployment_file(tmp_path / "missing.yaml")
    with pytest.raises(InputError, match="cannot be read"):
        read_deployment_file(tmp_path / "\0.yaml")


def test_a_byte_order_mark_and_json_are_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({"flags": {"tp_size": 4}}).encode())
    assert read_deployment_file(path).flags == {"tp_size": 4}


def test_toml_lines_pass_over_strings_and_brackets() -> None:
    text = 'a = """\nb = 1\n"""\nc = [\n  1, # ]\n  2,\n]\nd = {x = 1}\n[t."u v"]\ne = "[" # x = 1\nf.g = 2\n'
    assert toml_lines(text) == {
        ("a",): 1,
        ("c",): 4,
        ("d",): 8,
        ("t", "u v"): 9,
        ("t", "u v", "e"): 10,
        ("t", "u v", "f"): 11,
        ("t", "u v", "f", "g"): 11,
    }


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a = [[1,\n2],\n3]\nb = 1\n", {("a",): 1, ("b",): 4}),
        ("a = {b = [\n1]}\nc = 1\n", {("a",): 1, ("c",): 3}),
        ("a = '''\n[x]\nb = 1\n'''\nc = 2\n", {("a",): 1, ("c",): 5}),
        ('a = """x""" # [\nb = 1\n', {("a",): 1, ("b",): 2}),
        ('a = """x"""\nb = """y\n"""\nc = 1\n', {("a",): 1, ("b",): 2, ("c",): 4}),
        ('a = "\\\\"\nb = "\\"[#"\nc = 1\n', {("a",): 1, ("b",): 2, ("c",): 3}),
        ("a = '['\nb = '{' # '\nc = 1\n", {("a",): 1, ("b",): 2, ("c",): 3}),
        ("[[t]] # x\na = 1\n[[t]]\na = 2\n", {("t",): 1, ("t", "a"): 2}),
        ("  [t . u]\n  a . b = 1\n", {("t", "u"): 1, ("t", "u", "a"): 2, ("t", "u", "a", "b"): 2}),
    ],
)
def test_lines_of_toml(text: str, lines: dict[tuple[str, ...], int]) -> None:
    assert toml_lines(text) == lines


def test_a_place_is_that_of_the_nearest_key() -> None:
    lines = {("a",): 3, ("a", "b"): 5}
    assert [line_of(lines, *path) for path in (("a", "b", "c"), ("a", "x"), ("x", "b"), ())] == [5, 3, 1, 1]
    error = PlacedError("plan.yaml", None, "bad\nthing")
    assert (error.line, error.message, error.path) == (1, "bad thing", "plan.yaml")
    assert str(error).startswith("plan.yaml: bad") and str(PlacedError("plan.yaml", 7, "bad")) == "plan.yaml:7: bad"


def test_the_schema_knows_every_flag_and_no_other_key() -> None:
    schema = json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    for engine in map(engine_named, NAMES):
        flags = schema["$defs"][f"{engine.title}Flags"]
        assert set(flags["properties"]) == {flag.name for flag in engine.flags}
    for part in (schema, *schema["$defs"].values()):
        assert part["additionalProperties"] is False
        assert all("default" not in entry for entry in part["properties"].values())


def test_the_committed_schema_is_the_command_s() -> None:
    committed = json.loads((ROOT / "docs" / "deployment.schema.json").read_text(encoding="utf-8"))
    assert committed == json_schema(), "run: kvplan info schema > docs/deployment.schema.json"


def test_the_schema_names_the_cards_and_the_releases_that_are_read() -> None:
    """Every name it offers is one that `gpu` and `engine` take; every card and release is among them."""
    properties = json_schema()["properties"]
    cards, releases = (set(properties[key]["anyOf"][0]["enum"]) for key in ("gpu", "engine"))
    assert set(known_gpus()) | {"local"} <= cards
    assert {find_gpu(name) for name in cards - {"local"}} == set(known_gpus().values())
    named = {name for name in releases if not name.endswith("installed")}
    found = {(find_release(name).engine.name, find_release(name).base_release) for name in named}
    assert found == {(name, release) for name in NAMES for release in engine_named(name).releases()}


def test_the_schema_ties_the_flags_to_the_engine() -> None:
    schema = json_schema()
    for engine, rule in zip(map(engine_named, NAMES), schema["allOf"], strict=True):
        pattern = rule["if"]["properties"]["engine"]["pattern"]
        own = {engine.name, f"{engine.name}-{engine.assumed}"} | (
            {engine.assumed} if engine.name == NAMES[0] else set()
        )
        others = {name for name in NAMES if name != engine.name}
        assert all(re.search(pattern, name) for name in own)
        assert not any(re.search(pattern, name) for name in others)
        assert rule["then"]["properties"]["flags"] == {"$ref": f"#/$defs/{engine.title}Flags"}


VLLM = "engine: vllm-0.33.0\ngpu: H200\nflags:\n  tensor_parallel_size: 4\n"


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        (VLLM, "vllm"),
        ("launch: vllm serve zai-org/GLM-5.3-Flash -tp 4\n", "vllm"),
        ("launch: sglang serve zai-org/GLM-5.3-Flash --tp 4\n", "sglang"),
        ("engine: sglang-0.5.22\nflags: {tp_size: 4}\n", "sglang"),
        ("flags: {tp_size: 4}\n", "sglang"),
    ],
)
def test_the_engine_is_told_by_name_else_by_the_launch(text: str, engine: str) -> None:
    file = read(text)
    assert file.engine is engine_named(engine)
    assert plan_of(file).plan.profile.engine is file.engine


def test_a_launch_file_tells_the_engine_too(tmp_path: Path) -> None:
    (tmp_path / "serve.sh").write_text("exec vllm serve zai-org/GLM-5.3-Flash -tp 8\n")
    (tmp_path / "a.yaml").write_text("launch_file: serve.sh\nflags: {max_model_len: 256K, max_num_seqs: 64}\n")
    made = plan_of(read_deployment_file(tmp_path / "a.yaml")).plan
    deployment = made.deployment
    assert (deployment.tensor_parallel_size, deployment.max_model_len, deployment.max_num_seqs) == (8, 262144, 64)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (VLLM + "  tp_size: 4\n", 5, "did you mean tensor_parallel_size?"),
        (VLLM + "  mem_fraction_static: 0.8\n", 5, "did you mean gpu_memory_utilization?"),
        (VLLM + "  --max-num-seqs: 4\n", 5, "did you mean max_num_seqs?"),
        (VLLM + "  max_num_seqs: x\n", 5, "a whole number"),
        ("flags:\n  tensor_parallel_size: 4\n", 2, "did you mean tp_size?"),
        ("engine: vllm-0.29.0\nflags: {tensor_parallel_size: 4}\n", 1, "0.30.0"),
    ],
)
def test_flags_are_those_of_the_engine(text: str, line: int, says: str) -> None:
    with pytest.raises(PlacedError) as error:
        plan_of(read(text))
    assert str(error.value).startswith(f"plan.yaml:{line}: ")
    assert says in str(error.value)


def test_hosts_are_those_of_either_engine() -> None:
    assert plan_of(read(VLLM + "nodes: 2\n")).plan.hosts == 2
    with pytest.raises(PlacedError, match=r"nodes 2 against flags\.nnodes 4"):
        plan_of(read(VLLM + "  nnodes: 4\nnodes: 2\n"))


def test_another_release_is_one_of_the_same_engine() -> None:
    assert plan_of(read(VLLM), engine="vllm-0.32.0").plan.profile.release == "0.32.0"
    with pytest.raises(PlacedError, match="the file is of vLLM, not SGLang"):
        plan_of(read(VLLM), engine="0.5.22")


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
_KEYS = st.sampled_from(["flags", "memory", "expect", "engine", "gpu", "launch", "nodes", "environment", "x", "source"])
_INNER = st.sampled_from(["tp_size", "tp", "pre_gib", "min_context", "headroom", "tolerate", "kv_cache_dtype", "y"])


@given(st.dictionaries(_KEYS, _VALUES | st.dictionaries(_INNER, _VALUES, max_size=3), max_size=4))
def test_any_data_is_read_or_refused_in_one_line(data: dict[str, object]) -> None:
    try:
        read(json.dumps(data))
    except InputError as error:
        assert str(error).startswith("plan.yaml:")
        assert "\n" not in str(error)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        read(text)
    except InputError as error:
        assert str(error).startswith("plan.yaml")
