"""The log reader: every wrapping a log comes in, what it must not keep, and what it must refuse."""

import io
import json
import random
import re
from pathlib import Path
from time import process_time

import pytest
from boots import FRAC80, LOGS, SECRETS, boots_of, facts, plain_lines, read_log
from hypothesis import given
from hypothesis import strategies as st

from glm_kvplan.engines.sglang.boot_log.boot import LogRank, logged_memory
from glm_kvplan.engines.sglang.boot_log.lines import SHAPES
from glm_kvplan.engines.sglang.boot_log.log_releases import possible
from glm_kvplan.engines.sglang.boot_log.server_args import KEPT, parse

EXPECTED = boots_of(FRAC80)[0]


def test_everything_a_boot_says() -> None:
    assert sorted(EXPECTED.ranks) == [LogRank(tp=number) for number in range(4)]
    memory = logged_memory(EXPECTED)
    assert memory is not None
    assert memory == (176.25, 127.68, 44.76, 3.81)
    state = EXPECTED.first("state_pool")
    assert state == {
        "slots": "574",
        "conv": "0.69",
        "ssm": "19.65",
        "snapshot_ssm": "19.89",
        "snapshot_conv": "0.70",
    }
    assert EXPECTED.first("token_pool") == {"dtype": "float8_e4m3fn", "tokens": "7289664", "gib": "48.09"}
    assert EXPECTED.first("token_pool", 1) == {"dtype": "float8_e4m3fn", "tokens": "7289664", "gib": "4.37"}
    assert EXPECTED.first("pools_end", 1) == {"available": "34.00"}
    assert [len(readings["load_end"]) for readings in EXPECTED.ranks.values()] == [2] * len(EXPECTED.ranks)
    assert EXPECTED.arguments["tp_size"] == 4
    assert EXPECTED.arguments["speculative_num_draft_tokens"] == 6
    assert not EXPECTED.arguments_cut


def test_memory_is_the_least_over_the_ranks() -> None:
    memory = logged_memory(boots_of(LOGS / "example-a-0.5.21.log")[0])
    assert memory is not None
    assert (memory.pre_gib, memory.available_gib) == (138.50, 84.00)


