"""The table of vLLM's flags is vLLM's own: spellings, defaults, choices and releases; and none is read in vain."""

import json
import re
from pathlib import Path

import pytest
from paths import DATA

import glm_kvplan as kv
from glm_kvplan.engines.flag import BOTH, NOTHING, POOLS, WEIGHTS, check_value
from glm_kvplan.engines.vllm.flags import FLAG, FLAGS, TABLE
from glm_kvplan.engines.vllm.option_lists import ENGINE_FLAGS
from glm_kvplan.engines.vllm.profile import NEWEST, releases
from glm_kvplan.errors import InputError

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
    for flag in TABLE:
        if flag.role == "named":
            continue
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


def test_every_opposite_that_vllm_spells_is_taken() -> None:
    """--no-x of every switch; --disable-x of --enable-x and the other way, where a release has it."""
    switches = [flag for flag in TABLE if flag.kind == "switch"]
    assert len(switches) >= 12
    for flag in switches:
        word = flag.options[0].removeprefix("--").removeprefix("enable-").removeprefix("disable-")
        known = {f"--{prefix}{word}" for prefix in ("enable-", "disable-", "no-enable-", "no-disable-", "no-")}
        known = {option for option in known if any(spelled(option, release) for release in releases())}
        assert set(flag.negative) == known - set(flag.options), flag.name


def accepted(name: str, value: object) -> bool:
    try:
        check_value(FLAG[name], value)
    except InputError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        *((name, 1, 1 << 16) for name in ("tensor_parallel_size", "data_parallel_size", "nnodes")),
        *((name, 1, 1 << 16) for name in ("decode_context_parallel_size", "prefill_context_parallel_size")),
        ("block_size", 1, 1 << 24),
        ("max_model_len", -1, 1 << 48),
        ("max_num_seqs", 1, 1 << 48),
        ("kv_cache_memory_bytes", 0, 1 << 50),
        ("num_gpu_blocks_override", 0, 1 << 48),
        ("max_cudagraph_capture_size", 0, 1 << 48),
        ("offload_group_size", 0, 1 << 48),
        ("spec_tokens", 1, 1 << 48),
    ],
)
def test_numbers_lie_between_their_bounds(name: str, least: int, most: int) -> None:
    found = [accepted(name, value) for value in (least - 1, least, most, most + 1)]
    assert found == [False, True, True, False]


def test_fractions_lie_above_their_bound() -> None:
    """Of gigabytes the resolver itself refuses what is negative, in its own words."""
    assert [accepted("gpu_memory_utilization", value) for value in (0, 0.001, 1, 1.001)] == [False, True, True, False]
    for name in ("mm_ipc_gpu_memory_gb", "cpu_offload_gb"):
        assert [accepted(name, value) for value in (-1, -0.99, 0, 80.5)] == [False, True, True, True]


def test_rows_by_their_role_and_panel() -> None:
    roles = {role: [flag.name for flag in TABLE if flag.role == role] for role in ("named", "beside")}
    assert roles["named"] == ["model", "revision", "served_model_name", "config"]
    assert {flag.role for flag in TABLE} == {"flag", *roles}
    beside = {
        "enable_lora",
        "enable_eplb",
        "enable_dbo",
        "enable_sleep_mode",
        "offload_group_size",
        "kv_transfer_config",
    }
    assert set(roles["beside"]) == beside
    assert list(dict.fromkeys(flag.group for flag in TABLE)) == [
        "parallel layout", "tokens and blocks", "state", "requests", "speculation", "memory", "names",
        "memory that is not planned",
    ]  # fmt: skip


def test_every_flag_is_read_or_the_table_says_why_not() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (FOLDER / "resolve").glob("*.py")]
    read = {found[1] or found[2] for text in sources for found in READ.finditer(text)} | IN_TUPLES
    for flag in FLAGS:
        assert (flag.name in read) != bool(flag.unread), flag.name
    assert read <= set(FLAG)
