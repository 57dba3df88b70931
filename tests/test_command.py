"""The launch command reader: real command shapes, the engine's parsing rules, and input nobody should type."""

import gzip
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glm_kvplan.deployment.command import MEMORY_ENVIRONMENT, parse_flags, read_launch_command
from glm_kvplan.deployment.flags import FLAGS
from glm_kvplan.deployment.options import option_table, releases_with
from glm_kvplan.errors import InputError, KvplanError

DATA = Path(__file__).parent / "data"
RELEASES = ("0.5.20", "0.5.21", "0.5.22", "0.5.23")
RESOLVE = DATA / "resolve.jsonl.gz"
LAUNCH = "python -m sglang.launch_server --model-path zai-org/GLM-5.3-Flash"


# The commands people have.


def test_issue_command() -> None:
    words = shlex.split(
        "python -m sglang.launch_server --model-path zai-org/GLM-5.3-Flash --tp 4 --kv-cache-dtype fp8_e4m3 "
        "--speculative-algorithm EAGLE --max-running-requests 96"
    )
    command = read_launch_command(words, "0.5.22")
    assert command.flags == {
        "tp_size": 4,
        "kv_cache_dtype": "fp8_e4m3",
        "speculative_algorithm": "EAGLE",
        "max_running_requests": 96,
    }
    assert command.model == "zai-org/GLM-5.3-Flash"
    assert command.positions["kv_cache_dtype"] == "word 8"
    assert (command.ignored, command.unknown, command.warnings) == (0, (), ())


@pytest.mark.parametrize(
    "front",
    [
        "",
        "exec ",
        "nohup ",
        "uv run ",
        "CUDA_VISIBLE_DEVICES=0,1 ",
        "env CUDA_VISIBLE_DEVICES=0,1 ",
        "sudo -E numactl --cpunodebind=0 --membind=0 ",
        "srun --ntasks=2 --gpus-per-node=8 ",
        "mpirun -np 2 --allow-run-as-root ",
        "docker run --rm -it --gpus all --shm-size 32g -p 30000:30000 -v $HOME/.cache:/root/.cache "
        "--env HF_TOKEN=$HF_TOKEN --ipc=host lmsysorg/sglang:v0.5.21 ",
        "docker exec -it server ",
        "kubectl exec -n serving pod/glm-0 -- ",
        "kubectl run glm --image=lmsysorg/sglang:v0.5.21 --env=A=b -- ",
        "if true; then ",
    ],
)
@pytest.mark.parametrize(
    "launch",
    [
        "python3 -m sglang.launch_server --model-path GLM-5.3-Flash",
        "/opt/venv/bin/python -m sglang.launch_server --model GLM-5.3-Flash",
        "python sglang/launch_server.py --model-path=GLM-5.3-Flash",
        "sglang serve GLM-5.3-Flash --model-type llm",
        "/opt/venv/bin/sglang serve --model-path GLM-5.3-Flash",
        "python3 -m dynamo.sglang --model-path GLM-5.3-Flash",
    ],
)
def test_wrappers(front: str, launch: str) -> None:
    command = read_launch_command(f"{front}{launch} --tp 4 --host 0.0.0.0 --trust-remote-code")
    assert command.flags == {"tp_size": 4}
    assert command.model == "GLM-5.3-Flash"
    assert (command.ignored, command.unknown) == (2, ())


@pytest.mark.parametrize(
    "text",
    [
        "bash -c 'python -m sglang.launch_server --tp 2'",
        'docker run img bash -lc "cd /x && exec python -m sglang.launch_server --tp 2"',
        "ssh node0 'nohup python -m sglang.launch_server --tp 2 > log 2>&1 &'",
        "python -m sglang.launch_server --tp 2 > server.log 2>&1 &",
        "python -m sglang.launch_server --tp 2 2>&1 | tee server.log",
        "pip install sglang && python -m sglang.launch_server --tp 2; echo done",
        "echo python -m sglang.launch_server starts\npython -m sglang.launch_server --tp 2",
        "python -m sglang.launch_server \\\r\n  --tp 2\r\n",
        "set -euo pipefail\npkill -f sglang.launch_server || true\nsglang serve x --tp 2",
        "\ufeffsglang serve x --tp 2",
        "--tp 2",
        "--tp-size=2",
        "sglang serve x '--tp' \"2\"",
        "sglang serve x --t\\p 2 # --tp 4",
    ],
)
def test_scripts(text: str) -> None:
    assert read_launch_command(text).flags == {"tp_size": 2}


