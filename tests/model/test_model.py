"""The config loader: the published geometry, other shapes of the family, and configs that contradict themselves."""

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import DATA

from glm_kvplan.errors import InputError
from glm_kvplan.model.config_schema import MOST_LAYERS
from glm_kvplan.model.loader import (
    BUNDLED,
    BUNDLED_REVISION,
    bundled_geometry,
    geometry_from_config,
    load_model,
)

CONFIGS = DATA / "configs"
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
