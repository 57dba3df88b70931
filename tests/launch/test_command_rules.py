"""The engine's own rules for option words: spellings, releases, lists, repeats, unknown flags."""

from pathlib import Path

import pytest

from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.flags import FLAGS
from glm_kvplan.engines.sglang.launch_command import read_launch_command
from glm_kvplan.engines.sglang.option_lists import option_table, releases_with
from glm_kvplan.engines.vllm import launch_command as vllm
from glm_kvplan.errors import InputError

RELEASES = ("0.5.20", "0.5.21", "0.5.22", "0.5.23")
LAUNCH = "python -m sglang.launch_server --model-path zai-org/GLM-5.3-Flash"


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


def test_weights_on_the_host_offer_the_weights_flag() -> None:
    words = ["sglang", "serve", "zai-org/GLM-5.3-Flash", "--kt-weight-path", "/experts", "--kt-num-gpu-experts", "8"]
    lines = read_launch_command(words, "0.5.21").warnings
    assert any("--kt-weight-path" in line and "--weights-gib" in line for line in lines)


def test_given_twice_the_last_wins() -> None:
    command = read_launch_command("sglang serve x --tp 4 --port 1 \\\n --tp-size 8")
    assert command.flags == {"tp_size": 8}
    assert command.warnings == ("--tp-size is given twice (line 1: 4, line 2: 8); the engine takes the last",)


UNKNOWN = "--nsa-decode-backend trtllm --turbo --turbo --grpc-response-timeout-secs 3"
NAMED = (
    "--nsa-decode-backend (is it --dsa-decode-backend?), --turbo, "
    "--grpc-response-timeout-secs (in 0.5.21, 0.5.22, 0.5.23)"
)


@pytest.mark.parametrize("start", ["sglang serve x", "python -m sglang.launch_server --model-path x", "--tp-size 8"])
def test_flags_that_the_release_does_not_have_are_refused(start: str) -> None:
    """Its parser is argparse's, whose parse_args refuses them (server_args.py:696 at 0.5.23): all are named at once."""
    with pytest.raises(InputError) as refused:
        read_launch_command(f"{start} {UNKNOWN}", "0.5.20")
    assert str(refused.value).startswith(f"line 1: unknown to engine 0.5.20, which would not start: {NAMED}; ")


def test_a_wrapper_s_own_flags_are_one_warning() -> None:
    """Dynamo and the router take flags of their own beside the engine's."""
    for module in ("dynamo.sglang", "sglang_router.launch_server"):
        command = read_launch_command(f"python -m {module} --model-path x --tp 8 {UNKNOWN}", "0.5.20")
        assert command.flags == {"tp_size": 8}
        assert command.unknown == ("--nsa-decode-backend", "--turbo", "--grpc-response-timeout-secs")
        assert command.warnings == (f"unknown to engine 0.5.20, left out: {NAMED}",)


def test_a_patched_build_may_have_flags_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text('base = "0.5.23"\n', encoding="utf-8")
    found = plan(launch="sglang serve zai-org/GLM-5.3-Flash --tp 8 --turbo", gpu="h200", engine=str(file))
    assert "unknown to engine 0.5.23, left out: --turbo" in found.notes
    with pytest.raises(InputError, match=r"--turbo; a patched build is planned by --engine FILE\.toml"):
        plan(launch="sglang serve zai-org/GLM-5.3-Flash --tp 8 --turbo", gpu="h200", engine="0.5.23")


def test_a_beginning_is_read_as_argparse_reads_it() -> None:
    assert read_launch_command("sglang serve x --max-total-token 300000").flags == {"max_total_tokens": 300000}
    with pytest.raises(InputError, match=r"--max-total-tokn \(is it --max-total-tokens\?\)"):
        read_launch_command("sglang serve x --max-total-tokn 300000")


def test_a_broken_continuation_is_told() -> None:
    text = f"{LAUNCH} --tp 8 \\ \n  --mem-fraction-static 0.8\n"
    with pytest.raises(InputError, match="belongs to no flag"):
        read_launch_command(text)  # the backslash made a word of one blank
    command = read_launch_command(f"{LAUNCH} --tp 8\n  --mem-fraction-static 0.8\n")
    assert command.flags == {"tp_size": 8}
    assert "line 2: --mem-fraction-static starts a command of its own" in command.warnings[0]


def test_config_is_read_for_the_spelling_that_the_engine_looks_for(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("tp-size: 4\n", encoding="utf-8")
    command = read_launch_command(f"sglang serve x --config {file}")
    assert (command.flags, command.warnings) == ({"tp_size": 4}, ())
    command = read_launch_command("sglang serve x --config=run.yaml")
    assert command.flags == {}
    assert "--config FILE with a blank" in command.warnings[0]


@pytest.mark.parametrize("words", ["sglang serve --tp 8", "python -m sglang.launch_server --tp 8"])
def test_a_launch_that_names_no_model_is_told(words: str) -> None:
    """--model-path has no default in the engine's parser; where it is not known what starts, nothing is said."""
    assert [note for note in read_launch_command(words).warnings if "does not start without" in note]
    for other in (words.replace("--tp", "--model-path x --tp"), "--tp 8"):
        assert not [note for note in read_launch_command(other).warnings if "no model" in note]


def test_vllm_serves_another_model_where_none_is_named() -> None:
    """config/model.py at 0.33.0: Qwen/Qwen3-0.6B."""
    told = vllm.read_launch_command("vllm serve --tensor-parallel-size 8", "0.33.0").warnings
    assert [note for note in told if "one of its own" in note]
    for other in ("vllm serve x --tensor-parallel-size 8", "--tensor-parallel-size 8"):
        assert not [note for note in vllm.read_launch_command(other, "0.33.0").warnings if "no model" in note]
