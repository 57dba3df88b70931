"""`kvplan pools` and `validate` of a vLLM launch: the one tensor and its views, as vLLM's own allocation makes them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from paths import DATA
from running import run
from vllm_oracle import blocks, flags_of, records

import glm_kvplan as kv
from glm_kvplan.engines.vllm.answers.pools_answer import answer_pools
from glm_kvplan.engines.vllm.block_views import LayerViews, backing, layer_views
from glm_kvplan.errors import InputError
from glm_kvplan.workload import Workload

SERVE = ("--", "vllm", "serve", "zai-org/GLM-5.3-Flash", "-tp", "4")
KINDS = {"attn": "latent_rows", "k_cache": "index_keys", "tail_cache": "compress_tail", "self_attn": "kda_state"}


def own_tensors() -> list[dict[str, Any]]:
    """What vLLM's own planning and `allocate_kv_cache` made on torch's meta device, release by release."""
    with gzip.open(DATA / "vllm_views.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


RECORDS = own_tensors()


def expanded(views: tuple[LayerViews, ...]) -> set[tuple[object, ...]]:
    """Every layer's view: kind, where it begins, block stride, type and shape."""
    return {
        (view.component, view.offset + layer * view.layer_stride, view.block_stride, view.dtype, view.shape)
        for view in views
        for layer in range(view.layers)
    }


def vllms_own(record: dict[str, Any]) -> set[tuple[object, ...]]:
    found = set()
    for view in record["views"]:
        for layer in range(view["layers"]):
            component = KINDS[view["first"].rpartition(".")[2]]
            begins = view["offset"] + layer * view["layer_stride"]
            dtype = view["dtype"].removeprefix("torch.")
            found.add((component, begins, view["block_stride"], dtype, tuple(view["shape"])))
    return found


@pytest.mark.parametrize("release", ["0.30.0", "0.31.0", "0.32.0", "0.33.0"])
def test_every_view_is_vllms_own(release: str) -> None:
    seen = 0
    for record in RECORDS:
        if record["release"] != release:
            continue
        seen += 1
        found = blocks(record["flags"], release, record["gpu"])
        count = record["num_blocks"]
        assert backing(found, count).nbytes == record["views"][0]["size"]
        assert expanded(layer_views(found, count)) == vllms_own(record), record["flags"]
    assert seen >= 15


def test_the_tensors_of_every_plan() -> None:
    """Of each of vLLM's own plans: how many views it places, and the bytes its groups fill of a block."""
    for record in records():
        if "refused" in record or "pipeline_parallel_size" in record["input"]:
            continue
        found, plan = blocks(flags_of(record), record["release"], record["gpu"]), record["plan"]
        views = layer_views(found, plan["num_blocks"])
        packed = found.rank.profile.blocks_packed
        assert (len(views) if packed else sum(view.layers for view in views)) == plan["tensors"]
        pages = sorted(group["bytes"] for group in plan["groups"] if group["of"] == "MambaSpec")
        held = sorted(view.layers * view.page_bytes for view in views if view.component == "kda_state")
        assert held == pages
        assert backing(found, plan["num_blocks"]).nbytes == plan["num_blocks"] * plan["bytes_per_block"]
        assert all(view.end <= plan["num_blocks"] * plan["bytes_per_block"] for view in views)


def test_the_blocks_are_those_of_flags_or_of_the_workload() -> None:
    plan = kv.plan({"tensor_parallel_size": 4}, engine="vllm-0.33.0", gpu="h200")
    fixed = plan.with_flags(num_gpu_blocks_override=700)
    assert answer_pools(fixed, Workload(131072, 64)).sizes.num_blocks == 700
    needed = answer_pools(plan, Workload(131072, 2))
    assert needed.sizes.num_blocks == 2 * plan.blocks.needed(131072) + 1
    assert needed.allocated_bytes == needed.sizes.num_blocks * needed.block_bytes
    given = plan.with_flags(kv_cache_memory_bytes=6442450944)
    assert answer_pools(given, Workload(131072, 1)).sizes.num_blocks == 6442450944 // plan.blocks.nbytes
    with pytest.raises(InputError, match="no pipeline"):
        answer_pools(plan, Workload(131072, 1), 0)
    with pytest.raises(InputError, match="no memory for one"):
        answer_pools(plan.with_flags(kv_cache_memory_bytes=1000), Workload(1, 1))


