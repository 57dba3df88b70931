"""vLLM's launch command as people type it: read as its own parser reads it (utils/argparse_utils.py)."""

import argparse
from pathlib import Path

import pytest

import glm_kvplan as kv
from glm_kvplan.engines.option_words import find_option
from glm_kvplan.engines.vllm.launch_command import LaunchCommand, read_launch_command
from glm_kvplan.engines.vllm.option_lists import option_table
from glm_kvplan.errors import InputError
from glm_kvplan.launch.marked_words import Word

MODEL = "zai-org/GLM-5.3-Flash"
MTP = {"method": "mtp", "num_speculative_tokens": 3}


def read(text: str, release: str = "0.33.0") -> LaunchCommand:
    return read_launch_command(text, release)


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ("--tensor-parallel-size 4", {"tensor_parallel_size": 4}),
        ("--tensor_parallel_size=4", {"tensor_parallel_size": 4}),
        ("-tp 4 -dp 2 -ep", {"tensor_parallel_size": 4, "data_parallel_size": 2, "enable_expert_parallel": True}),
        ("-tp=4", {"tensor_parallel_size": 4}),
        ("--tensor-parallel 4", {"tensor_parallel_size": 4}),  # a unique beginning
        ("--no-enable-prefix-caching", {"enable_prefix_caching": False}),
        ("--disable-prefix-caching", {"enable_prefix_caching": False}),  # 0.33
        ("--enable-prefix-caching", {"enable_prefix_caching": True}),
        ("--disable-expert-parallel", {"enable_expert_parallel": False}),
        ("--max-model-len 1k", {"max_model_len": 1000}),
        ("--max-model-len 1K", {"max_model_len": 1024}),
        ("--max-model-len 25.6k", {"max_model_len": 25600}),
        ("--max-model-len 1M", {"max_model_len": 1048576}),
        ("--max-model-len auto", {"max_model_len": -1}),
        ("--max-model-len -1", {"max_model_len": -1}),
        ("--max-num-batched-tokens 16k", {"max_num_batched_tokens": 16000}),
        ("--kv-cache-memory-bytes 40G", {"kv_cache_memory_bytes": 40 * 2**30}),
        ("--kv-cache-memory-bytes None", {}),
        ("--num-gpu-blocks-override ''", {}),
        ("-O3", {"optimization_level": "3"}),
        ("-O 0", {"optimization_level": "0"}),
        ("-O=1", {"optimization_level": "1"}),
        ('--speculative-config \'{"method":"mtp","num_speculative_tokens":3}\'', {"speculative_config": MTP}),
        ("-sc.method mtp -sc.num_speculative_tokens=3", {"speculative_config": MTP}),
        ("--speculative-config.method mtp --speculative_config.num_speculative_tokens 3", {"speculative_config": MTP}),
        # keys one by one replace the flag's JSON: they are put behind it
        (
            '--speculative-config \'{"method":"mtp"}\' --speculative-config.num_speculative_tokens 3',
            {"speculative_config": {"num_speculative_tokens": 3}},
        ),
        (
            "-cc.cudagraph_mode none -cc.pass_config.fuse_norm_quant true",
            {"compilation_config": {"cudagraph_mode": "none", "pass_config": {"fuse_norm_quant": True}}},
        ),
        (
            "--compilation-config '{\"max_cudagraph_capture_size\": 1k}'",
            {"compilation_config": {"max_cudagraph_capture_size": 1000}},
        ),
        ("--additional-config.kda_prefill_backend triton", {"additional_config": {"kda_prefill_backend": "triton"}}),
        ("--cudagraph-capture-sizes 1 2 4 8", {"cudagraph_capture_sizes": [1, 2, 4, 8]}),
        ("--device-memory-utilization .9", {"gpu_memory_utilization": 0.9}),
        ("--gpu-memory-util 0.9 --gpu-memory-utilization 0.95", {"gpu_memory_utilization": 0.95}),
        ("--limit-mm-per-prompt.image 3 --port 8000 --enable-auto-tool-choice", {}),
    ],
)
def test_spellings(words: str, flags: dict[str, object]) -> None:
    assert read(f"vllm serve {MODEL} {words}").flags == flags


