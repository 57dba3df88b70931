"""The config loader: the published geometry, other shapes of the family, and everything that is no config of it."""

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glm_kvplan.cli import main
from glm_kvplan.errors import InputError, KvplanError
from glm_kvplan.model.geometry import Geometry
from glm_kvplan.model.loader import (
    BUNDLED,
    BUNDLED_REVISION,
    bundled_geometry,
    geometry_from_config,
    load_model,
)
from glm_kvplan.model.schema import MOST_LAYERS
from glm_kvplan.report.console import console
from glm_kvplan.report.model_text import spans

CONFIGS = Path(__file__).parent / "data" / "configs"
FULL, LINEAR = "deepseek_sparse_attention", "linear_attention"


def published():
    return json.loads(BUNDLED.read_text(encoding="utf-8"))


def refused(config):
    with pytest.raises(InputError) as caught:
        geometry_from_config(config)
    message = str(caught.value)
    assert "\n" not in message
    return message


# What is published (the article, section on layers; ENGINE_MODEL's constants).


def test_published_layers():
    geometry = bundled_geometry()
    assert geometry.num_hidden_layers == 45
    assert geometry.full_attention_layers == tuple(range(3, 44, 4))
    assert [layer + 1 for layer in geometry.full_attention_layers] == [4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44]
    assert len(geometry.linear_attention_layers) == 34
    assert 44 in geometry.linear_attention_layers  # people's layer 45 is KDA
    assert geometry.index_layers == geometry.full_attention_layers


def test_published_widths_and_shapes():
    geometry = bundled_geometry()
    assert (geometry.latent_width, geometry.qk_rope_head_dim) == (512, 0)
    assert geometry.conv_state_shape == (3, 24576)
    assert geometry.temporal_state_shape == (64, 128, 128)
    assert (geometry.index_topk, geometry.index_kpool, geometry.num_nextn_predict_layers) == (2048, 4, 1)
    assert geometry.max_position_embeddings == 1048576
    assert (geometry.vision.hidden_size, geometry.vision.num_hidden_layers) == (1024, None)


def test_the_bundled_copy_passes_the_schema_it_skips():
    assert geometry_from_config(published()) == bundled_geometry()
    assert load_model(str(BUNDLED)).geometry == bundled_geometry()
    assert BUNDLED_REVISION in load_model().origin and "bundled copy" in load_model().origin