def test_pools_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "pools", "--json", "--num-gpu-blocks-override", "440", *SERVE)
    document = json.loads(out)
    assert (code, document["schema"]) == (0, "glm-kvplan/pools")
    assert [tensor["shape"] for tensor in document["tensors"]] == [[440 * document["block_bytes"]]]
    code, out, _ = run(capsys, "pools", "--num-gpu-blocks-override", "440", *SERVE)
    assert code == 0 and "440x1x1152x512" in out and f"{440 * document['block_bytes']:,}" in out


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("release", ["0.30.0", "0.33.0"])
@pytest.mark.parametrize(
    "flags",
    [
        ("--tensor-parallel-size", "8"),
        ("--tensor-parallel-size", "8", "--kv-cache-dtype", "fp8", "--spec-method", "mtp", "--spec-tokens", "3"),
        ("--tensor-parallel-size", "8", "--gpu", "gb10"),
    ],
    ids=" ".join,
)
def test_validate(
    device: str, release: str, flags: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    record = tmp_path / "record.md"
    words = ("validate", "--device", device, "--engine", f"vllm-{release}", "--num-gpu-blocks-override", "9", *flags)
    code, out, err = run(capsys, *words, "-o", str(record))
    assert code == 0, err
    assert "equal to the byte" in out and "equal to the byte" in record.read_text(encoding="utf-8")
    code, out, _ = run(capsys, *words, "--json")
    document = json.loads(out)
    assert (code, document["ok"]) == (0, True)
    assert document["predicted_bytes"] == document["taken_bytes"] == 9 * document["block_bytes"]
    assert all(view["equal"] and view["inside"] for view in document["views"])


def test_a_wrong_view_is_not_equal() -> None:
    torch = pytest.importorskip("torch")
    from glm_kvplan.engines.vllm.block_allocation import look_at

    view = LayerViews("rows", "latent_rows", 2, 4, "uint8", (4, 1, 2, 8), 0, 16, 32, 16)
    whole = torch.zeros(128, dtype=torch.int8)
    good = [torch.as_strided(whole.view(torch.uint8), (4, 1, 2, 8), (32, 16, 8, 1), 16 * each) for each in range(2)]
    assert look_at(view, good, 128).equal
    assert (view.end, view.first_stride, view.used_bytes) == (128, 32, 64)
    assert not look_at(view, good, 120).inside
    assert not look_at(view._replace(layer_stride=32), good, 256).equal
    assert not look_at(view._replace(block_stride=16), good, 128).equal
    assert not look_at(view._replace(dtype="int8"), good, 128).equal


def test_validate_scales_to_fit(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    words = ("validate", "--device", "cpu", "--no-touch", "--concurrency", "4000", *SERVE)
    code, _, err = run(capsys, *words)
    assert code == 2 and "--scale" in err
    code, out, err = run(capsys, *words[: -len(SERVE)], "--scale", "--keep-free", "1GB", "--json", *SERVE)
    if code == 0:  # torch refuses more than the system overcommits
        document = json.loads(out)
        assert document["scale"] < 1 and document["allocated_sizes"]["num_blocks"] < document["sizes"]["num_blocks"]
    else:
        assert "out of memory" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--with", "sglang"), "--with 'sglang' is not known; use vllm"),
        (("--pp-rank", "0"), "no pipeline"),
        (("--device", "tpu"), "tpu"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "validate", *words, *SERVE)
    assert (code, out) == (2, "")
    assert said in err.splitlines()[-1]


def test_vllms_own_code_agrees(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("vllm")
    pytest.importorskip("torch")
    code, out, err = run(capsys, "validate", "--with", "vllm", "--device", "meta", "--engine", "vllm-installed")
    assert code == 0, err
    assert "tensors built by vllm" in " ".join(out.split())