@pytest.mark.parametrize(
    "start",
    [
        "vllm serve MODEL",
        "/opt/venv/bin/vllm serve MODEL",
        "vllm serve --model MODEL",
        "python -m vllm.entrypoints.openai.api_server --model MODEL",
        "python3 -m vllm.entrypoints.openai.api_server --model=MODEL",
        "CUDA_VISIBLE_DEVICES=0,1 nohup vllm serve MODEL",
        "docker run --gpus all -p 8000:8000 vllm/vllm-openai:v0.33.0 MODEL",
        "docker run --gpus all registry.local/vllm/vllm-openai@sha256:00 --model MODEL",
        "docker run --entrypoint bash vllm/vllm-openai -c 'vllm serve MODEL'",
        "bash -c 'exec vllm serve MODEL'",
        "python -m dynamo.vllm --model MODEL",
    ],
)
def test_starts(start: str) -> None:
    quoted = start.endswith("'")
    text = start.replace("MODEL", MODEL)
    text = text[:-1] + " -tp 4'" if quoted else text + " -tp 4"
    found = read(text)
    assert (found.model, found.flags) == (MODEL, {"tensor_parallel_size": 4})


@pytest.mark.parametrize(
    "words", ["-n2", "-n=2", "-nx", "-tp4", "-t 4", "-t4", "-e", "-d 2", "-r 1", "-r1", "-q4", "-ep1"]
)
def test_options_of_one_dash_are_argparse_s(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = option_table("0.33.0")
    parser = argparse.ArgumentParser(add_help=False)
    for option, takes in table.takes.items():
        if not option.startswith("--"):
            parser.add_argument(option, dest=option, **({"action": "store_true"} if takes == 0 else {}))
    try:
        expected = {name: value for name, value in vars(parser.parse_args(words.split())).items() if value}
    except SystemExit:
        capsys.readouterr()
        with pytest.raises(InputError):
            read(f"vllm serve M {words}")
        return
    ((option, value),) = expected.items()
    found = find_option(Word(words.split()[0], ""), table)
    assert found == (option, None if words.split()[1:] or value is True else value)


def test_switches_of_the_environment_come_along() -> None:
    text = f"VLLM_KV_CACHE_LAYOUT=BLHNC VLLM_PORT=1 vllm serve {MODEL}"
    assert read(text).environment == {"VLLM_KV_CACHE_LAYOUT": "BLHNC"}
    inside = f"VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 docker run -e VLLM_KV_CACHE_LAYOUT=HND vllm/vllm-openai {MODEL}"
    assert read(inside).environment == {"VLLM_KV_CACHE_LAYOUT": "HND"}


def test_its_own_yaml_file_stands_before_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_text(
        f"model: {MODEL}\ntensor_parallel_size: 4\nmax-model-len: 128K\nenable-prefix-caching: false\n"
        "enforce-eager: true\nport: 8000\nspeculative-config:\n  method: mtp\n  num_speculative_tokens: 3\n"
        "cudagraph-capture-sizes: [1, 2]\n",
        encoding="utf-8",
    )
    found = read(f"vllm serve --config {file} --max-model-len 32K")
    assert found.model == MODEL
    assert found.flags == {
        "tensor_parallel_size": 4,
        "max_model_len": 32768,
        "enable_prefix_caching": False,
        "enforce_eager": True,
        "speculative_config": MTP,
        "cudagraph_capture_sizes": [1, 2],
    }


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.json", "{}", r"takes a \.yaml or \.yml file only"),
        ("x.yaml", "- 1\n", "must be a mapping of flag to value, not a list"),
        ("x.yaml", "a: [1\n", "not YAML at line"),
        ("x.yaml", "tensor-parallel-size: many\n", "x.yaml: --tensor-parallel-size 'many'"),
    ],
)
def test_bad_yaml(tmp_path: Path, name: str, text: str, said: str) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read(f"vllm serve {MODEL} --config {file}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("vllm serve M --tp-size 4", "--tp-size is a flag of another engine; here it is --tensor-parallel-size"),
        ("vllm serve M --mem-fraction-static 0.8", "here it is --gpu-memory-utilization"),
        ("vllm serve M --max-model-len 1.5K", "25.6k or 128K"),
        ("vllm serve M --max-model-len 12kk", "is not accepted"),
        ("vllm serve M --tensor-parallel-size", "needs a value; none follows it"),
        ("vllm serve M --enforce-eager=1", "takes no value"),
        ("vllm serve M --kv-cache-dtype fp16", "is not accepted; it takes one of auto, float16"),
        ("vllm serve M --speculative-config mtp", "it takes a JSON object"),
        ("vllm serve M --speculative-config.method", "needs a value"),
        ("vllm serve M --max-num 4", "is ambiguous; write one of"),
        ("vllm serve M -tp $N", r"-tp is given \$N, which is not defined here"),
        ("vllm serve M x", "belongs to no flag"),
        ("sglang serve M --tp 4", "sglang is another engine"),
        ("vllm bench serve M", "no launch of the engine found; it reads `vllm serve MODEL"),
        ("vllm serve M --config a.yaml --config b.yaml", "--config is given twice"),
    ],
)
def test_what_cannot_be_read(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as wrong:
        read(text)
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize(
    ("words", "release"),
    [
        ("--device-memory-utilization 0.9", "0.30.0"),  # 0.31
        ("--disable-prefix-caching", "0.32.0"),  # 0.33
    ],
)
def test_flags_a_release_does_not_have(words: str, release: str) -> None:
    with pytest.raises(InputError, match=f"not a flag of {release}; "):
        read(f"vllm serve M {words}", release)


def test_choices_a_release_does_not_have() -> None:
    assert read("vllm serve M --mamba-cache-mode all", "0.31.0").flags == {"mamba_cache_mode": "all"}
    with pytest.raises(InputError, match="it takes one of align, none"):
        read("vllm serve M --mamba-cache-mode all", "0.32.0")


def test_unknown_flags_are_refused_and_those_of_a_wrapper_left_out() -> None:
    """vLLM's own parser refuses them, too (entrypoints/cli/main.py:110 at 0.33.0)."""
    words = "--enable-magic 3 --kv-cache-dtipe fp8 -tp 2"
    named = "--enable-magic, --kv-cache-dtipe (is it --kv-cache-dtype?)"
    with pytest.raises(InputError) as refused:
        read(f"vllm serve M {words}")
    assert f"unknown to engine 0.33.0, which would not start: {named}; a patched build" in str(refused.value)
    found = read(f"python -m dynamo.vllm --model M {words}")
    assert found.flags == {"tensor_parallel_size": 2}
    assert f"unknown to engine 0.33.0, left out: {named}" in found.notes


def test_another_model_is_refused_by_its_name() -> None:
    with pytest.raises(InputError, match="is another model"):
        kv.plan(launch="vllm serve Qwen/Qwen3-8B")


def test_sglang_names_its_twins_too() -> None:
    with pytest.raises(
        InputError, match="--max-num-seqs is a flag of another engine; here it is --max-running-requests"
    ):
        kv.plan(launch="sglang serve M --max-num-seqs 4")


def test_the_launch_command_tells_the_engine() -> None:
    assert kv.plan(launch=f"vllm serve {MODEL} -tp 4").profile.release == "0.33.0"
    assert kv.plan(launch=f"vllm serve {MODEL} -tp 4", engine="vllm-0.31.0").profile.release == "0.31.0"
    assert kv.plan(launch=f"vllm serve {MODEL} -tp 4", engine="0.31.0").profile.release == "0.31.0"
    assert kv.plan(launch="sglang serve M --tp 4").profile.engine.name == "sglang"
    assert kv.plan({"tensor_parallel_size": 4}, engine="vllm").profile.engine.title == "vLLM"
    with pytest.raises(InputError, match="the launch command starts vLLM, not SGLang"):
        kv.plan(launch=f"vllm serve {MODEL}", engine="sglang-0.5.23")
