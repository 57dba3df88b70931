"""Boot logs of vLLM: its line formats filled with what public boots printed, read and held against plans."""

import tracemalloc
from time import process_time

import pytest
from vllm_boots import boots_of, read_boot

import glm_kvplan as kv
from glm_kvplan.engines.vllm.boot_lines import ERROR_NUMBERS, LINES, Boot
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.reconciliation import Reconciliation, reconcile, release_of
from glm_kvplan.errors import InputError
from glm_kvplan.memory.given import MemoryGiven

ARGUMENTS = (
    "{{'model_tag': 'zai-org/GLM-5.3-Flash', 'model': 'zai-org/GLM-5.3-Flash', 'api_key': '***', "
    "'max_model_len': {context}, 'tensor_parallel_size': {tp}, 'max_num_seqs': 64{more}}}"
)
MTP3 = ", 'speculative_config': {'method': 'mtp', 'num_speculative_tokens': 3}"
# TP4, H200, MTP3: doc id 58946482992, with its measured parts
TP4 = """\
(APIServer pid=1) INFO 09-03 10:11:12 [startup.py:96] non-default args: {arguments}
(EngineCore pid=9) INFO 09-03 10:11:30 [core.py:99] Initializing a V1 LLM engine (v{release}) with config: \
model='zai-org/GLM-5.3-Flash', dtype=torch.bfloat16, max_seq_len={context}, tensor_parallel_size=4, \
enable_prefix_caching=True, kv_cache_dtype=auto, enforce_eager=False
(EngineCore pid=9) INFO 09-03 10:11:31 [interface.py:1109] Setting attention block size to 1152 tokens to ensure that \
attention page size is >= mamba page size.
(EngineCore pid=9) INFO 09-03 10:11:31 [interface.py:1133] Padding mamba page size by 5.11% to ensure that mamba page \
size and attention page size are exactly equal.
(Worker_TP0 pid=11) INFO 09-03 10:13:00 [gpu_worker.py:773] Available KV cache memory: 45.07 GiB
(Worker_TP1 pid=12) INFO 09-03 10:13:00 [gpu_worker.py:773] Available KV cache memory: 45.21 GiB
(EngineCore pid=9) INFO 09-03 10:13:01 [kv_cache_utils.py:1148] GPU KV cache size: {tokens} tokens, \
Maximum concurrency for {context} tokens per request: {concurrency}x
(Worker_TP0 pid=11) INFO 09-03 10:13:30 [gpu_model_runner.py:6517] Graph capturing finished in 12 secs, took 2.18 GiB
(Worker_TP0 pid=11) INFO 09-03 10:13:31 [gpu_worker.py:1045] Free memory on device (139.2/139.79 GiB) on startup. \
Desired GPU memory utilization is (0.92, 128.61 GiB). Actual usage is 78.99 GiB for consumed memory (weights + \
non-torch), 4.56 GiB for peak activation, and 2.18 GiB for CUDAGraph memory. Replace gpu_memory_utilization config
"""
REFUSAL = """\
(APIServer pid=1) INFO 09-03 10:11:12 [startup.py:96] non-default args: {arguments}
(EngineCore pid=9) INFO 09-03 10:11:30 [core.py:99] Initializing a V1 LLM engine (v0.33.0) with config: dtype=bfloat16
(Worker_TP0 pid=11) INFO 09-03 10:13:00 [gpu_worker.py:773] Available KV cache memory: {gib} GiB
(EngineCore pid=9) ERROR 09-03 10:13:02 [core.py:1001] ValueError: {words}
"""


def tp4(tokens: str = "3,338,303", concurrency: str = "25.47", release: str = "0.30.0", more: str = MTP3) -> str:
    arguments = ARGUMENTS.format(context=131072, tp=4, more=more)
    return TP4.format(
        arguments=arguments, context="131,072", tokens=tokens, concurrency=concurrency, release=release
    ).replace("max_seq_len=131,072", "max_seq_len=131072")


def planned(boot: Boot, release: str = "0.30.0", gpu: str = "h200", **more: object) -> Plan:
    found: Plan = kv.plan({**boot.flags, **more}, engine=f"vllm-{release}", gpu=gpu)
    return found