def test_script_with_everything() -> None:
    command = read_launch_command(
        """#!/usr/bin/env bash
# GLM-5.3-Flash on one node; don't change the fraction
set -e
MODEL=zai-org/GLM-5.3-Flash
TP="${TP:-8}"
export SGLANG_VLM_CACHE_SIZE_MB=200
export SGLANG_LOG_MS=1 CUDA_VISIBLE_DEVICES=0
ARGS=(
  --tp "$TP"              # tensor parallel
  --mem-fraction-static 0.85
)
ARGS+=(--max-running-requests 64)
EXTRA="--kv-cache-dtype fp8_e4m3 --disable-radix-cache"
SGLANG_MAMBA_CONV_DTYPE=float32 exec python3 -m sglang.launch_server \\
  --model-path "$MODEL" --revision main \\
  "${ARGS[@]}" $EXTRA --port ${PORT} \\
  --json-model-override-args '{"max_position_embeddings": 262144}'
"""
    )
    assert command.flags == {
        "tp_size": 8,
        "mem_fraction_static": 0.85,
        "max_running_requests": 64,
        "kv_cache_dtype": "fp8_e4m3",
        "disable_radix_cache": True,
        "json_model_override_args": {"max_position_embeddings": 262144},
    }
    assert command.environment == {"SGLANG_VLM_CACHE_SIZE_MB": "200", "SGLANG_MAMBA_CONV_DTYPE": "float32"}
    assert (command.model, command.revision) == ("zai-org/GLM-5.3-Flash", "main")
    assert (command.ignored, command.ignored_environment) == (1, 1)  # --port; SGLANG_LOG_MS


def test_containers_keep_the_outer_environment_outside() -> None:
    name = "SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK"
    run = "docker run {} image sglang serve x"
    assert read_launch_command(f"export {name}=1\n" + run.format("")).environment == {}
    assert read_launch_command(f"export {name}=1\n" + run.format(f"-e {name}")).environment == {name: "1"}
    for given_as in (f"-e {name}=1", f"-e{name}=1", f"--env {name}=1", f"--env={name}=1"):
        assert read_launch_command(run.format(given_as)).environment == {name: "1"}
    inner = f"docker run -e {name}=1 image bash -c 'export {name}=0; sglang serve x'"
    assert read_launch_command(inner).environment == {name: "0"}
    assert read_launch_command(f"srun --export=ALL,{name}=1 sglang serve x").environment == {name: "1"}
    assert name in MEMORY_ENVIRONMENT


def test_an_unexported_variable_is_no_environment() -> None:
    name = "SGLANG_PP_LAYER_PARTITION"
    assert read_launch_command(f"{name}=22,23\nsglang serve x").environment == {}
    assert read_launch_command(f"{name}=22,23\nexport {name}\nsglang serve x").environment == {name: "22,23"}
    assert read_launch_command(f"{name}=22,23 sglang serve x").environment == {name: "22,23"}


def _command_of(flags: dict[str, object]) -> list[str]:
    words = shlex.split(LAUNCH)
    for name, value in flags.items():
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(str(value))
    return words


@pytest.mark.parametrize("path", sorted((DATA / "cases").glob("*.json")), ids=lambda path: path.stem)
def test_every_measured_case_is_read(path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))
    flags = {name: value for name, value in case["flags"].items() if name != "context_rows"}
    for release in RELEASES:
        words = _command_of(flags)
        assert read_launch_command(words, release).flags == flags
        assert read_launch_command(shlex.join(words), release).flags == flags


