"""vLLM's own spellings word by word: keys one by one, levels, counts, JSON with suffixes, the model."""

from pathlib import Path

import pytest

from glm_kvplan.engines.vllm.flag_values import read_count, read_flag, read_nested
from glm_kvplan.engines.vllm.flags import FLAG
from glm_kvplan.engines.vllm.flexible_words import plain_words
from glm_kvplan.engines.vllm.launch_command import LaunchCommand, command_of, read_launch_command
from glm_kvplan.engines.vllm.option_lists import option_table, releases_with
from glm_kvplan.engines.vllm.profile import releases
from glm_kvplan.errors import InputError
from glm_kvplan.launch.launch import Launch
from glm_kvplan.launch.marked_words import Word
from glm_kvplan.reading.unreadable import DEEPEST


def plain(text: str) -> list[str]:
    return [word.text for word in plain_words([Word(each, "line 1") for each in text.split()])]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("--tensor_parallel_size=4 a_b", ["--tensor-parallel-size=4", "a_b"]),
        ("--served_model_name x_y=z_w", ["--served-model-name", "x_y=z_w"]),
        ("--x_y=a_b", ["--x-y=a_b"]),
        ("-O3", ["--optimization-level", "3"]),
        ("-O=2", ["--optimization-level", "2"]),
        ("-O 1", ["--optimization-level", "1"]),
        ("-O 4", ["-O", "4"]),
        ("-O", ["-O"]),
        ("a -O", ["a", "-O"]),
        ("--cpu-offload-gb -0.5", ["--cpu-offload-gb", "-0.5"]),
        ("-1.5", ["-1.5"]),
        ("a.b=c", ["a.b=c"]),
        ("-x.a 1", ["-x", '{"a": 1}']),
        ("-x.a=1 b", ["b", "-x", '{"a": 1}']),
        ("-x.a 1 -y.a 2 -x.b 3", ["-x", '{"a": 1, "b": 3}', "-y", '{"a": 2}']),
        ("-x.a.b 1 -x.a.c 2", ["-x", '{"a": {"b": 1, "c": 2}}']),
        ("-x.a 1 -x.a.c 2", ["-x", '{"a": {"c": 2}}']),
        ("-x.a.c 1 -x.a 2", ["-x", '{"a": 2}']),
        ("-x.a+ p,q -x.a+ r", ["-x", '{"a": ["p", "q", "r"]}']),
        ("-x.a [1] -x.a [2]", ["-x", '{"a": [1, 2]}']),
        ("-x.a 1 -x.a [2]", ["-x", '{"a": [2]}']),
        ("--a_b.c_d v_w", ["--a-b", '{"c_d": "v_w"}']),
        ("-x.a 2k -x.b 2K -x.c true", ["-x", '{"a": 2000, "b": 2048, "c": true}']),
    ],
)
def test_words_as_the_option_parser_gets_them(text: str, words: list[str]) -> None:
    """utils/argparse_utils.py:156 at 0.33.0."""
    assert plain(text) == words


def test_keys_that_cannot_be_read() -> None:
    deep = ".".join("a" * DEEPEST)
    assert plain(f"-x.{deep} 1")[0] == "-x"
    with pytest.raises(InputError, match=f"line 1: -x.* has a key of more than {DEEPEST} parts"):
        plain(f"-x.{deep}.a 1")
    with pytest.raises(InputError, match=r"line 1: -x\.a needs a value; none follows it"):
        plain("b -x.a")
    with pytest.raises(InputError, match=r"-x\.a is given \$V, which is not defined here"):
        read("vllm serve M -x.a $V")


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), ("1k", 1000), ("1K", 1024), ("2m", 2_000_000), ("2M", 2 << 20), ("3g", 3 * 10**9), ("3G", 3 << 30),
     ("1t", 10**12), ("1T", 1 << 40), ("25.6k", 25600), (" 4k ", 4000)],
)  # fmt: skip
def test_counts_as_vllm_reads_them(text: str, value: int) -> None:
    """human_readable_int: small letters are decimal and may have a fraction, capitals binary."""
    assert read_count(text) == value