def test_the_bundled_answer_imports_neither_pydantic_nor_the_hub():
    code = (
        "import sys; from glm_kvplan.model.loader import load_model; load_model(); "
        "print([m for m in ('pydantic', 'huggingface_hub', 'torch', 'rich', 'yaml') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


# Other members of the family.


def test_flat_config_of_another_size():
    geometry = load_model(str(CONFIGS / "flat-9-layers.json")).geometry
    assert geometry.full_attention_layers == (1, 4, 7) == geometry.index_layers
    assert geometry.linear_attention_layers == (0, 2, 3, 5, 6, 8)
    assert geometry.latent_width == 256 + 64
    assert geometry.conv_state_shape == (2, 3 * 16 * 64)
    assert geometry.temporal_state_shape == (16, 64, 64)
    assert (geometry.index_kpool, geometry.index_kpool_compress) == (8, False)
    assert geometry.vision is None


def test_nested_config_with_lifted_key_and_shared_indexers():
    geometry = load_model(str(CONFIGS / "nested-9-layers-shared.json")).geometry
    assert geometry.index_kpool_compress is True  # stands at the top level, which the engine reads too
    # max(layer - 1, 0) % 2 is 1 for layer 4 alone; text_config.indexer_types is not read.
    assert geometry.index_layers == (1, 7)
    assert (geometry.vision.hidden_size, geometry.vision.num_hidden_layers) == (768, 12)


@pytest.mark.parametrize(
    ("keys", "layers"),
    [
        ({"index_topk_freq": 4}, []),  # max(3 - 1, 0) % 4 is 2, and so for every layer of 3, 7, ..
        ({"index_topk_freq": 2}, [3, 7, 11, 15, 19, 23, 27, 31, 35, 39, 43]),
        ({"index_topk_freq": 3}, [7, 19, 31, 43]),
        ({"index_topk_freq": 4, "index_skip_topk_offset": 4}, [3, 7, 11, 15, 19, 23, 27, 31, 35, 39, 43]),
        ({"index_topk_freq": 8, "index_skip_topk_offset": 4}, [3, 11, 19, 27, 35, 43]),
        ({"index_topk_pattern": "FFFS" * 2}, list(range(11, 44, 4))),
        ({"index_topk_pattern": "FFFF", "index_topk_freq": 4}, list(range(3, 44, 4))),
        ({"indexer_types": ["shared"] * 45}, list(range(3, 44, 4))),
    ],
)
def test_shared_indexers_own_no_index_buffer(keys, layers):
    config = published()
    config["text_config"] |= keys
    assert list(geometry_from_config(config).index_layers) == layers


@pytest.mark.parametrize(
    ("keys", "layers"),
    [
        ({"indexer_types": ["shared"] * 20}, list(range(23, 44, 4))),
        ({"cli_factor": 3}, [3, 15, 27, 39]),
    ],
)
def test_keys_the_engine_reads_at_the_top_level_only(keys, layers):
    assert list(geometry_from_config(published() | keys).index_layers) == layers


@given(
    kinds=st.lists(st.booleans(), min_size=2, max_size=90).filter(lambda k: any(k) and not all(k)),
    latent=st.integers(1, 16),
    heads=st.integers(1, 256),
    head_dim=st.integers(1, 512),
    kernel=st.integers(1, 9),
)
@settings(max_examples=40, deadline=None)
def test_geometry_follows_the_config(kinds, latent, heads, head_dim, kernel):
    config = published()
    text = config["text_config"]
    full = [layer for layer, sparse in enumerate(kinds) if sparse]
    kda = [layer for layer, sparse in enumerate(kinds) if not sparse]
    text |= {
        "num_hidden_layers": len(kinds),
        "layer_types": [FULL if sparse else LINEAR for sparse in kinds],
        "kv_lora_rank": 128 * latent,
        "linear_attn_config": {
            "full_attn_layers": full[::-1],
            "kda_layers": kda,
            "num_heads": heads,
            "head_dim": head_dim,
            "short_conv_kernel_size": kernel,
        },
    }
    geometry = geometry_from_config(config)
    assert geometry.full_attention_layers == tuple(full) and geometry.linear_attention_layers == tuple(kda)
    assert geometry.latent_width == 128 * latent
    assert geometry.conv_state_shape == (kernel - 1, 3 * heads * head_dim)
    assert geometry.temporal_state_shape == (heads, head_dim, head_dim)
    middle = range(len(kinds) // 3, len(kinds))
    assert geometry.full_attention_in(middle) + geometry.linear_attention_in(middle) == len(middle)
    assert geometry.index_in(middle) == geometry.full_attention_in(middle)


# Missing keys, wrong types, absurd sizes.

READ = [
    "num_hidden_layers",
    "layer_types",
    "linear_attn_config",
    "kv_lora_rank",
    "qk_rope_head_dim",
    "index_head_dim",
    "index_topk",
    "index_kpool",
    "index_kpool_compress",
    "num_attention_heads",
    "num_nextn_predict_layers",
    "max_position_embeddings",
]


@pytest.mark.parametrize("key", READ)
def test_missing_key_is_named_in_full(key):
    config = published()
    del config["text_config"][key]
    assert f"text_config.{key} is missing" in refused(config)
    flat = json.loads((CONFIGS / "flat-9-layers.json").read_text())
    del flat[key]
    assert f": {key} is missing" in refused(flat)


@pytest.mark.parametrize("key", ["full_attn_layers", "kda_layers", "num_heads", "head_dim", "short_conv_kernel_size"])
def test_missing_linear_key_is_named_in_full(key):
    config = published()
    del config["text_config"]["linear_attn_config"][key]
    assert f"text_config.linear_attn_config.{key} is missing" in refused(config)


def test_vision_may_be_absent_but_not_half():
    config = published()
    del config["vision_config"]["hidden_size"]
    assert "vision_config.hidden_size is missing" in refused(config)
    del config["vision_config"]
    assert geometry_from_config(config).vision is None


@pytest.mark.parametrize("value", ["512", 512.0, True, None, float("nan"), float("inf"), -512, 10**18, [512], {}])
def test_a_width_is_a_whole_number_in_bounds(value):
    config = published()
    config["text_config"]["kv_lora_rank"] = value
    assert "text_config.kv_lora_rank is " in refused(config)


def test_other_wrong_values():
    for key, value, words in [
        ("num_hidden_layers", 10**18, f"less than or equal to {MOST_LAYERS}"),
        ("num_hidden_layers", 10**5000, "too many digits"),
        ("index_kpool_compress", 1, "must be true or false"),
        ("index_kpool", 0, "index_kpool"),
        ("layer_types", "linear_attention", "must be a JSON array"),
        ("layer_types", [LINEAR] * 5000, "layer_types"),
        ("index_topk_freq", 0, "index_topk_freq"),
        ("qk_rope_head_dim", -1, "qk_rope_head_dim"),
        ("linear_attn_config", [], "must be a JSON object"),
    ]:
        config = published()
        config["text_config"][key] = value
        assert words in refused(config)


def test_linear_heads_are_at_least_one():
    config = published()
    config["text_config"]["linear_attn_config"]["num_heads"] = 0
    assert "text_config.linear_attn_config.num_heads is 0; " in refused(config)


def test_zero_head_dims_are_values():
    config = published()
    assert config["text_config"]["head_dim"] == 0 and config["text_config"]["qk_rope_head_dim"] == 0
    assert geometry_from_config(config).latent_width == 512


# Parts that contradict each other, each with its own words.


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t, c: t["layer_types"].pop(), "layer_types names 44 layers, num_hidden_layers says 45"),
        (lambda t, c: t.update(num_hidden_layers=46), "layer_types names 45 layers, num_hidden_layers says 46"),
        (lambda t, c: t["layer_types"].__setitem__(5, "full_attention"), "layer_types[5] is 'full_attention'"),
        (
            lambda t, c: t["layer_types"].__setitem__(3, LINEAR),
            "layer 3 is in linear_attn_config.full_attn_layers, but",
        ),
        (lambda t, c: t["layer_types"].__setitem__(4, FULL), "layer 4 is in linear_attn_config.kda_layers, but"),
        (lambda t, c: c["full_attn_layers"].append(47), "full_attn_layers names layer 47; num_hidden_layers is 45"),
        (lambda t, c: c["kda_layers"].append(8), "names layer 8 2 times"),
        (lambda t, c: c["kda_layers"].remove(44), "layer 44 is in neither"),
        (lambda t, c: c["full_attn_layers"].clear(), "full_attn_layers is empty"),
        (lambda t, c: c["kda_layers"].clear(), "kda_layers is empty"),
        (lambda t, c: t.update(kv_lora_rank=576), "kv_lora_rank is 576; it must be a multiple of 128"),
        (lambda t, c: t.update(index_head_dim=64), "index_head_dim is 64; it must be a multiple of 128"),
        (lambda t, c: t.update(index_topk=2046), "index_topk 2046 is not a multiple of index_kpool 4"),
        (lambda t, c: t.update(index_kpool=128), "index_kpool 128 does not divide the page of 64 tokens"),
    ],
)
def test_contradictions(change, words):
    config = published()
    change(config["text_config"], config["text_config"]["linear_attn_config"])
    assert words in refused(config)


