"""config.json as a file: where it may lie, and everything that is no config.json."""

import json
import os
from pathlib import Path

import pytest

from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.saved_plan import plan_document
from glm_kvplan.errors import InputError
from glm_kvplan.model.loader import BUNDLED, bundled_geometry, load_model


def published():
    return json.loads(BUNDLED.read_text(encoding="utf-8"))


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


@pytest.mark.parametrize("named", ["", "config.json"])
def test_a_saved_deployment_names_the_model_where_it_lies(named, tmp_path):
    """Its weights are those of its own config.json, here BF16, also when the file is read again."""
    config = {name: value for name, value in load_model().config.items() if name != "quantization_config"}
    folder = tmp_path / "glm"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    made = plan({"tp_size": 8}, model=str(folder / named), gpu="h200")
    assert made.weight_format.format == "bf16"
    saved = plan_document(made, None)
    assert saved["model"] == str(folder)
    assert plan({"tp_size": 8}, model=str(saved["model"]), gpu="h200").weight_format.format == "bf16"
    assert plan_document(plan({"tp_size": 8}, gpu="h200"), None)["model"] == "zai-org/GLM-5.3-Flash"