@pytest.mark.parametrize("text", ["1.5K", "k", "1kk", "1.5", "1 k", ""])
def test_what_is_no_count(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_count(text)


def test_values_that_spell_nothing() -> None:
    for text in ("", "None"):
        assert read_flag(FLAG["num_gpu_blocks_override"], text) is None
        with pytest.raises(InputError):
            read_flag(FLAG["tensor_parallel_size"], text)
    for text in ("auto", "AUTO", "-1", " auto "):
        assert read_flag(FLAG["max_model_len"], text) == -1
    with pytest.raises(InputError, match="--max-num-batched-tokens 'auto' is not accepted; it takes a whole number"):
        read_flag(FLAG["max_num_batched_tokens"], "auto")
    with pytest.raises(InputError, match=r"^x\.sh: --max-num-batched-tokens"):
        read_flag(FLAG["max_num_batched_tokens"], "many", place="x.sh")


def test_json_with_and_without_suffixes() -> None:
    """Those that become a configuration at once may have bare counts; a text in quotes stays."""
    text = '{"a": 1k, "b": "1k", "c": [2M]}'
    for name in ("compilation_config", "attention_config", "kv_transfer_config"):
        assert read_flag(FLAG[name], text) == {"a": 1000, "b": "1k", "c": [2 << 20]}
    with pytest.raises(
        InputError, match=r"it takes a JSON object, or its keys one by one: --speculative-config\.key value"
    ):
        read_flag(FLAG["speculative_config"], text)
    for text in ("[1]", '"a"', '{"a":' * 2000 + "1" + "}" * 2000):
        with pytest.raises(InputError, match="it takes a JSON object"):
            read_flag(FLAG["compilation_config"], text)
    for text, hint in (("{'a': 1}", True), ("{a: 1}", True), ('{"a": }', False), ("mtp", True)):
        with pytest.raises(InputError) as wrong:
            read_flag(FLAG["speculative_config"], text, place="x.sh")
        assert ("in a shell it stands in single quotes" in str(wrong.value)) == hint
        assert str(wrong.value).startswith("x.sh: --speculative-config")


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("true", True), ("null", None), ('"a"', "a"), ("mtp", "mtp"), ("2k", 2000), ("[1, 2]", [1, 2]),
     ("NaN", None), ("Infinity", None), ("1.5", 1.5), ("[" * 3000, "[" * 3000)],
)  # fmt: skip
def test_values_of_a_key(text: str, value: object) -> None:
    assert read_nested(text) == value


def read(text: str) -> LaunchCommand:
    return read_launch_command(text, "0.33.0")


def test_the_model_stands_alone_or_behind_its_option() -> None:
    assert read("vllm serve a/b --port 1").model == "a/b" == read("vllm serve --port 1 --model a/b").model
    both = read("vllm serve a/b --model c/d")
    assert both.model == "a/b" and any(
        "--model is ignored beside the model itself" in str(one) for one in both.warnings
    )
    assert not any("ignored" in str(one) for one in read("vllm serve a/b").warnings)
    none = read("vllm serve -tp 4")
    assert none.model is None and none.flags == {"tensor_parallel_size": 4}
    with pytest.raises(InputError, match="the model"):
        read("vllm serve $MODEL")
    assert read("vllm serve a/b --revision main").revision == "main" and read("vllm serve a/b").revision is None


def test_options_of_another_release_are_left_out_of_a_patched_build() -> None:
    launch = Launch((Word("M", "x"), Word("--enable-magic", "x")), serve=True, environment={})
    with pytest.raises(InputError, match=r"unknown to engine 0\.33\.0"):
        command_of(launch, "0.33.0")
    assert command_of(launch, "0.33.0", patched=True).unknown == ("--enable-magic",)
    assert command_of(launch, "0.33.0", patched=True, notes=("n",)).warnings[0] == "n"


def test_a_file_of_flags_is_taken_out_before_options_are_read(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("max_num_seqs: 4\nenable_prefix_caching: false\ncudagraph-capture-sizes: []\nno-such: false\n")
    found = read(f"vllm serve M -tp 4 --config {file} --max-model-len 9")
    assert found.flags == {
        "tensor_parallel_size": 4,
        "max_model_len": 9,
        "max_num_seqs": 4,
        "enable_prefix_caching": False,
    }
    with pytest.raises(InputError, match=r"x\.yaml"):
        command_of(
            Launch(tuple(Word(each, "x") for each in ("M", "--config", str(file))), serve=True, environment={}),
            "0.33.0",
            tmp_path / "y",
        )


def test_options_by_release() -> None:
    assert releases_with("--tensor-parallel-size") == releases() and releases_with("--no-such") == ()
    assert releases_with("--disable-prefix-caching") == ("0.33.0",)
    for release in releases():
        takes = option_table(release).takes
        assert ("--disable-prefix-caching" in takes) == (release == "0.33.0")
        assert ("--device-memory-utilization" in takes) == (release != "0.30.0")
        assert takes["--enforce-eager"] == 0 and takes["--tensor-parallel-size"] == 1
    table = option_table("0.33.0")
    outside = table.outside("--served-model-name")
    assert (outside.name, outside.kind, outside.default, outside.options) == (
        "served_model_name", "str", None, ("--served-model-name",)
    )  # fmt: skip