def test_every_argv_of_the_engine_is_read() -> None:
    with gzip.open(RESOLVE, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    assert len(records) == 4368
    for record in records:
        release = record["engine"].removeprefix("sglang-")
        flags = parse_flags(record["argv"])
        assert read_launch_command([*shlex.split(LAUNCH), *record["argv"]], release).flags == flags
        resolved = record.get("resolved", {})
        for name in ("tp_size", "pp_size", "disable_radix_cache", "mamba_ssm_dtype", "max_total_tokens"):
            if name in flags and name in resolved:
                assert resolved[name] == flags[name]


# The engine's own parsing rules.


def test_the_table_is_the_engines() -> None:
    names = [flag.name for flag in FLAGS]
    assert len(names) == len(set(names))
    for flag in FLAGS:
        assert flag.help and "\n" not in flag.help and flag.group
        for option in (*flag.options, *flag.negative):
            assert option.startswith("--")
            abbreviated = [full for full in option_table().takes if full.startswith(option)]
            assert releases_with(option) or len(abbreviated) == 1, option
        kinds = {"flag": 0, "switch": 0, "ints": "+"}
        for release in RELEASES:
            takes = option_table(release).takes.get(flag.options[0])
            assert takes is None or takes == kinds.get(flag.kind, 1), flag.name


@pytest.mark.parametrize(("release", "options"), [("0.5.20", 513), ("0.5.21", 532), ("0.5.22", 544), ("0.5.23", 559)])
def test_option_lists(release: str, options: int) -> None:
    assert len(option_table(release).takes) == options


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ("--tensor-parallel-size 8", {"tp_size": 8}),
        ("--dp 2 --ep 4", {"dp_size": 2, "ep_size": 4}),
        ("--context-len 131072", {"context_length": 131072}),
        ("--context-length 128k", {"context_length": 128_000}),
        ("--context-length 128Ki", {"context_length": 131_072}),
        ("--max-total-tokens 1.5M", {"max_total_tokens": 1_500_000}),
        ("--chunked-prefill-size -1", {"chunked_prefill_size": -1}),
        ("--chunked-prefill-size=-1", {"chunked_prefill_size": -1}),
        ("--cuda-graph-bs-decode 1 2 4 --tp 2", {"cuda_graph_bs_decode": [1, 2, 4], "tp_size": 2}),
        ("--mem-fraction-static .8", {"mem_fraction_static": 0.8}),
        ("--speculative-draft-model a/b", {"speculative_draft_model_path": "a/b"}),
        ('--cuda-graph-config {"decode":{"max_bs":64}}', {"cuda_graph_config": {"decode": {"max_bs": 64}}}),
        ("--mm-enable-dp-encoder", {"mm_enable_dp_encoder": True}),
        ("--disable-cuda-graph", {"disable_cuda_graph": True}),
        ("--attention-context-parallel-size 8", {"attn_cp_size": 8}),
    ],
)
def test_spellings(words: str, flags: dict[str, object]) -> None:
    assert parse_flags(words.split()) == flags
    assert read_launch_command(["sglang", "serve", "x", *words.split()]).flags == flags


def test_flags_of_one_release() -> None:
    assert read_launch_command("sglang serve x --attn-dp-size 2", "0.5.22").flags == {"attn_dp_size": 2}
    with pytest.raises(InputError, match=r"--attn-dp-size is not a flag of 0\.5\.21; 0\.5\.22, 0\.5\.23 have it"):
        read_launch_command("sglang serve x --attn-dp-size 2", "0.5.21")
    off = "sglang serve x --no-mm-enable-dp-encoder"
    assert read_launch_command(off, "0.5.23").flags == {"mm_enable_dp_encoder": False}
    with pytest.raises(InputError, match=r"tc_piecewise.* is not accepted; it takes one of full, breakable, disabled"):
        read_launch_command("sglang serve x --cuda-graph-backend-prefill tc_piecewise", "0.5.22")
    assert read_launch_command("sglang serve x --cuda-graph-backend-prefill tc_piecewise", "0.5.21").flags
    with pytest.raises(InputError, match="known releases"):
        read_launch_command("sglang serve x", "0.4.0")


