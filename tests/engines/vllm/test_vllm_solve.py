"""`kvplan solve` of a vLLM launch: the printed line, beside it what the blocks hold, and how the engine is told."""

import json
from typing import Any

import pytest
from running import run

import glm_kvplan as kv
from glm_kvplan.cli.app import _command
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.by_name import check_answers, engine_named
from glm_kvplan.engines.vllm.answers.solve_answer import SolveAnswer, answer_solve
from glm_kvplan.engines.vllm.answers.solve_page import solve_page
from glm_kvplan.errors import InputError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.text import print_page

SERVE = ("--", "vllm", "serve", "zai-org/GLM-5.3-Flash")
MTP3 = ("-sc", '{"method":"mtp","num_speculative_tokens":3}')


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    code, out, err = run(capsys, "solve", "--json", *words)
    assert code in (0, 1), err
    found: dict[str, Any] = json.loads(out)
    return found


def answer(mix: str | None = None, prices: bool = False, memory: float | None = None, **flags: object) -> SolveAnswer:
    plan = kv.plan({"tensor_parallel_size": 4, **flags}, engine="vllm-0.33.0", gpu="h200")
    contexts = None if mix is None else parse_contexts(mix)
    return answer_solve(plan, MemoryGiven(available_gib=memory), mix=contexts, with_prices=prices)


def test_a_public_boot_prints_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    """H200 TP4 MTP3 at 0.30.0 (doc id 58946482992): 45.07 GiB became 3,311 blocks and 3,338,303 tokens."""
    words = ("--gpu", "h200", "--engine", "vllm-0.30.0", "--available-gib", "45.07", *SERVE, "-tp", "4", *MTP3)
    words += ("--max-model-len", "131072")
    found = document(capsys, *words)
    assert found["engine"] == "vllm-0.30.0"
    assert found["num_blocks"] == 3311
    line = "GPU KV cache size: 3,338,303 tokens, Maximum concurrency for 131,072 tokens per request: 25.47x"
    assert found["printed"]["line"] == line
    code, out, _ = run(capsys, "solve", *words)
    assert code == 0
    assert "3,338,303 tokens" in " ".join(out.split())
    assert found["request"]["fixed"] == {"blocks": 16, "bytes": 16 * 14_611_968, "tokens": 18_432}


def test_the_same_from_options_of_kvplan(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--gpu", "h200", "--available-gib", "45.07")
    by_launch = document(capsys, *given, *SERVE, "-tp", "4", "--no-enable-prefix-caching", "--max-model-len", "128k")
    # 128k is 128,000 to vLLM, 131,072 to nobody else
    by_options = document(
        capsys, *given, "--engine", "vllm", "--tensor-parallel-size", "4", "--no-enable-prefix-caching",
        "--max-model-len", "128000",
    )  # fmt: skip
    assert by_launch["num_blocks"] == by_options["num_blocks"]
    assert by_launch["printed"] == by_options["printed"]


def test_options_win_over_the_launch(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--gpu", "h200", "--tensor-parallel-size", "8", *SERVE, "-tp", "4")
    assert found["deployment"]["tensor_parallel_size"] == 8
    assert any("replaces 4" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--tp-size", "4", *SERVE), "--tp-size is a flag of another engine; of vLLM it is --tensor-parallel-size"),
        (("--engine", "0.5.21", *SERVE), "0.5.21"),
        (("--engine", "vllm-0.29.0", *SERVE), "0.29.0"),
        (("--host-gib", "100", *SERVE), "host memory is not planned"),
        (("--context", "0.3:8k", *SERVE), "add up to 0.3"),
        (("--available-gib", "nan", *SERVE), "--available-gib"),
        (("vllm", "serve", "x"), "put -- in front of the launch command: kvplan solve --gpu b200 -- vllm serve"),
        (("python", "-m", "vllm.entrypoints.openai.api_server"), "put -- in front of the launch command"),
    ],
)
def test_what_cannot_be_is_one_line(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "solve", *words)
    last = err.strip().splitlines()[-1]
    assert (code, out) == (2, "")
    assert said in last


def test_what_vllm_refuses_is_a_no(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "solve", *SERVE, "--pipeline-parallel-size", "2")
    assert (code, out) == (1, "")
    assert "pipeline" in err.strip().splitlines()[-1]


def test_a_command_that_does_not_know_vllm_says_so() -> None:
    with pytest.raises(InputError, match="kvplan unheard does not know vLLM yet"):
        check_answers(engine_named("vllm"), "unheard")


def test_a_start_that_fails_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "solve", "--gpu", "h200", "--available-gib", "4", *SERVE, "-tp", "4")
    said = " ".join(out.split())
    assert code == 1
    assert "vLLM refuses to start: one request of 1,048,576 tokens needs 924 blocks" in said
    assert "no single flag lets it start; two do: --max-num-seqs 320 --max-model-len 352512" in said