@pytest.mark.parametrize(
    "keys",
    [
        {"architectures": ["DeepseekV32ForCausalLM"]},
        {"architectures": ["Glm5NextForConditionalGenerationNextN"]},
        {"architectures": []},
        {"architectures": 5},
        {"architectures": [["\ud800\n"]]},
        {"model_type": "glm4_moe"},
        {"architectures": None, "model_type": None},
    ],
)
def test_another_architecture_is_refused_by_name(keys):
    message = refused(published() | keys)
    assert "Glm5NextForConditionalGeneration" in message
    for value in keys.values():
        if value and value != 5:
            assert (value if isinstance(value, str) else repr(value[0])) in message


def test_text_config_that_is_no_object():
    assert "text_config is [1]; it must be a JSON object" in refused(published() | {"text_config": [1]})


# Files.


def write(tmp_path, data, name="config.json"):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return str(path)


TEXT = BUNDLED.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("model:\n  layers: 45\n", "is not JSON"),
        (TEXT[:-40], "is not JSON"),
        ("[1, 2]", "is an array"),
        ('"text"', "is a string"),
        ("null", "is null"),
        ("7", "is a number or a boolean"),
        (TEXT.replace('"kv_lora_rank": 512', '"kv_lora_rank": NaN'), "holds NaN"),
        (TEXT.replace('"kv_lora_rank": 512', '"kv_lora_rank": -Infinity'), "holds -Infinity"),
        (TEXT.replace('"kv_lora_rank": 512', '"kv_lora_rank": 1e999'), "text_config.kv_lora_rank is inf"),
        (TEXT.replace('"kv_lora_rank": 512', '"kv_lora_rank": ' + "9" * 5000), "too many digits"),
        (TEXT.replace('"kv_lora_rank": 512', '"kv_lora_rank": "512"'), "text_config.kv_lora_rank is '512'"),
        ("[" * 200_000, "nested too deeply"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested too deeply"),
        (b"\xef\xbb\xbf" + TEXT.encode(), "UTF-8 byte-order mark"),
        (TEXT.encode("utf-16"), "UTF-16 byte-order mark"),
        (TEXT.encode("latin-1")[:50] + b"\xff\xfe", "is not UTF-8"),
        (b"\x00" * 64, "is not JSON"),
        (TEXT.encode("utf-16-le"), "is not JSON"),
    ],
)
def test_bad_files_are_one_line(tmp_path, data, words):
    path = write(tmp_path, data)
    with pytest.raises(InputError) as caught:
        load_model(path)
    message = str(caught.value)
    assert words in message and message.startswith(path) and "\n" not in message and len(message) < 600