def held(text: str, release: str = "0.30.0") -> Reconciliation:
    boot = read_boot(text)
    return reconcile(boot, planned(boot, release), MemoryGiven())


def test_the_lines_are_read() -> None:
    boot = read_boot(tp4())
    assert (boot.release, boot.model) == ("0.30.0", "zai-org/GLM-5.3-Flash")
    assert boot.flags == {
        "max_model_len": 131072,
        "tensor_parallel_size": 4,
        "max_num_seqs": 64,
        "speculative_config": {"method": "mtp", "num_speculative_tokens": 3},
    }
    assert boot.facts["kv_cache_dtype"] == "auto"
    printed = {name: number.value for name, number in boot.printed.items()}
    assert printed == {
        "block size": 1152,
        "state padding %": 5.11,
        "available": 45.07,
        "cache tokens": 3338303,
        "context": 131072,
        "concurrency": 25.47,
        "graphs": 2.18,
        "free before": 139.2,
        "card": 139.79,
        "weights and context": 78.99,
        "activations": 4.56,
    }
    assert not boot.warnings


def test_a_public_boot_is_explained_to_the_last_digit() -> None:
    found = held(tp4())
    assert found.explained
    assert found.start is not None and found.start.count == 3311
    verdicts = {row.title: row.verdict for row in found.rows}
    assert verdicts == {
        "block size": "same",
        "context": "same",
        "state padding %": "same",
        "graphs": "within",
        "weights and context": "within",
        "activations": "within",
        "available": "within",
        "cache tokens": "same",
        "blocks of the memory": "same",
        "concurrency": "same",
    }


@pytest.mark.parametrize("tokens", ["3,338,304", "3,400,000", "3,338,302"])
def test_a_cache_size_that_no_number_of_blocks_prints_is_not_explained(tokens: str) -> None:
    found = held(tp4(tokens))
    assert not found.explained
    assert "no number of blocks" in next(row.explanation for row in found.rows if row.title == "cache tokens")


def test_a_cache_size_of_other_memory_is_said() -> None:
    """3,400 blocks print 3,428,036 tokens at 26.15x: their law holds, and the printed memory does not give them."""
    found = held(tp4("3,428,036", "26.15"))
    assert found.start is not None and found.start.count == 3400
    row = next(row for row in found.rows if row.title == "blocks of the memory")
    assert (row.verdict, row.explanation) == ("differs", "the printed memory over a block's bytes: 3311 to 3312")
    assert not found.explained


def test_another_release_explains_it_not() -> None:
    """In 0.33 a request holds three blocks more, so the same line says another thing."""
    assert not held(tp4(), "0.33.0").explained


def test_the_longest_context_of_a_refusal_follows_from_its_memory() -> None:
    """What 0.33.0's own code says on a B200 with 6 GiB for blocks, TP16 and 3 n-gram drafts."""
    arguments = ARGUMENTS.format(
        context=1048576,
        tp=16,
        more=", 'block_size': 192, 'speculative_config': {'method': 'ngram', 'num_speculative_tokens': 3}",
    )
    words = (
        "To serve at least one request with the model's max seq len (1048576), (6.7 GiB KV cache is needed, which is "
        "larger than the available KV cache memory (6.0 GiB). Based on the available memory, the estimated maximum "
        "model length is 936320. Try increasing `gpu_memory_utilization`"
    )
    boot = read_boot(REFUSAL.format(arguments=arguments, gib=6.0, words=words))
    assert boot.refusal is not None and boot.refusal.startswith("To serve at least one request")
    found = reconcile(boot, planned(boot, "0.33.0", "b200"), MemoryGiven())
    assert {row.title: row.verdict for row in found.rows}["longest that fits"] == "same"
    assert found.refusal is not None and found.refusal.startswith("one request of 1,048,576 tokens needs 1664 blocks")
    wrong = boot.printed["longest that fits"]
    other = boot._replace(printed={**boot.printed, "longest that fits": wrong._replace(value=wrong.value + 9600)})
    rows = reconcile(other, planned(boot, "0.33.0", "b200"), MemoryGiven()).rows
    assert {row.title: row.verdict for row in rows}["longest that fits"] == "differs"


