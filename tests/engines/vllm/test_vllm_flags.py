"""The table of vLLM's flags is vLLM's own: spellings, defaults, choices and releases; and none is read in vain."""

import json
import re
from pathlib import Path

import pytest
from paths import DATA

import glm_kvplan as kv
from glm_kvplan.engines.flag import BOTH, NOTHING, POOLS, WEIGHTS
from glm_kvplan.engines.vllm.flags import FLAG, FLAGS, TABLE
from glm_kvplan.engines.vllm.option_lists import ENGINE_FLAGS
from glm_kvplan.engines.vllm.profile import NEWEST, releases

FOLDER = Path(kv.__file__).parent / "engines" / "vllm"
ENGINES = json.loads(ENGINE_FLAGS.read_text(encoding="utf-8"))
DECLARED = json.loads((DATA / "vllm_declarations.json").read_text(encoding="utf-8"))["fields"]
READ = re.compile(r'\.(?:value|whole|number|text|on|table|keep)\(\s*"(\w+)"|_(?:bytes|gib)\(given, "(\w+)"')
# Read by name from a tuple of them.
IN_TUPLES = {"spec_method", "spec_model", "spec_tokens", "max_cudagraph_capture_size", "cudagraph_capture_sizes"}
# The parser's default is an object, a list or another type than the flag's own "not given".
OTHER_DEFAULTS = {
    "attention_config",
    "compilation_config",
    "additional_config",
    "hf_overrides",
    "kv_cache_dtype_skip_layers",
    "optimization_level",
    "mamba_cache_mode",
}
# What a release's parser takes is more than what the planner can mean; refused where it is read.
WIDER = {"spec_method"}


def spelled(option: str, release: str) -> bool:
    entry = ENGINES["options"].get(option)
    return entry is not None and (not isinstance(entry, list) or release in entry[1])


def test_the_newest_release_is_assumed() -> None:
    assert releases()[-1] == NEWEST
    assert tuple(ENGINES["releases"]) == releases()


def test_every_row_is_whole() -> None:
    assert len(FLAG) == len(TABLE)
    for flag in TABLE:
        assert flag.help and flag.group and flag.options
        assert flag.moves in (WEIGHTS, POOLS, BOTH, NOTHING)
        assert flag.default is None or flag.choices is None or flag.default in flag.choices


@pytest.mark.parametrize("release", releases())
def test_the_table_is_vllms_own(release: str) -> None:
    assert all(spelled(flag.options[0], release) for flag in TABLE)
    for flag in FLAGS:
        rows = [row for row in DECLARED[flag.name] if release in row["releases"]]
        assert len(rows) == 1, flag.name
        if flag.name not in OTHER_DEFAULTS:
            assert flag.default == rows[0]["default"], flag.name
        # 0.33 takes any word as a cache dtype and refuses it later (register_kv_cache_dtype)
        if flag.name not in WIDER and not (flag.name == "kv_cache_dtype" and release == "0.33.0"):
            assert sorted(flag.choices_in(release) or ()) == rows[0].get("choices", []), flag.name


def test_every_spelling_is_one_of_a_release() -> None:
    for flag in TABLE:
        for option in (*flag.options, *flag.negative):
            assert any(spelled(option, release) for release in releases()), option


def test_every_flag_is_read_or_the_table_says_why_not() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (FOLDER / "resolve").glob("*.py")]
    read = {found[1] or found[2] for text in sources for found in READ.finditer(text)} | IN_TUPLES
    for flag in FLAGS:
        assert (flag.name in read) != bool(flag.unread), flag.name
    assert read <= set(FLAG)
