"""Random changes to the published config, and random bytes: a geometry or one of our errors, nothing else."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glm_kvplan.errors import InputError, KvplanError
from glm_kvplan.model.config_schema import MOST_LAYERS
from glm_kvplan.model.geometry import Geometry
from glm_kvplan.model.loader import BUNDLED, geometry_from_config, load_model


def published():
    return json.loads(BUNDLED.read_text(encoding="utf-8"))


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