def test_requests_above_the_blocks_end_the_start() -> None:
    arguments = ARGUMENTS.format(context=131072, tp=4, more=", 'max_num_batched_tokens': 8192").replace("64", "1024")
    words = (
        "max_num_seqs (1024) exceeds available Mamba cache blocks (799). Each decode sequence requires one Mamba cache "
        "block, so CUDA graph capture cannot proceed. Please lower max_num_seqs to at most 799 or increase"
    )
    boot = read_boot(REFUSAL.format(arguments=arguments, gib=10.0, words=words))
    assert boot.printed["requests asked"].value == 1024
    found = reconcile(boot, planned(boot, "0.33.0"), MemoryGiven())
    assert found.refusal is not None and "1024" in found.refusal.replace(",", "")


@pytest.mark.parametrize(
    ("printed", "planned", "note"),
    [
        ("0.30.0", "0.30.0", None),
        ("0.33.0", "0.33.0", None),
        ("0.33.1", "0.33.0", "planned as 0.33.0"),
        ("0.34.0rc1.dev12+gabc", "0.33.0", "planned as 0.33.0"),
        (None, "0.33.0", "names no release"),
    ],
)
def test_the_release_of_a_log(printed: str | None, planned: str, note: str | None) -> None:
    release, said = release_of(read_boot(tp4())._replace(release=printed))
    assert release == planned
    assert said is note is None or (note is not None and said is not None and note in said)


def test_a_release_before_the_model_is_refused() -> None:
    with pytest.raises(InputError, match=r"vLLM 0\.21\.0 does not know this model; the first that does is 0\.30\.0"):
        release_of(read_boot(tp4(release="0.21.0")))


def test_a_text_that_is_no_log() -> None:
    for text in ("", "hello\n", "\x00" * 100, "vllm\n" * 100):
        assert not boots_of(text)


def test_hostile_arguments_are_a_warning() -> None:
    for arguments in (
        "{'a': " * 500 + "}",
        "{1: 2}",
        "{'max_model_len': [1]}",
        "{'max_model_len': -5, 'seed': 1}",
        "{}",
    ):
        text = tp4().replace(ARGUMENTS.format(context=131072, tp=4, more=MTP3), arguments)
        boot = read_boot(text)
        assert boot.flags == {}


def test_long_lines_are_cut_and_read_in_time() -> None:
    for line in ("Actual usage is " * 200_000, "Graph capturing finished in " + " " * 3_000_000, "(" * 2_000_000):
        assert read_boot(tp4() + line + "\n").printed["available"].value == 45.07


PREFIX = "(EngineCore pid=9) INFO 09-03 10:13:01 [kv_cache_utils.py:1148] "
CLAIMS = (
    "Available KV cache memory: 1.00 GiB",
    "Free memory on device (1.00/2.00 GiB) on startup",
    "GPU KV cache size: 64 tokens, Maximum concurrency for 64 tokens per request: 1.00x",
    "non-default args: {'model': 'x', 'tensor_parallel_size': 1}",
    "Initializing a V1 LLM engine (v0.1.0) with config: max_seq_len=1, tensor_parallel_size=1",
    "ValueError: To serve at least one request",
    "vLLM server version 0.1.0",
)


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize(
    "quoting",
    [
        "INFO 11-29 12:00:00 [logger.py:39] Received request cmpl-1: prompt: {!r}, params: x",
        "(APIServer pid=1) INFO 11-29 12:00:00 [logger.py:39] Received: {}",
        'INFO:     127.0.0.1:5 - "GET /{} HTTP/1.1" 200 OK',
        "{}",  # a prompt of several lines that something printed raw
        "user: {}",
        f"user: {PREFIX}{{}}",
        f"gateway-1  | 2026-11-29 prompt {PREFIX}{{}}",
        f'{{{{"message": "they say:\\n{PREFIX}{{}}"}}}}',
        '{{"message": "{}"}}',
    ],
)
def test_a_prompt_changes_nothing(quoting: str, claim: str) -> None:
    """A request's record quotes what somebody sent; so may anything else that writes to the same stream."""
    line = quoting.format(claim)
    assert read_boot(tp4() + line) == read_boot(tp4())
    assert not boots_of(f"{line}\n") or quoting in ("{}", '{{"message": "{}"}}') or PREFIX in quoting