@pytest.mark.parametrize("path", sorted(LOGS.glob("*.log")), ids=lambda path: path.stem)
def test_no_secret_is_kept(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert any(secret in text for secret in SECRETS)
    for boot in boots_of(path):
        assert set(boot.arguments) <= KEPT
        assert not any(secret in repr(boot) for secret in SECRETS)


def test_no_field_of_the_list_can_hold_a_secret() -> None:
    assert not [name for name in KEPT if any(word in name for word in ("key", "password", "secret", "api", "auth"))]
    parsed = parse("{'model_path': 'https://user:hunter2@hub.example/glm', 'hf_token': 'x', 'tp_size': 2}")
    assert parsed is not None
    assert parsed.values == {"model_path": "https://hub.example/glm", "tp_size": 2}


def wrapped_docker(lines: list[str]) -> list[str]:
    return [json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-05-14T08:11:02Z"}) for line in lines]


def wrapped_docker_cut(lines: list[str]) -> list[str]:
    """Docker cuts long lines; the parts of one line follow each other in its stream."""
    records = []
    for line in lines:
        parts = [line[at : at + 100] for at in range(0, len(line), 100)]
        parts[-1] += "\n"
        records += [json.dumps({"log": part, "stream": "stderr", "time": "t"}) for part in parts]
    return records


def wrapped_cri_cut(lines: list[str]) -> list[str]:
    records = []
    for line in lines:
        parts = [line[at : at + 300] for at in range(0, len(line), 300)]
        flags = ["P"] * (len(parts) - 1) + ["F"]
        records += [f"2026-05-14T08:11:02.5Z stderr {flag} {part}" for flag, part in zip(flags, parts, strict=True)]
    return records


WRAPPINGS = {
    "plain": lambda lines: lines,
    "kubectl": lambda lines: [f"[pod/glm-0/server] {line}" for line in lines],
    "kubectl timestamps": lambda lines: [f"2026-05-14T08:11:02.123456789Z {line}" for line in lines],
    "colours": lambda lines: [f"\x1b[1;36m{line}\x1b[0m" for line in lines],
    "CRLF": lambda lines: [line + "\r\n" for line in lines],
    "ray": lambda lines: [f"(RayWorker pid=12, ip=10.0.0.1) {line}" for line in lines],
    "slurm": lambda lines: [f"{number % 16:>2}: {line}" for number, line in enumerate(lines)],
    "json": lambda lines: [json.dumps({"level": "info", "message": line}) for line in lines],
    "docker": wrapped_docker,
    "docker, cut": wrapped_docker_cut,
    "kubernetes, cut": wrapped_cri_cut,
}


@pytest.mark.parametrize("name", WRAPPINGS)
def test_wrappings_read_the_same(name: str) -> None:
    lines = WRAPPINGS[name](plain_lines(FRAC80))
    for form in (lines, [line.encode() for line in lines]):
        assert [facts(boot) for boot in read_log(form)] == [facts(EXPECTED)]


def test_ranks_in_any_order() -> None:
    """Lines of one rank keep their order; between ranks anything goes."""
    head, *rest = plain_lines(FRAC80)
    queues: dict[str, list[str]] = {}
    for line in rest:
        queues.setdefault(line[line.index(" TP") : line.index("]")], []).append(line)
    rng = random.Random(3)
    mixed = [head]
    while queues:
        name = rng.choice(sorted(queues))
        mixed.append(queues[name].pop(0))
        if not queues[name]:
            del queues[name]
    assert [facts(boot) for boot in read_log(mixed)] == [facts(EXPECTED)]


def test_several_boots() -> None:
    lines = [*plain_lines(FRAC80), *(LOGS / "example-b-0.5.23.log").read_text(encoding="utf-8").splitlines()]
    first, second = read_log(lines)
    assert facts(first) == facts(EXPECTED)
    assert second.arguments["page_size"] == 256
    assert second.origin == f"line {len(plain_lines(FRAC80)) + 1}"


def test_a_restart_without_its_arguments_is_a_boot_of_its_own() -> None:
    lines = plain_lines(FRAC80)
    first, second = read_log([*lines, *lines[1:]])
    assert facts(first) == facts(EXPECTED)
    assert second.ranks == EXPECTED.ranks
    assert not second.arguments


def test_two_nodes_of_one_server_are_one_boot() -> None:
    head, *rest = plain_lines(FRAC80)
    assert [facts(boot) for boot in read_log([head, head.replace("'node_rank': 0", "'node_rank': 1"), *rest])] == [
        facts(EXPECTED)
    ]


def test_a_prompt_that_quotes_a_boot_is_not_one() -> None:
    lines = plain_lines(FRAC80)
    prompt = "[2026-05-14 09:00:00 TP0] Receive: obj=Request(text='" + "why? " * 200 + lines[0] + lines[2] + "')"
    assert [facts(boot) for boot in read_log([*lines, prompt])] == [facts(EXPECTED)]


QUOTING = (
    "[2026-03-01 10:00:00 TP0] Receive: obj=GenerateReqInput(rid='1a2b', text=\"{}\", sampling_params={{}})",
    "[2026-03-01 10:00:00 TP0] Receive: {}",
    "[2026-03-01 10:00:00] POST /generate {}",
    "[2026-03-01 10:00:00 DP0 TP0 EP0] [2026-03-01 10:00:00 TP0] {}",
    'INFO:     127.0.0.1:5 - "GET /generate?text={} HTTP/1.1" 200 OK',
    "{}",  # a prompt of several lines that something printed raw
    "say: {}",
    '{{"message": "{}"}}',
    '{{"text": "[2026-03-01 10:00:00 TP0] {}"}}',
    "sglang-1  | {}",
    '{{"message": "they say:\\n[2026-03-01 10:00:00 TP0] {}"}}',
    "2026-03-01T10:00:00.1Z gateway-2  | prompt - [2026-03-01 10:00:00] {}",
)
CLAIMS = (
    "server_args={'tp_size': 1, 'model_path': '/x', 'kv_cache_dtype': 'bfloat16'}",
    "Load weight begin. avail mem=100.00 GB",
    "[2026-03-01 10:00:00 TP0] Load weight begin. avail mem=100.00 GB",
    "Memory pool end. avail mem=1.00 GB",
    "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 64, KV size: 0.10 GB",
    "max_total_num_tokens=64, chunked_prefill_size=1, max_prefill_tokens=1, max_running_requests=1, context_len=1",
    "RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache.",
    "Allocating KV hierarchical KV host pool: 1 tokens, 0.01 GB host memory.",
)


@pytest.mark.parametrize("quoting", QUOTING)
def test_a_text_that_somebody_sent_changes_no_row(quoting: str) -> None:
    """hostile/13: only lines in the engine's own logger shape count."""
    lines = plain_lines(FRAC80)
    raw = [quoting.format(claim) for claim in CLAIMS if "Error" not in claim or quoting != "{}"]
    # Nothing tells a whole line of the engine, sent as one of several lines, from the engine's own.
    forged = re.compile(r"\[2026-03-01 10:00:00 TP0\] (?!\[|Receive)")
    raw = [line for line in raw if not forged.match(line)]
    assert len(raw) >= 6
    assert [facts(boot) for boot in read_log([*lines, *raw])] == [facts(EXPECTED)]


def test_an_error_sent_to_a_server_that_is_up_is_none_of_its_own() -> None:
    ready = "[2026-05-14 08:11:02 TP0] max_total_num_tokens=64, chunked_prefill_size=1, max_prefill_tokens=1, "
    lines = [*plain_lines(FRAC80), f"{ready}max_running_requests=1, context_len=1"]
    assert [boot.failure for boot in read_log([*lines, CLAIMS[6]])] == [None]
    assert [boot.failure for boot in read_log([*lines[:-1], CLAIMS[6]])] == ["no_state_slots"]


@given(st.integers(0, FRAC80.stat().st_size))
def test_any_cut_reads_what_is_left(size: int) -> None:
    """A log that ends anywhere never stops the reader, and never says what the whole one does not."""
    cut = FRAC80.read_bytes()[:size]
    boots = read_log(io.BytesIO(cut))
    if not boots:
        assert b"tp_size" not in cut
        return
    assert len(boots) == 1
    for rank, readings in boots[0].ranks.items():
        for name, found in readings.items():
            whole = EXPECTED.ranks[rank][name]
            assert found[:-1] == whole[: len(found) - 1]


def test_arguments_that_were_cut() -> None:
    line = plain_lines(FRAC80)[0]
    boot = read_log([line[: line.index("'dsa_decode_backend'")]])[0]
    assert boot.arguments_cut
    assert boot.arguments["tp_size"] == 4


def test_both_printed_forms_of_arguments() -> None:
    call = parse("ServerArgs(model_path='a, b', tp_size=4, cuda_graph_bs=[1, 2], x=Config(a='}', b={1: 2}), dp_size=8)")
    assert call is not None
    assert call.complete
    assert call.values == {"model_path": "a, b", "tp_size": 4, "dp_size": 8}
    mapping = parse("{'model_path': \"it's\", 'kind': <Kind.A: 'a'>, 'pp_size': 2, 'max_running_requests': None} tail")
    assert mapping is not None
    assert mapping.complete
    assert mapping.values == {"model_path": "it's", "pp_size": 2}


@given(st.dictionaries(st.sampled_from(sorted(KEPT)), st.one_of(st.integers(), st.text(max_size=30), st.booleans())))
def test_any_arguments_come_back(values: dict[str, object]) -> None:
    """Whatever the strings hold: quotes, brackets, commas, backslashes."""
    parsed = parse(repr({"first": [1, {"a": ")"}], **values, "api_key": "'}", "last": None}))
    assert parsed is not None
    assert parsed.complete
    clean = {name: value for name, value in parsed.values.items() if name in values}
    assert clean.keys() == values.keys()
    for name, value in values.items():
        if not (isinstance(value, str) and "//" in value):
            assert clean[name] == value


@given(st.text(max_size=200))
def test_any_text_after_the_sign(text: str) -> None:
    parse("{" + text)
    parse("ServerArgs(" + text)


def test_nothing_is_evaluated(tmp_path: Path) -> None:
    target = tmp_path / "run"
    parsed = parse(f"{{'tp_size': open({str(target)!r}, 'w'), 'pp_size': 2}}")
    assert parsed is not None
    assert parsed.values == {"pp_size": 2}
    assert not target.exists()


RELEASES_SEEN = {
    "example-a-0.5.20": ("0.5.20",),
    "example-a-0.5.21": ("0.5.21",),
    "example-a-0.5.22": ("0.5.22",),
    "example-b-0.5.23": ("0.5.23",),
}


@pytest.mark.parametrize("name", RELEASES_SEEN)
def test_releases_are_told_by_their_fields(name: str) -> None:
    assert possible(boots_of(LOGS / f"{name}.log")[0]) == RELEASES_SEEN[name]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Init torch distributed ends. elapsed=1.20 s, mem usage=0.31 GB", ("0.5.20",)),
        ("Memory baseline taken. mem usage=0.31 GB", ("0.5.21", "0.5.22", "0.5.23")),
        ("Attached hybrid pool stack to UnifiedRadixCache: pools=KV + MAMBA, transfer_layer_num=45", ("0.5.20",)),
        (
            "Attached hybrid pool stack to UnifiedRadixCache: pools=KV + MAMBA, transfer_layer_id_max=44",
            ("0.5.20", "0.5.21", "0.5.22", "0.5.23"),
        ),
    ],
)
def test_releases_are_told_by_their_messages(message: str, expected: tuple[str, ...]) -> None:
    """distributed/bootstrap.py:164 at 0.5.20 and :219 at 0.5.23; mem_cache/hybrid_cache/hybrid_pool_assembler.py:1888
    at 0.5.20, :2519 at 0.5.23 (what the last of these excludes is not read).
    """
    assert possible(read_log([f"[2026-05-14 08:11:02 TP0] {message}"])[0]) == expected


def test_every_release_is_possible_where_nothing_tells() -> None:
    assert possible(read_log(["[2026-05-14 08:11:02 TP0] Load weight begin. avail mem=176.25 GB"])[0]) == (
        "0.5.20",
        "0.5.21",
        "0.5.22",
        "0.5.23",
    )


def test_every_shape_holds_its_anchor() -> None:
    assert len({shape.anchor for shape in SHAPES}) == len(SHAPES)
    for shape in SHAPES:
        assert shape.anchor in shape.pattern.pattern.replace("\\", ""), shape


def test_long_lines_of_almost_messages_take_no_time() -> None:
    """A line of a megabyte that keeps starting the same message: read in one pass, not in its square."""
    lines = [shape.anchor * (1_000_000 // len(shape.anchor)) for shape in SHAPES]
    lines += ["Load weight end. " + "type=a, " * 120_000, "server_args={'a': " + "[" * 900_000]
    started = process_time()
    assert not any(boot.arguments for boot in read_log(lines))
    assert process_time() - started < 5