def test_a_key_given_twice_is_a_warning_and_the_last_counts(tmp_path):
    twice = TEXT.replace('"kv_lora_rank": 512', '"kv_lora_rank": 256, "kv_lora_rank": 384')
    model = load_model(write(tmp_path, twice))
    assert model.geometry.kv_lora_rank == 384
    assert len(model.warnings) == 1 and "'kv_lora_rank' stands more than once" in model.warnings[0]


def test_a_rope_factor_is_a_warning(tmp_path):
    config = published()
    config["text_config"]["rope_scaling"] = {"factor": 4.0, "rope_type": "yarn"}
    assert "--context-length" in load_model(write(tmp_path, json.dumps(config))).warnings[0]


def test_a_huge_file_is_refused_unread(tmp_path):
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(InputError, match="100000000 bytes"):
        load_model(str(path))


def test_directories(tmp_path):
    write(tmp_path, TEXT)
    assert load_model(str(tmp_path)).geometry == bundled_geometry()
    assert load_model(str(tmp_path)).origin == str(tmp_path / "config.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="is a directory without config"):
        load_model(str(tmp_path / "empty"))
    (tmp_path / "odd" / "config.json").mkdir(parents=True)
    with pytest.raises(InputError, match="not a regular file"):
        load_model(str(tmp_path / "odd"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
def test_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "config.json")
    for source in (tmp_path, tmp_path / "config.json", Path("/dev/zero")):
        with pytest.raises(InputError, match="not a regular file"):
            load_model(str(source))


def test_an_unreadable_file(tmp_path, monkeypatch):
    path = write(tmp_path, TEXT)

    def denied(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)  # the superuser may read everything, so permissions prove nothing
    with pytest.raises(InputError, match=r"cannot be read \(Permission denied\)"):
        load_model(path)


@pytest.mark.parametrize(
    "source",
    [
        *("", "  ", "./nowhere", "nowhere", "/no/such/config.json", "models/config.json", "~nobody-here/x", "a/b/c"),
        *("https://huggingface.co/zai-org/GLM-5.3-Flash", "x" * 5000, "-/x", "é/x", "a\0b", "\udcff", "a\nb"),
    ],
)
def test_what_is_neither_a_path_nor_a_hub_id(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        load_model(source)
    assert "\n" not in str(caught.value) and "\0" not in str(caught.value)


def test_a_revision_goes_with_the_hub_only(tmp_path):
    for source in (None, write(tmp_path, TEXT)):
        with pytest.raises(InputError, match="--revision goes with a Hub id"):
            load_model(source, revision="main")


def test_an_existing_path_wins_over_a_hub_id(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "name").mkdir(parents=True)
    write(tmp_path / "org" / "name", TEXT)
    assert load_model("org/name").origin == str(Path("org", "name", "config.json"))


# `kvplan model`.


def kvplan(capsys, *words):
    with pytest.raises(SystemExit) as left:
        main(["model", *words])
    out, err = capsys.readouterr()
    return left.value.code, out, err


def test_model_command_counts_layers_both_ways(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    console.cache_clear()
    code, out, err = kvplan(capsys)
    assert (code, err) == (0, "")
    words = " ".join(out.split())
    assert BUNDLED_REVISION in words
    assert "full attention 11 3, 7, 11" in words and "4, 8, 12" in words
    for shown in ("3 x 24,576", "64 x 128 x 128", "512 wide", "132 B", "1,024 B bf16", "528 B FP8", "own indexer"):
        assert (shown in words) is (shown != "own indexer")
    assert all(len(line) <= 80 for line in out.splitlines())
    _, shared, _ = kvplan(capsys, "--model", str(CONFIGS / "nested-9-layers-shared.json"))
    assert "own indexer 2 1, 7 2, 8" in " ".join(shared.split())


def test_model_command_in_json(capsys):
    code, out, err = kvplan(capsys, "--json")
    answer = json.loads(out)
    assert (code, err) == (0, "")
    assert (answer["schema"], answer["schema_version"]) == ("glm-kvplan/model", 1)
    assert answer["layers"]["count"] == 45 and answer["layers"]["full_attention"] == list(range(3, 44, 4))
    assert answer["layers"]["linear_attention"][-1] == 44
    assert answer["latent_row"]["bytes"] == {"bf16": 1024, "fp8_scaled": 528, "fp8_raw": 512}
    assert answer["index_key"]["bytes"] == 132
    assert answer["state"]["conv_shape"] == [3, 24576] and answer["state"]["temporal_shape"] == [64, 128, 128]


@pytest.mark.parametrize("words", [["--model", "./nowhere"], ["--revision", "main"], ["--", "sglang", "serve"]])
def test_model_command_fails_in_one_line(capsys, words):
    code, out, err = kvplan(capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith("kvplan: ") and err.count("\n") == 1


def test_runs_of_layers_are_joined():
    assert spans((0, 1, 2, 4, 5, 8), 0) == "0-2, 4-5, 8"
    assert spans((0, 1, 2, 4, 5, 8), 1) == "1-3, 5-6, 9"
    assert spans((), 0) == "none"


# Anything at all.

SMALL = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
VALUES = st.recursive(SMALL, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=5), v, max_size=3))


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


PLACES = [path for path in places(published()) if path]
NUMBERS = st.sampled_from([0, 1, 2, 3, 44, 45, 64, 128, 2**31, 2**63, 10**18, -1])
NEW_KEYS = st.sampled_from(
    ["index_topk_freq", "index_topk_pattern", "index_skip_topk_offset", "indexer_types", "cli_factor", "rope_scaling"]
)


@given(
    edits=st.lists(st.tuples(st.sampled_from(PLACES), st.just("delete") | VALUES | NUMBERS), max_size=3),
    added=st.dictionaries(NEW_KEYS, VALUES | NUMBERS, max_size=2),
    flat=st.booleans(),
)
@settings(max_examples=250, deadline=None)
def test_any_config_is_a_geometry_or_one_of_our_errors(edits, added, flat):
    config = published()
    for path, value in edits:
        parent = config
        try:
            for key in path[:-1]:
                parent = parent[key]
            if value == "delete":
                del parent[path[-1]]
            else:
                parent[path[-1]] = copy.deepcopy(value)
        except (KeyError, IndexError, TypeError, AttributeError):
            continue  # an earlier edit has removed the place
    text = config.get("text_config")
    (text if isinstance(text, dict) else config).update(added)
    if flat and isinstance(text, dict):
        config = config | config.pop("text_config")
    try:
        geometry = geometry_from_config(config)
    except KvplanError as error:
        assert "\n" not in str(error)
    else:
        assert isinstance(geometry, Geometry)
        assert set(geometry.index_layers) <= set(geometry.full_attention_layers)
        assert geometry.latent_width > 0 and geometry.num_hidden_layers <= MOST_LAYERS


@given(data=st.binary(max_size=200) | VALUES.map(lambda v: json.dumps(v).encode()))
@settings(max_examples=80, deadline=None)
def test_any_bytes_are_one_of_our_errors(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(data)
    with pytest.raises(InputError):
        load_model(str(path))
