"""No launch flag is accepted and then forgotten, none is read that cannot be given, and the table is the engine's."""

import ast
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from paths import DATA

import glm_kvplan as kv
from glm_kvplan.engines.flag import BOTH, NOTHING, POOLS, WEIGHTS
from glm_kvplan.engines.sglang.boot_log.log_releases import steps
from glm_kvplan.engines.sglang.environment import ENVIRONMENT
from glm_kvplan.engines.sglang.flags import FLAG, FLAGS, TABLE
from glm_kvplan.engines.sglang.option_lists import ENGINE_FLAGS
from glm_kvplan.engines.sglang.profile import releases
from glm_kvplan.engines.sglang.start_flags import START_FLAGS

PACKAGE = Path(kv.__file__).parent
ENGINE = PACKAGE / "engines" / "sglang"
ENGINES = json.loads(ENGINE_FLAGS.read_text(encoding="utf-8"))
DECLARED = json.loads((DATA / "engine_declarations.json").read_text(encoding="utf-8"))["fields"]
# Declared as None and filled in before anything reads it.
FILLED_IN = {"mamba_full_memory_ratio": 0.9, "json_model_override_args": None, "mm_enable_dp_encoder": None}
# What reading a flag looks like: in a rule, of the resolved deployment, of the flags as given.
READ = re.compile(r'\b(?:a|deployment)\.(\w+)|\b(?:flags|given)\.get\("(\w+)"')
# Modules that name several flags at once without saying what a flag is.
OTHER_TABLES = {
    "engines/sglang/deployment.py",  # the values of a deployment made by hand
    "engines/sglang/moves.py",  # what can be turned, and to what
    "engines/sglang/sizing/split.py",  # what advice types
}
SOURCES = {
    path: path.read_text(encoding="utf-8") for path in ENGINE.rglob("*.py") if path.name not in ("flag.py", "flags.py")
}


def test_every_flag_is_read_or_the_table_says_why_not() -> None:
    read = {found[1] or found[2] for text in SOURCES.values() for found in READ.finditer(text)}
    for flag in FLAGS:
        assert (flag.name in read or bool(flag.unplanned)) != bool(flag.unread), flag.name


def test_no_flag_is_read_that_cannot_be_given() -> None:
    read = re.compile(r'flags\.get\("(\w+)"|"(\w+)" in \w+\.flags')
    for path, text in SOURCES.items():
        for found in read.finditer(text):
            assert (found[1] or found[2]) in FLAG, path


def tables(tree: ast.Module) -> Iterator[set[str]]:
    """Flags named together in one literal of a module: its tuples, sets and dictionaries, functions aside."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            for node in ast.walk(statement):
                keys = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", ())
                yield {key.value for key in keys if isinstance(key, ast.Constant) and key.value in FLAG}


def test_no_other_module_keeps_a_table_of_flags() -> None:
    found = {
        str(path.relative_to(PACKAGE))
        for path, text in SOURCES.items()
        if "vllm" not in path.parts and any(len(names) > 2 for names in tables(ast.parse(text)))
    }
    assert found <= OTHER_TABLES


def test_every_row_is_whole() -> None:
    assert len(FLAG) == len(TABLE)
    for flag in TABLE:
        assert flag.help and flag.group
        assert flag.moves in (WEIGHTS, POOLS, BOTH, NOTHING)
        assert bool(flag.options) == (flag.role != "decided")
        assert not flag.under or FLAG[flag.under].kind == "flag"
        assert flag.default is None or flag.choices is None or flag.default in flag.choices


# Not planned, or read of the draft model alone, whose own lines show it.
UNSHOWN = {"int8_mamba_ckpt_size", "json_model_override_args", "draft_config", "speculative_draft_window_size"}


def test_a_flag_that_moves_the_pools_is_seen_among_the_choices() -> None:
    """Itself, or what rules make of it (`multimodal` is seen in the reserve)."""
    for flag in FLAGS:
        if set(POOLS) <= set(flag.moves) and flag.name not in UNSHOWN | {"enable_multimodal"}:
            assert flag.shown or any(FLAG[name].shown for name in flag.becomes.split()), flag.name


def test_every_variable_is_read_or_the_table_says_why_not() -> None:
    rules = "".join(text for path, text in SOURCES.items() if "resolve" in path.parts)
    for name, variable in ENVIRONMENT.items():
        assert variable.name == name and variable.help
        assert (f'"{name}"' in rules) != bool(variable.unread), name
    for name in re.findall(r'"(SGLANG_[A-Z_]+)"', rules):
        assert name in ENVIRONMENT


@pytest.mark.parametrize("release", ENGINES["releases"])
def test_the_table_is_the_engines_own_list(release: str) -> None:
    """Spellings against the argument parser of the release, defaults and choices against its declarations."""
    assert tuple(ENGINES["releases"]) == releases()
    for flag in TABLE:
        if flag.role not in ("flag", "named", "beside"):
            continue
        entry = ENGINES["options"].get(flag.option)
        has = entry is not None and (not isinstance(entry, list) or release in entry[1])
        if flag.role != "flag":
            assert flag.exists_in(release) == has, flag.name
            continue
        declared = [row for row in DECLARED[flag.name] if release in row["releases"]]
        assert flag.exists_in(release) == has == bool(declared), flag.name
        for row in declared:
            assert flag.default == FILLED_IN.get(flag.name, row["default"]), flag.name
            assert sorted(flag.choices_in(release) or ()) == row.get("choices", []), flag.name


@pytest.mark.parametrize(
    "flags",
    [
        {"json_model_override_args": {"max_position_embeddings": 4096}},
        {"speculative_algorithm": "EAGLE", "speculative_draft_kv_cache_dtype": "bf16"},
        {"speculative_algorithm": "EAGLE", "speculative_draft_model_quantization": "fp8"},
        {"cpu_offload_gb": 4},
        {"enable_int8_mamba_checkpoint": True},
    ],
    ids=str,
)
def test_what_is_not_planned_is_said(flags: dict[str, object]) -> None:
    said = " ".join(kv.plan(flags, gpu="h200").deployment.warnings)
    assert next(reversed(flags)).replace("_", "-") in said


def test_flags_of_the_start_checks_are_the_engines() -> None:
    """Kinds against the argument parser; every one is read by a check."""
    text = "".join(path.read_text(encoding="utf-8") for path in (PACKAGE / "engines/sglang/resolve").rglob("*.py"))
    for flag in START_FLAGS:
        takes = ENGINES["options"][flag.option]
        takes = takes[0] if isinstance(takes, list) else takes
        assert (takes == 0) == (flag.kind in ("flag", "switch")), flag.name
        assert (takes in ("+", "*")) == (flag.kind == "words"), flag.name
        kind = ENGINES["kinds"].get(flag.option, "str")
        assert flag.kind in (kind, "flag", "switch", "words", "present"), flag.name
        assert f"a.{flag.name}" in text or flag.unplanned, flag.name


def test_what_a_log_s_arguments_tell_of_its_release() -> None:
    """A field is new or gone in a release just where the engine's declarations begin or end."""
    seen = 0
    for before, release in pairwise(releases()):
        step = steps()[release]
        for name, rows in DECLARED.items():
            declared = {one for row in rows for one in row["releases"]}
            assert (name in step.new) == (before not in declared and release in declared), (name, release)
            assert (name in step.gone) == (before in declared and release not in declared), (name, release)
            seen += len({before, release} & declared) == 1
    assert seen >= 5