def test_lists_and_optional_values_end_where_the_engine_ends_them() -> None:
    command = read_launch_command(
        "sglang serve x --lora-paths a b --encoder-urls http://a http://b --model-checksum --tp 2 "
        "--bucket-e2e-request-latency 0.5 1 -1 --custom-weight-loader"
    )
    assert command.flags == {"tp_size": 2}
    assert command.ignored == 5
    assert command.warnings == ("these take or free GPU memory that is not planned here: --lora-paths",)


def test_given_twice_the_last_wins() -> None:
    command = read_launch_command("sglang serve x --tp 4 --port 1 \\\n --tp-size 8")
    assert command.flags == {"tp_size": 8}
    assert command.warnings == ("--tp-size is given twice (line 1: 4, line 2: 8); the engine takes the last",)


def test_unknown_flags_are_one_warning() -> None:
    command = read_launch_command(
        "sglang serve x --nsa-decode-backend trtllm --turbo --turbo --grpc-response-timeout-secs 3", "0.5.20"
    )
    assert command.unknown == ("--nsa-decode-backend", "--turbo", "--grpc-response-timeout-secs")
    assert command.warnings == (
        "unknown to engine 0.5.20, left out: --nsa-decode-backend (is it --dsa-decode-backend?), --turbo, "
        "--grpc-response-timeout-secs (in 0.5.21, 0.5.22, 0.5.23)",
    )


def test_a_broken_continuation_is_told() -> None:
    text = f"{LAUNCH} --tp 8 \\ \n  --mem-fraction-static 0.8\n"
    with pytest.raises(InputError, match="belongs to no flag"):
        read_launch_command(text)  # the backslash made a word of one blank
    command = read_launch_command(f"{LAUNCH} --tp 8\n  --mem-fraction-static 0.8\n")
    assert command.flags == {"tp_size": 8}
    assert "line 2: --mem-fraction-static starts a command of its own" in command.warnings[0]


def test_config_is_named_not_read() -> None:
    assert read_launch_command("sglang serve x --config run.yaml").config_file == "run.yaml"
    command = read_launch_command("sglang serve x --config=run.yaml")
    assert command.config_file is None
    assert "--config FILE with a blank" in command.warnings[0]


