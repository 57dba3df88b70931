"""Launch scripts and the engine's YAML on disk, and the weight format a launch implies."""

import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glm_kvplan.engines.launches import LaunchCommand
from glm_kvplan.engines.planner import plan, read_launch
from glm_kvplan.engines.protocol import Command
from glm_kvplan.engines.servers import SERVERS
from glm_kvplan.engines.sglang.launch_command import read_launch_command
from glm_kvplan.engines.weight_format import weight_format
from glm_kvplan.errors import InputError, KvplanError
from glm_kvplan.launch.launch_file import read_launch_file


def _with_yaml(tmp_path: Path, yaml: str, flags: str = "", release: str = "0.5.21") -> LaunchCommand:
    path = tmp_path / "server.yaml"
    path.write_text(yaml, encoding="utf-8")
    return read_launch_command(["sglang", "serve", "x", *flags.split(), "--config", str(path)], release)


def _read_file(path: str | Path) -> Command:
    return read_launch(read_launch_file(path, SERVERS), None).command


def test_script_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "export SGLANG_MAMBA_CONV_DTYPE=float32\nsglang serve zai-org/GLM-5.3-Flash \\\n  --tp 4\n"
    path = tmp_path / "run.sh"
    path.write_text(script, encoding="utf-8")
    command = _read_file(path)
    assert command.flags == {"tp_size": 4}
    assert command.environment == {"SGLANG_MAMBA_CONV_DTYPE": "float32"}
    assert command.positions == {"tp_size": "line 3"}
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(script.encode())))
    assert _read_file("-") == command


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"sglang serve x \xff\xfe", "not UTF-8"),
        (b"\x7fELF\x00\x01", "NUL"),
        (b"# " + b"x" * (10 << 20), "larger than 10 MiB"),
        (b"", "empty"),
        (b"sglang serve 'x", "never closed"),
    ],
)
def test_unusable_script_files(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "run.sh"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message):
        _read_file(path)


def test_missing_files(tmp_path: Path) -> None:
    for path in (tmp_path / "none.sh", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            _read_file(path)
    with pytest.raises(InputError, match="cannot be read"):
        _read_file("a\0b")
    with pytest.raises(InputError, match=r"--config .*none.yaml: cannot be read"):
        read_launch_command(["sglang", "serve", "x", "--config", str(tmp_path / "none.yaml")])


def test_the_command_line_wins_over_the_yaml(tmp_path: Path) -> None:
    yaml = (
        "model-path: zai-org/GLM-5.3-Flash\nrevision: main\ntensor-parallel-size: 8\nmem-fraction-static: 0.8\n"
        "enable-dp-attention: true\ndisable-radix-cache: false\nhost: 0.0.0.0\nmax-total-tokens: 128Ki\n"
        "cuda-graph-bs-decode: [1, 2, 4]\njson-model-override-args: {rope_scaling: null}\nlora-target-modules: []\n"
    )
    path = tmp_path / "server.yaml"
    path.write_text(yaml, encoding="utf-8")
    launch = ["python", "-m", "sglang.launch_server", "--config", str(path), "--tp", "4"]
    command = read_launch_command(launch)
    assert command.flags == {
        "tp_size": 4,
        "mem_fraction_static": 0.8,
        "enable_dp_attention": True,
        "max_total_tokens": 131072,
        "cuda_graph_bs_decode": [1, 2, 4],
        "json_model_override_args": {"rope_scaling": None},
    }
    assert (command.model, command.revision) == ("zai-org/GLM-5.3-Flash", "main")
    assert command.positions["tp_size"] == "word 6"
    assert command.positions["mem_fraction_static"] == "server.yaml"
    assert (command.ignored, command.unknown) == (1, ())


def test_a_key_that_is_no_flag_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"server\.yaml: unknown to engine .*: --made-up"):
        _with_yaml(tmp_path, "made-up: 3\n")


def test_yaml_spellings(tmp_path: Path) -> None:
    command = _with_yaml(tmp_path, "tp_size: 8\n")
    assert command.flags == {"tp_size": 8}
    assert "the engine wants dashes" in command.warnings[0]
    assert _with_yaml(tmp_path, "").flags == {}
    assert _with_yaml(tmp_path, "enable-hicache: true", release="0.5.23").flags == {"enable_hierarchical_cache": True}
    assert _with_yaml(tmp_path, "mm-enable-dp-encoder: true").flags == {"mm_enable_dp_encoder": True}


