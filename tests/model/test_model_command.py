"""`kvplan info model`: the geometry on the terminal and in JSON."""

import json

import pytest
from paths import DATA

from glm_kvplan.cli import main
from glm_kvplan.engines.sglang.answers.model_page import spans
from glm_kvplan.model.loader import BUNDLED_REVISION

CONFIGS = DATA / "configs"


def kvplan(capsys, *words):
    with pytest.raises(SystemExit) as left:
        main(["info", "model", *words])
    out, err = capsys.readouterr()
    return left.value.code, out, err


def test_model_command_counts_layers_both_ways(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
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
    assert (answer["schema"], answer["schema_version"]) == ("glm-kvplan/info model", 2)
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
