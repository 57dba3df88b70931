"""`kvplan advise` and `kvplan report` of one input: the same sentence, the same exit code."""

from pathlib import Path

import pytest

from glm_kvplan.cli import main

H200 = "--gpu h200 --tp-size 8"
B200 = "--gpu b200 --tp-size 4"
VLLM = "-- vllm serve zai-org/GLM-5.3-Flash -tp 4"
YES, FLAGS, NO = ("Yes: ", 0), ("Yes, with other flags: ", 0), ("No: ", 1)
INPUTS = {
    "fits": (f"{H200} --context 128k --concurrency 8", YES),
    "as many as the flags ask for": (f"{H200} --max-running-requests 16 --context 8k", YES),
    "does not fit": (f"{H200} --context 128k --concurrency 200", NO),
    "longer than the server takes": (f"{H200} --context 2m --context-length 1048576", NO),
    "needs more requests": (f"{H200} --max-running-requests 16 --context 8k --concurrency 64", FLAGS),
    "a mix": (f"{H200} --context 0.8:8k,0.2:128k --concurrency 150", FLAGS),
    "a mix by its mean": (f"{H200} --context 0.8:8k,0.2:128k --concurrency 150 --confidence mean", FLAGS),
    "drafts": (f"{B200} --speculative-algorithm EAGLE --context 128k --concurrency 64", FLAGS),
    "does not start": (f"{B200} --pre-gib 176 --available-gib 130 --max-mamba-cache-size 9000", FLAGS),
    "prefix states": (f"{H200} --context 8k --concurrency 64 --prefix-states 2", YES),
    "vLLM: fits": (f"--gpu h200 --available-gib 45.07 --context 128k --concurrency 8 {VLLM}", YES),
    "vLLM: other flags": (f"--gpu h200 --available-gib 45.07 --context 128k --concurrency 30 {VLLM}", FLAGS),
    "vLLM: a mix": (f"--gpu h200 --context 0.8:8k,0.2:128k --concurrency 90 {VLLM} --max-num-seqs 64", FLAGS),
    "vLLM: more GPUs alone": (f"--gpu h200 --available-gib 4 --context 8k {VLLM}", NO),
    "vLLM: does not fit": (f"--gpu h200 --available-gib 45.07 --context 128k --concurrency 3000 {VLLM}", NO),
}


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, list[str]]:
    with pytest.raises(SystemExit) as left:
        main([*words])
    return left.value.code, " ".join(capsys.readouterr().out.split()).split(". ")


@pytest.mark.parametrize("name", INPUTS)
def test_one_verdict(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    words, (start, expected) = INPUTS[name]
    page = str(tmp_path / "plan.md")
    reported, sentence = run(capsys, "report", "-o", page, *words.split())
    verdict = sentence[0].removesuffix(f" {page}")
    assert verdict.startswith(start)
    with pytest.raises(SystemExit) as left:
        main(["advise", *words.split()])
    assert verdict in " ".join(capsys.readouterr().out.split())
    assert (left.value.code, reported) == (expected, expected)