def test_remedies_start_when_typed() -> None:
    for memory, flags in ((4.0, {}), (12.0, {"max_num_seqs": 2000}), (4.0, {"max_num_seqs": 2000})):
        found = answer(memory=memory, **flags)
        assert found.failure is not None and found.remedies and not found.holds
        for remedy in found.remedies:
            changes = dict((remedy[:2], *(() if remedy.beside is None else (remedy.beside,))))
            typed = {name.removeprefix("--").replace("-", "_"): _typed(value) for name, value in changes.items()}
            assert answer(memory=memory, **{**flags, **typed}).holds


@pytest.mark.parametrize(("card", "weights", "tensor"), [("b200", "299.2", 4), ("h200", "299.2", 4)])
def test_weights_that_do_not_fit_are_said_with_the_fewest_gpus_that_do(
    card: str, weights: str, tensor: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every number is said of something that it is; no bytes below none are shown."""
    code, out, _ = run(capsys, "solve", "--all", "--gpu", card, *SERVE, "-tp", "1")
    said = " ".join(out.split())
    assert code == 1 and f"No: vLLM refuses to start: the weights ({weights} GiB a GPU)" in said
    assert "GiB a GPU are lacking before the first block" in said and "GiB for blocks" not in said
    assert f"each of these alone lets it start: --tensor-parallel-size {tensor} --data-parallel-size" in said
    assert (
        run(capsys, "estimate", "--gpu", card, *SERVE, "-tp", "1")[1].count(f"the weights ({weights} GiB a GPU)") == 1
    )
    plan = kv.plan({"tensor_parallel_size": 1}, engine="vllm-0.33.0", gpu=card)
    for remedy in answer_solve(plan, MemoryGiven()).remedies:
        name = remedy.name.removeprefix("--").replace("-", "_")
        assert answer_solve(plan.with_flags(**{name: int(remedy.after)}), MemoryGiven()).holds
        assert not answer_solve(plan.with_flags(**{name: int(remedy.after) // 2}), MemoryGiven()).holds


def _typed(value: str) -> object:
    return {"on": True, "off": False}.get(value) if value in ("on", "off") else int(value) if value.isdigit() else value


def test_the_usual_contexts_and_the_mix_are_counted() -> None:
    found = answer("0.8:8k,0.2:128k", memory=45.07)
    assert [row.contexts for row in found.served] == [
        "8,192", "32,768", "131,072", "1,048,576", "80% 8,192, 20% 131,072",
    ]  # fmt: skip
    # 13,415,424 bytes a block: 45.07 GiB are 3,607 of them, one never given out; 8,192 tokens need 8 and 13 fixed
    assert found.num_blocks == 3607
    assert found.served[0].requests == 3606 // 21
    assert found.served[0].tokens == 3606 // 21 * 8192
    assert (
        answer("0.8:8k,0.2:128k", max_model_len=131072, memory=45.07).served[-1].requests == found.served[-1].requests
    )
    assert [row.contexts for row in answer("32k", max_model_len=32768).served] == ["8,192", "32,768"]


def test_prices_are_of_the_mix() -> None:
    for mix in ("8k", "0.8:8k,0.2:128k", None):
        found = answer(mix, prices=True)
        assert found.prices is not None
        assert found.priced_contexts == ("131,072" if mix is None else parse_contexts(mix).text)
    assert answer().prices is None


def test_data_parallel_engines_serve_together() -> None:
    one, two = answer(memory=45.07), answer(memory=45.07, data_parallel_size=2)
    assert two.head.gpus == 8
    assert [row.requests for row in two.served] == [2 * row.requests for row in one.served]
    assert two.printed == one.printed


def test_an_estimate_says_what_its_low_end_does() -> None:
    start = answer(max_model_len=131072)
    assert start.certainty == "estimated" and start.span[0] < start.num_blocks < start.span[1]
    between = (start.span[0] + start.num_blocks) // 2
    tight = answer(max_model_len=131072, max_num_seqs=between)
    assert tight.holds and any("at the low end of the estimate the start fails" in str(each) for each in tight.warnings)
    above = answer(max_model_len=131072, max_num_seqs=(start.num_blocks + start.span[1]) // 2)
    assert not above.holds and any("at the high end of the estimate" in str(each) for each in above.warnings)


def test_the_page_shows_every_warning(capsys: pytest.CaptureFixture[str]) -> None:
    start = answer(max_model_len=131072)
    tight = answer(max_model_len=131072, max_num_seqs=(start.span[0] + start.num_blocks) // 2)
    print_page(solve_page(tight))
    out = "".join(capsys.readouterr().out.split())
    for warning in tight.warnings:
        assert "".join(str(warning).split()) in out


def test_no_option_of_a_flag_is_one_of_kvplan() -> None:
    """A flag that kvplan has an option of the same spelling for could not be given."""
    from glm_kvplan.cli.solve import solve

    for name in ("sglang", "vllm"):
        engine = engine_named(name)
        command = _command("solve", solve, lambda engine=engine: engine)
        spelled: list[str] = [word for param in command.params for word in (*param.opts, *param.secondary_opts)]
        assert sorted(spelled) == sorted(set(spelled))