# Bad input: one line that says what and where.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("# nothing\n", "no launch"),
        ("ls -l", "no launch"),
        ("python -m sglang.bench_serving --model x", "no launch"),
        ("echo sglang serve x", "no launch"),
        ("vllm serve zai-org/GLM-5.3-Flash", "vllm is another engine"),
        ("python -m vllm.entrypoints.openai.api_server --model x", "vllm.entrypoints.openai.api_server is another"),
        ("docker run img trtllm-serve x --tp_size 4", "trtllm-serve is another engine"),
        ("ollama run glm", "ollama is another engine"),
        ("./llama-server -m x.gguf", "llama-server is another engine"),
        ("sglang serve 'x --tp 4", "line 1: the quote ' is never closed"),
        ('\nsglang serve "x --tp 4', 'line 2: the quote " is never closed'),
        ("sglang serve x --tp ${TP", r"line 1: \$\{ is never closed"),
        ("sglang serve x --tp $(nproc", r"\$\( is never closed"),
        ("A=(1 2\nsglang serve x", "A=.* is never closed"),
        ("sglang serve x --tp $TP", r"line 1: --tp-size is given \$TP, which is not defined here"),
        ("sglang serve x --tp=${TP}", r"--tp-size is given \$TP"),
        ("sglang serve x --tp $(nproc)", r"--tp-size is given \$\(\.\.\.\)"),
        ("sglang serve x --tp 2 $EXTRA", r"\$EXTRA is not defined here"),
        ("sglang serve x $EXTRA", r"\$EXTRA is not defined here"),
        ("sglang serve $MODEL", r"the model is given \$MODEL"),
        ("SGLANG_VLM_CACHE_SIZE_MB=$N sglang serve x", r"SGLANG_VLM_CACHE_SIZE_MB is given \$N"),
        ("sglang serve x --tp", "--tp-size needs a value"),
        ("sglang serve x --tp --dp 2", "--tp-size needs a value"),
        ("sglang serve x --host", "--host needs a value"),
        ("sglang serve x --tp 1 2", "'2' belongs to no flag"),
        ("sglang serve x y", "'y' belongs to no flag"),
        ("python -m sglang.launch_server GLM-5.3-Flash --tp 2", "'GLM-5.3-Flash' belongs to no flag"),
        ("sglang serve x --disable-radix-cache true", r"'true' belongs to no flag \(after '--disable-radix-cache'\)"),
        ("sglang serve x --disable-radix-cache=true", "--disable-radix-cache takes no value"),
        ("sglang serve x --tp 8.0", "line 1: --tp-size '8.0' is not accepted; it takes a whole number"),
        ("sglang serve x \\\n --kv-cache-dtype fp9", "line 2: --kv-cache-dtype 'fp9' is not accepted; .* fp8_e4m3"),
        ("sglang serve x --mem-fraction-static nan", "'nan' is not accepted; it takes a number"),
        ("sglang serve x --context-length 1.5Ki", "'1.5Ki' is not accepted"),
        ("sglang serve x --cuda-graph-bs-decode 1 two", "'two' is not accepted"),
        ("sglang serve x --cuda-graph-config [1]", "a JSON object"),
        ("sglang serve x --cuda-graph-max-bs 64", "ambiguous; .*max-bs-decode, --cuda-graph-max-bs-prefill"),
        ("sglang serve x --pp 2", "ambiguous; .*--pp-size"),
        ("sglang serve x --config a.yaml --config b.yaml", "--config is given twice"),
        ("sglang serve x --tp 2\nsglang serve x --tp 4", r"2 launches of the engine found \(line 1, line 2\)"),
        ("sglang serve Qwen/Qwen3-235B-A22B", "another model"),
        (f"sglang serve x {'--tp 2 ' * 3000}", "more than 5000"),
        ("sglang serve x\0", "NUL"),
    ],
)
def test_bad_text(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_launch_command(text)
    assert "\n" not in str(caught.value)


def test_bad_words() -> None:
    with pytest.raises(InputError, match="empty"):
        read_launch_command([])
    with pytest.raises(InputError, match="word 5: --tp-size 'x'"):
        read_launch_command(["sglang", "serve", "m", "--tp", "x"])
    with pytest.raises(InputError, match="vllm is another engine"):
        read_launch_command(["vllm", "serve", "m"])
    for words in (["--port", "1"], ["tp", "8"], ["--tp"], ["--tp-size", "a"], ["--"]):
        with pytest.raises(InputError):
            parse_flags(words)


@pytest.mark.parametrize(
    "model",
    [
        *("zai-org/GLM-5.3-Flash", "/models/glm-5.3-flash-nvfp4", "someone/GLM5.3-Flash-W4A16", "./checkpoint", "/m"),
        *("llama-team/GLM-5.3-Flash-BF16", "/data/qwen/checkpoints/run7", "glm53_flash"),
        "/root/.cache/huggingface/hub/models--zai-org--GLM-5.3-Flash/snapshots/0123abcd",
    ],
)
def test_models_that_pass(model: str) -> None:
    assert read_launch_command(["sglang", "serve", model]).model == model


@pytest.mark.parametrize(
    "model",
    [
        *(
            "deepseek-ai/DeepSeek-V3.2",
            "meta-llama/Llama-3.1-8B",
            "zai-org/GLM-4.6",
            "zai-org/GLM-5.3",
            "openai/gpt-oss-120b",
        ),
        *("/models/Qwen3-8B/", "moonshotai/Kimi-K2", "/hub/models--Qwen--Qwen3-8B/snapshots/0123abcd"),
    ],
)
def test_models_that_are_others(model: str) -> None:
    with pytest.raises(InputError, match="another model"):
        read_launch_command(["sglang", "serve", model])


def test_messages_stay_one_printable_line() -> None:
    for words in (["--a\nb"], ["--tp", "a\nb\x1b[2J"], ["--tp", "2", "x\ny"]):
        command = None
        try:
            command = read_launch_command(["sglang", "serve", "m", *words])
        except InputError as error:
            assert str(error).isprintable()
        if command is not None:
            assert all(line.isprintable() for line in command.warnings)
    with pytest.raises(InputError) as caught:
        read_launch_command("sglang serve x --tp ${A%\n\n}")
    assert str(caught.value).isprintable()
    with pytest.raises(InputError) as caught:
        parse_flags(["--a\nb"])
    assert str(caught.value).isprintable()


def test_no_text_makes_it_slow_or_large() -> None:
    texts = (
        "A=xxxxxxxxxx\n" + "A=$A$A\n" * 60 + "sglang serve $A",
        "A=(x y)\n" + 'A=("${A[@]}" "${A[@]}")\n' * 40 + "sglang serve m",
        "sglang serve x --tp " + "${A:-" * 2000 + "}" * 2000,
        "$(" * 20000,
        "x; " * 30000,
        "bash -c 'sglang serve x'; " * 300,
    )
    for text in texts:
        with pytest.raises(InputError):
            read_launch_command(text)


_PIECES = st.sampled_from(
    [
        *(
            "sglang",
            "serve",
            "python",
            "-m",
            "sglang.launch_server",
            "--tp",
            "--tp=",
            "8",
            "--",
            "-",
            "-1",
            "bash",
            "-c",
        ),
        *(
            "'",
            '"',
            "\\",
            "\n",
            " ",
            "\t",
            "$",
            "${",
            "}",
            "$(",
            ")",
            "(",
            "`",
            "#",
            ";",
            "|",
            "&",
            ">",
            "<",
            "2>&1",
            "=",
        ),
        *(
            "A=",
            "A+=(",
            "$A",
            "${A:-",
            "${A[@]}",
            "export",
            "-e",
            "docker",
            "--mem-fraction-static",
            "--lora-paths",
            "é",
        ),
    ]
)


@settings(max_examples=400, deadline=2000)
@given(st.lists(_PIECES, max_size=40).map("".join) | st.lists(_PIECES, max_size=30).map(" ".join) | st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for prefix in ("", "sglang serve m "):
        try:
            command = read_launch_command(prefix + text)
        except KvplanError as error:
            assert "\n" not in str(error)
        else:
            assert set(command.positions) == set(command.flags)


@settings(max_examples=300, deadline=2000)
@given(st.lists(_PIECES | st.text(max_size=12) | st.sampled_from([f.options[0] for f in FLAGS]), max_size=20))
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    for front in ([], ["sglang", "serve", "m"]):
        try:
            read_launch_command([*front, *words])
        except KvplanError as error:
            assert "\n" not in str(error)


_PLAIN = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=12)


@settings(max_examples=300, deadline=2000)
@given(st.lists(_PLAIN, max_size=8))
def test_quoted_words_come_back_as_a_shell_would_give_them(words: list[str]) -> None:
    from glm_kvplan.deployment.shell import read_script

    script = read_script(shlex.join(["run", *words]))
    assert [word.text for word in script.commands[0]] == ["run", *words]


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
@pytest.mark.parametrize(
    "text",
    [
        """a 'b c' "d e" f\\ g""",
        """A='1 2'; B="$A"; run $A "$A" x$A "${C:-d e}" ${C:-d e}""",
        """A=(1 "2 3"); A+=(4); run "${A[@]}" ${A[@]} $A""",
        """run "a\\"b" 'c"d' e\\\\f "g\\nh" # no""",
        """A=x; A+=y; run $A "${A:+set}" "${B:+set}"; """,
        """run a \\\n  b\\\nc""",
        """A=$B; A=${A:-z}; run --x=$A "--y=${A}" """,
    ],
)
def test_words_are_bashs(text: str) -> None:
    from glm_kvplan.deployment.shell import read_script

    shown = f'run() {{ printf "%s\\0" "$@"; }}; a() {{ run "$@"; }}; {text}'
    try:
        done = subprocess.run(["bash", "-c", shown], capture_output=True, text=True, check=True)
    except FileNotFoundError:
        pytest.skip("bash is not installed")
    assert [word.text for word in read_script(text).commands[-1]][1:] == done.stdout.split("\0")[:-1]