@pytest.mark.parametrize(
    ("yaml", "release", "message"),
    [
        ("- tp-size\n- 8\n", "0.5.21", "must be a mapping of flag to value, not a list"),
        ("just text", "0.5.21", "must be a mapping"),
        ("tp-size: [", "0.5.21", "not YAML at line"),
        ("a: !!python/object/apply:os.getcwd []", "0.5.21", "not YAML"),
        ("tp-size: eight", "0.5.21", "server.yaml: --tp-size 'eight' is not accepted"),
        ("tp-size: 8.5", "0.5.21", "'8.5' is not accepted"),
        ("tp-size: true", "0.5.21", "'true' is not accepted"),
        ("json-model-override-args: {2020-01-01: x}", "0.5.21", "json-model-override-args: a key .* is not text"),
        ("tp-size: 0x" + "f" * 5000, "0.5.21", "not YAML at line 1: a number of 5002 characters"),
        ("tp-size:", "0.5.21", "tp-size: has no value"),
        ("3: 4", "0.5.21", "is not a flag's name"),
        ("disable-radix-cache: 1", "0.5.21", "takes no value"),
        ("disable-cuda-graph: true", "0.5.21", "on the command line only"),
        ("enable-dp-attention: true", "0.5.22", "on the command line only"),
        ("mm-enable-dp-encoder: true", "0.5.23", "on the command line only"),
        ("kv-cache-dtype: fp9", "0.5.21", "fp8_e4m3"),
    ],
)
def test_bad_yaml(tmp_path: Path, yaml: str, release: str, message: str) -> None:
    path = tmp_path / "server.yaml"
    path.write_text(yaml, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        read_launch_command(["python", "-m", "sglang.launch_server", "--config", str(path)], release)
    assert "\n" not in str(caught.value)


def test_a_model_named_in_the_yaml_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "server.yaml"
    path.write_text("model-path: Qwen/Qwen3-8B\n", encoding="utf-8")
    with pytest.raises(InputError, match="another model"):
        plan(launch=["sglang", "serve", "--config", str(path)])


def test_the_engine_takes_yaml_names_only() -> None:
    with pytest.raises(InputError, match=r"a \.yaml or \.yml file only"):
        read_launch_command("sglang serve x --config server.json")


@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=60) | st.lists(st.sampled_from(list("-:[]{}&*!| \n\"'#tp8")), max_size=30).map("".join))
def test_any_yaml_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text, encoding="utf-8", errors="replace")
    try:
        read_launch_command(["sglang", "serve", "x", "--config", str(path)])
    except KvplanError as error:
        assert "\n" not in str(error)


# The weight format.

_FP8 = {"quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}}
_NVFP4 = {"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}
_INT4 = {"weights": {"num_bits": 4, "type": "int", "group_size": 128}, "targets": ["Linear"]}
_W4A16 = {"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0": _INT4}}}
_NVFP4_CT = {"quantization_config": {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}}


@pytest.mark.parametrize(
    ("flags", "config", "model", "expected"),
    [
        ({}, _FP8, None, "fp8"),
        ({}, _NVFP4, None, "nvfp4"),
        ({}, _W4A16, None, "w4a16"),
        ({}, _NVFP4_CT, None, "nvfp4"),
        ({}, {"quantization_config": {"quant_method": "quark"}}, None, "quark"),
        ({}, {"quantization_config": {"quant_method": "mxfp4"}}, None, "mxfp4"),
        ({}, {"text_config": _FP8}, None, "fp8"),
        ({}, {"model_type": "x"}, None, "bf16"),
        ({"quantization": "modelopt_fp4"}, _FP8, None, "fp8"),
        ({"quantization": "modelopt_fp4"}, None, None, "nvfp4"),
        ({"quantization": "compressed-tensors"}, None, "a/GLM-5.3-Flash-W4A16", "w4a16"),
        ({"quantization": "compressed-tensors"}, None, "a/GLM-5.3-Flash", "compressed-tensors"),
        ({}, None, "someone/GLM-5.3-Flash-NVFP4", "nvfp4"),
        ({}, None, "/models/GLM-5.3-Flash-AWQ-4bit", "w4a16"),
        ({}, None, "/models/glm-5.3-flash-MXFP4/", "mxfp4"),
        ({}, None, "x/GLM-5.3-Flash-BF16", "bf16"),
        ({}, None, "x/GLM-5.3-Flash-FP8", "fp8"),
        ({}, None, "zai-org/GLM-5.3-Flash", "fp8"),
        ({}, None, None, "fp8"),
    ],
)
def test_weight_format(
    flags: dict[str, object], config: dict[str, object] | None, model: str | None, expected: str
) -> None:
    found = weight_format(flags, config, model)
    assert found.format == expected
    assert found.reason
    named = model is not None and found.reason.startswith("the name")
    assert found.assumed == (not flags and config is None and not named)


def test_the_bundled_config_says_fp8() -> None:
    from glm_kvplan.model.loader import BUNDLED

    config = json.loads(BUNDLED.read_text(encoding="utf-8"))
    assert weight_format({}, config).format == "fp8"


def test_changed_flags_change_the_weight_format() -> None:
    """/models/ckpt is not here: its own config.json cannot say how it is stored, the flag may."""
    first = plan(launch="sglang serve /models/ckpt --tp 4", gpu="h200")
    assert (first.weight_format.format, first.weight_format.assumed) == ("fp8", True)
    packed = first.with_flags(quantization="modelopt_fp4")
    assert packed.weight_format.format == "nvfp4"
    assert packed.with_flags(quantization=None) == first
    assert len(first.notes) == 1 and first.notes[0].startswith("/models/ckpt")