def test_hostile_lines_in_linear_time() -> None:
    """Each took minutes or gigabytes, once: a release without its bracket, arguments of a megabyte."""
    lines = (
        "Initializing a V1 LLM engine (v1.2.3" * 30_000,
        "non-default args: {'max_model_len': [" + "1," * 500_000,
        "non-default args: {'max_model_len': " + "1+" * 500_000 + "1j}",
        "non-default args: {" + "'model': 1," * 90_000,
    )
    tracemalloc.start()
    try:
        started = process_time()
        for line in lines:
            read_boot(tp4() + PREFIX + line + "\n")
        assert process_time() - started < 20
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "line",
    [
        "GPU KV cache size: 0 tokens, Maximum concurrency for 0 tokens per request: 0.00x",
        "GPU KV cache size: 99,999,999,999,999,999 tokens, Maximum concurrency for 1 tokens per request: 1.00x",
    ],
)
def test_numbers_that_no_engine_prints(line: str) -> None:
    lines = [each for each in tp4().splitlines() if line[:9] not in each]
    assert not held("\n".join([*lines, PREFIX + line])).explained


def test_a_long_refusal_is_cut() -> None:
    arguments = ARGUMENTS.format(context=131072, tp=4, more="")
    boot = read_boot(REFUSAL.format(arguments=arguments, gib=6.0, words="To serve at least one request " + "x" * 900))
    assert boot.refusal is not None and len(boot.refusal) == 600


def test_the_last_starts_of_a_long_log_are_kept() -> None:
    one = f"{PREFIX}vLLM server version 0.33.0\n{PREFIX}Available KV cache memory: {{}}.00 GiB\n"
    boots = boots_of("".join(one.format(number) for number in range(300)))
    assert [boot.printed["available"].value for boot in boots] == list(range(44, 300))


@pytest.mark.parametrize(
    ("arguments", "warning"),
    [
        ("tensor_parallel_size=4", "cannot be read"),
        ("{'tensor_paral", "cannot be read"),
        ("{'tensor_parallel_size': 4, 'max_mo", "is cut: flags behind the cut"),
        ("{}", ""),
        ("{'tensor_parallel_size': 4}", ""),
        ("{'tensor_parallel_size': 0}", "an argument of the log is left out: --tensor-parallel-size 0"),
        (
            "{'kv_cache_dtype': 3, 'tensor_parallel_size': 4, 'max_num_seqs': None}",
            "",
        ),  # what was not given, or no text
        ("{'model': 3, 'tensor_parallel_size': 4}", ""),
        ("{'tensor_parallel_size': object}", "left out: tensor_parallel_size is no plain value"),
    ],
)
def test_arguments_that_cannot_all_be_read(arguments: str, warning: str) -> None:
    (boot,) = boots_of(f"{PREFIX}non-default args: {arguments}\n{PREFIX}Available KV cache memory: 6.0 GiB\n")
    assert boot.model is None and len(boot.warnings) == bool(warning) and warning in "".join(boot.warnings)
    assert boot.flags == ({"tensor_parallel_size": 4} if "'tensor_parallel_size': 4" in arguments else {})


def test_counts_are_whole_and_other_numbers_have_two_decimals() -> None:
    counts = {"block size", "blocks", "override", "context before", "fitted context", "cache tokens", "context",
              "longest that fits", "requests asked"}  # fmt: skip
    steps = {name: step for line in (*LINES, *ERROR_NUMBERS) for name, step in zip(line.names, line.steps, strict=True)}
    assert steps == {name: 1 if name in counts else 0.01 for name in steps} and counts <= steps.keys()


def test_a_comma_alone_is_no_number() -> None:
    assert read_boot(tp4() + f"{PREFIX}Setting attention block size to ,,, tokens\n") == read_boot(tp4())


def test_the_warnings_of_a_log_are_bounded() -> None:
    assert len(read_boot((PREFIX + "non-default args: {x\n") * 1000 + tp4()).warnings) <= 20
