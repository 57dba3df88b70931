"""Launch commands that cannot be used: one printable line that says what and where, and never a hang."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.flags import FLAGS
from glm_kvplan.engines.sglang.launch_command import read_launch_command
from glm_kvplan.errors import InputError, KvplanError
from glm_kvplan.launch.model_name import refuse_other_model
from glm_kvplan.model.loader import BUNDLED


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
        ("python -m vllm.entrypoints.openai.api_server --model x", "vllm is another engine"),
        ("docker run img trtllm-serve x --tp_size 4", "trtllm-serve is another engine"),
        ("trtllm-serve zai-org/GLM-5.3-Flash", "trtllm-serve is another engine"),
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
        ('A="2$N"\nsglang serve x --tp $A', r"--tp-size is given \$N"),
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
    for words in (["tp", "8"], ["--tp"], ["--tp-size", "a"]):
        with pytest.raises(InputError):
            read_launch_command(["sglang", "serve", "m", *words])


@pytest.mark.parametrize(
    "model",
    [
        *("zai-org/GLM-5.3-Flash", "/models/glm-5.3-flash-nvfp4", "someone/GLM5.3-Flash-W4A16", "./checkpoint", "/m"),
        *("llama-team/GLM-5.3-Flash-BF16", "/data/qwen/checkpoints/run7", "glm53_flash", "/data/llama-tuning"),
        "/root/.cache/huggingface/hub/models--zai-org--GLM-5.3-Flash/snapshots/0123abcd",
    ],
)
def test_models_that_pass(model: str) -> None:
    refuse_other_model(model)
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
    with pytest.raises(InputError, match=r"another model; .*: if it is one, give its config\.json with --model"):
        plan(launch=["sglang", "serve", model, "--tp", "8"])
    assert plan(launch=["sglang", "serve", model, "--tp", "8"], model=str(BUNDLED)).geometry  # it outranks


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
