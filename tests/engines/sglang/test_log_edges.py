"""What is read of a boot, tried, saved and said, each at the value where it turns."""

from collections.abc import Mapping
from dataclasses import replace
from http.client import BadStatusLine
from typing import Any
from urllib.error import URLError

import pytest
from boots import SERVER_INFO, held, read_log
from test_reconcile_layouts import PATCHED

from glm_kvplan.engines.boot_logs import BesideLog
from glm_kvplan.engines.sglang.boot_log import server_info
from glm_kvplan.engines.sglang.boot_log.boot import Boot, LogRank
from glm_kvplan.engines.sglang.boot_log.fit import Band
from glm_kvplan.engines.sglang.boot_log.likely_card import likely_card
from glm_kvplan.engines.sglang.boot_log.log_launch import flags_of
from glm_kvplan.engines.sglang.boot_log.log_releases import possible
from glm_kvplan.engines.sglang.boot_log.log_rows import half_step, telling_digits
from glm_kvplan.engines.sglang.boot_log.reconciliation import reconcile
from glm_kvplan.engines.sglang.boot_log.server_args import from_mapping
from glm_kvplan.engines.sglang.boot_log.server_info import boot_of, read_server_info
from glm_kvplan.engines.sglang.boot_log.world import world_sizes
from glm_kvplan.errors import InputError
from glm_kvplan.memory.gpu import find_gpu
from glm_kvplan.reading.exchange import Answer

STAMP = "[2026-05-14 08:11:02 TP0] "
BEGIN = f"{STAMP}Load weight begin. avail mem=1.00 GB"
STATE = f"{STAMP}Mamba Cache is allocated. max_mamba_cache_size: 4, conv_state size: 1.00GB, ssm_state size: 1.00GB "
TOKENS = f"{STAMP}KV Cache is allocated. dtype: torch.bfloat16, #tokens: 64, KV size: 1.00 GB"
READY = (
    f"{STAMP}max_total_num_tokens=64, chunked_prefill_size=1, max_prefill_tokens=1, max_running_requests=1, "
    "context_len=1"
)


# -- reading -----------------------------------------------------------------------------------------------------------


def test_a_rank_is_spelled_by_the_parts_it_has() -> None:
    assert [str(rank) for rank in (LogRank(), LogRank(1, 2, 3), LogRank(pp=1))] == ["TP0", "DP1 PP2 TP3", "PP1 TP0"]


@pytest.mark.parametrize("pool", [STATE, TOKENS, READY])
@pytest.mark.parametrize(
    "first",
    [
        f"{STAMP}Init torch distributed ends. elapsed=1.20 s, mem usage=0.31 GB",
        f"{STAMP}Memory baseline taken. mem usage=0.31 GB",
        BEGIN,
    ],
)
def test_a_rank_that_has_pools_and_begins_again_is_another_start(pool: str, first: str) -> None:
    assert len(read_log([first, BEGIN, pool, pool, first])) == 2
    assert len(read_log([first, pool, first.replace("TP0", "TP1")])) == 1
    assert len(read_log([first, f"{STAMP}Memory pool end. avail mem=1.00 GB", first])) == 1


def test_the_last_256_starts_are_kept() -> None:
    boots = read_log([BEGIN, READY] * 257)
    assert (len(boots), boots[0].origin, boots[-1].origin) == (256, "line 3", "line 513")


@pytest.mark.parametrize(("fields", "whole"), [(299, False), (300, True)])
def test_a_line_as_long_as_the_engine_s_own_tells_what_it_lacks(fields: int, whole: bool) -> None:
    """No field of a later release in it: the oldest wrote it. Of a short or a cut line nothing follows."""
    text = f"server_args={ {f'x{number}': number for number in range(fields - 1)} | {'tp_size': 4} }"
    (boot,) = read_log([text])
    assert (boot.arguments_whole, boot.arguments_cut, boot.arguments) == (whole, False, {"tp_size": 4})
    assert possible(boot) == (("0.5.20",) if whole else ("0.5.20", "0.5.21", "0.5.22", "0.5.23"))
    (cut,) = read_log([text[:-1]])
    assert (cut.arguments_whole, cut.arguments_cut) == (False, True)
    assert (Boot("log").arguments_whole, Boot("log").arguments_cut) == (False, False)


def test_arguments_that_say_nothing_begin_no_start_of_their_own() -> None:
    (boot,) = read_log(["server_args={'unknown': 1}", "server_args={'tp_size': 2}", BEGIN])
    assert (boot.arguments, boot.origin) == ({"tp_size": 2}, "line 1")
    assert [one.arguments for one in read_log(["server_args={'tp_size': 1}", "server_args={'tp_size': 2}"])] == [
        {"tp_size": 1},
        {"tp_size": 2},
    ]


@pytest.mark.parametrize(
    ("names", "message", "expected"),
    [
        ({"enable_watermark"}, "Memory baseline taken. mem usage=0.31 GB", ("0.5.22", "0.5.23")),
        ({"cuda_graph_tc_compiler"}, "Memory baseline taken. mem usage=0.31 GB", ("0.5.21",)),
        ({"elastic_ep_rejoin", "speculative_skip_dp_mlp_sync"}, "", ("0.5.20",)),
        (
            {"elastic_ep_rejoin", "enable_watermark"},
            "",
            ("0.5.20", "0.5.21", "0.5.22", "0.5.23"),
        ),  # no release has both
    ],
)
def test_releases_between_what_came_and_what_went(names: set[str], message: str, expected: tuple[str, ...]) -> None:
    """arg_groups/fields/*.py of each release; the message is of 0.5.21 and later."""
    (boot,) = read_log([STAMP + message] if message else [BEGIN])
    boot.argument_names = names
    assert possible(boot) == expected


# -- a running server --------------------------------------------------------------------------------------------------


def asked(monkeypatch: pytest.MonkeyPatch, url: str, answer: Answer | Exception) -> tuple[list[Any], str]:
    """What is asked of a server, and what is said of its answer."""
    seen: list[Any] = []

    def get(url: str, headers: Mapping[str, str], *, seconds: float, most: int) -> Answer:
        seen.extend((url, seconds, most))
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(server_info, "get", get)
    with pytest.raises(InputError) as error:
        read_server_info(url)
    return seen, str(error.value)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("host:1", "http://host:1/server_info"),
        ("https://host/", "https://host/server_info"),
        ("http://host:1/box", "http://host:1/box/server_info"),
        ("http://host:1/a/server_info/", "http://host:1/a/server_info"),
    ],
)
def test_where_a_server_is_asked(monkeypatch: pytest.MonkeyPatch, url: str, address: str) -> None:
    assert asked(monkeypatch, url, OSError())[0] == [address, 10.0, 16 << 20]


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        (OSError(), "OSError"),
        (OSError("a\n b" * 60), ("a b" * 60)[:120]),
        (URLError("timed out"), "timed out"),
        (BadStatusLine("secret"), "its answer is no HTTP"),
        (URLError(BadStatusLine("secret")), "its answer is no HTTP"),  # type: ignore[arg-type]
        (ValueError("secret"), "the address is not read"),
    ],
)
def test_why_a_server_does_not_answer(monkeypatch: pytest.MonkeyPatch, failure: Exception, why: str) -> None:
    said = asked(monkeypatch, "host:1", failure)[1]
    assert said == f"--url http://host:1: does not answer ({why}); is the server up?"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b" " * 500_000, "is not JSON"),
        (b" " * 500_001, "is larger than"),
        (b"[" * 400_000, "is not JSON"),
        (b"[" * 400_001, "is larger than"),
    ],
)
def test_the_largest_answer(monkeypatch: pytest.MonkeyPatch, body: bytes, why: str) -> None:
    monkeypatch.setattr(server_info, "LARGEST_ANSWER", 500_000)
    assert why in asked(monkeypatch, "host:1", Answer(200, body))[1]


@pytest.mark.parametrize(("url", "shown"), [("ftp://host:1", "ftp://host:1"), ("http://", "http://"), ("", "http://")])
def test_an_address_that_is_no_server_s_is_not_asked(monkeypatch: pytest.MonkeyPatch, url: str, shown: str) -> None:
    assert asked(monkeypatch, url, OSError()) == ([], f"--url {shown}: write http://host:port")


def test_a_key_that_no_header_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVPLAN_API_KEY", "schl\N{LATIN SMALL LETTER U WITH DIAERESIS}ssel")
    seen, said = asked(monkeypatch, "host:1", OSError())
    assert not seen and "no HTTP header takes" in said


# -- from printed arguments to flags -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "flags"),
    [
        ({"enable_multimodal": True}, {}),
        ({"dp_size": 2, "enable_dp_attention": True, "chunked_prefill_size": 1},
         {"dp_size": 2, "enable_dp_attention": True, "chunked_prefill_size": 2}),
        ({"dp_size": 1, "enable_dp_attention": True, "chunked_prefill_size": 8},
         {"dp_size": 1, "chunked_prefill_size": 8}),
        ({"dp_size": 4, "enable_dp_attention": False}, {"dp_size": 4}),
        ({"attn_dp_size": 2, "dp_size": 1}, {"dp_size": 2, "enable_dp_attention": True}),
        ({"attn_dp_size": 1, "dp_size": 4}, {"dp_size": 4}),
        ({"disaggregation_mode": "decode", "disaggregation_decode_extra_slots": 0},
         {"disaggregation_mode": "decode", "disaggregation_decode_extra_slots": 0}),
        ({"kv_cache_dtype": "auto", "quantization": None, "disable_radix_cache": False}, {}),
        ({"cuda_graph_config": {"decode": {"bs": [], "max_bs": 8}, "prefill": 3}},
         {"cuda_graph_config": {"decode": {"max_bs": 8}}}),
        ({"cuda_graph_config": {"decode": {"bs": [4, 16, 2], "max_bs": 9}}},
         {"cuda_graph_config": {"decode": {"max_bs": 16}}}),
        ({"cuda_graph_config": {}}, {}),
        ({"enable_hierarchical_cache": True, "hicache_size": 0, "hicache_ratio": 3.0},
         {"enable_hierarchical_cache": True, "hicache_ratio": 3.0}),
        ({"enable_hierarchical_cache": True, "hicache_size": 50, "hicache_ratio": 2.0},
         {"enable_hierarchical_cache": True, "hicache_size": 50}),
        ({"enable_hierarchical_cache": True, "hicache_size": 0, "hicache_ratio": 1.5,
          "hicache_host_memory_fraction": 0.8},
         {"enable_hierarchical_cache": True}),  # the ratio is the engine's own
    ],
)  # fmt: skip
def test_what_an_argument_means_as_a_flag(fields: dict[str, Any], flags: dict[str, Any]) -> None:
    assert flags_of({"model_path": "/model", "tp_size": 4, **fields}) == {"tp_size": 4, **flags}


def test_a_mapping_is_whole_as_it_comes() -> None:
    assert from_mapping({"tp_size": 4, "api_key": "k"}) == ({"tp_size": 4}, {"tp_size", "api_key"}, True)


# -- which card --------------------------------------------------------------------------------------------------------


def loaded(gib: float, **arguments: object) -> Boot:
    boot = Boot("log", arguments=arguments)
    boot.add(LogRank(), "load_begin", {"available": repr(gib)})
    boot.add(LogRank(), "load_end", {"available": "1.00", "usage": "1.00"})
    return boot


@pytest.mark.parametrize("part", [1.0, 0.94])
def test_a_card_fits_to_both_ends_of_what_may_be_free(part: float) -> None:
    card = find_gpu("b200")
    found = likely_card(loaded(part * card.memory_mib / 1024, dsa_prefill_backend="trtllm"), {}, {})
    assert found == (card, True)


def test_kernels_that_no_card_has_together() -> None:
    """Of memory that is known the card stands in, and any of the table for its kernels."""
    torn = {"dsa_prefill_backend": "fa3", "dsa_decode_backend": "trtllm"}
    assert likely_card(Boot("log"), torn, {}) is None
    found = likely_card(loaded(100.0), torn, {})
    assert found is not None and not found.known
    assert (found.gpu.name, found.gpu.capability, found.gpu.memory_mib) == ("unknown card", (9, 0), 103959)


@pytest.mark.parametrize(
    ("boot", "flags"),
    [
        (Boot("log"), {"attention_backend": "aiter"}),
        (Boot("log"), {"dsa_prefill_backend": "triton"}),
        (Boot("log", arguments={"dsa_prefill_backend": "aiter"}), {}),
        (Boot("log", arguments={"dsa_decode_backend": "triton"}), {}),
    ],
)
def test_kernels_of_rocm_by_any_name(boot: Boot, flags: dict[str, object]) -> None:
    found = likely_card(boot, flags, {})
    assert found is not None and (found.gpu.vendor, found.known) == ("rocm", False)


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_digits_of_a_number_and_what_hides_in_them() -> None:
    assert (half_step("0.00"), half_step("3")) == (0.005, 0.5)
    assert telling_digits("1.00", 1e-14) == 12  # and no more, however small


def test_how_far_a_reading_lies_from_the_band() -> None:
    band = Band(1.0, 2.0)
    assert [band.distance(gib) for gib in (0.5, 1.0, 1.5, 2.0, 2.25)] == [-0.5, 0.0, 0.0, 0.0, 0.25]
    assert band.middle_gib == 1.5


# -- the verdict -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given", "tried"),
    [
        ("example-b-0.5.23", BesideLog(), ["0.5.23"]),  # told by its fields
        ("b200x4-mtp6-frac80", BesideLog(engine="0.5.20"), ["0.5.20"]),  # named
        ("b200x4-mtp6-frac80", BesideLog(engine="0.5.23"), ["0.5.23", "0.5.20", "0.5.21", "0.5.22"]),
    ],
)
def test_releases_are_tried_until_the_known_one_explains_all(name: str, given: BesideLog, tried: list[str]) -> None:
    answer = held(name, given)
    assert [fit.engine for fit in answer.fits] == tried
    own = next(fit for fit in answer.fits if fit.engine == answer.engine)
    assert own.explained == sum(row.explained is True for row in answer.rows)
    assert own.unexplained == sum(row.explained is False for row in answer.rows)
    assert own.first == (answer.first_unexplained.name if answer.first_unexplained else "")
    assert (answer.better is None) == (own.unexplained == 0)


def test_why_a_release_is_held_to() -> None:
    assert held("example-b-0.5.23").chosen == "told by the log's own fields"
    assert held("b200x4-mtp6-frac80", BesideLog(engine="0.5.20")).chosen == "named"
    answer = reconcile(boot_of({**SERVER_INFO, "version": None}, "host"))
    assert (answer.engine, answer.chosen) == ("0.5.21", "fits best; 0.5.20 fits as well")  # the release of the others
    assert [fit.engine for fit in answer.fits] == ["0.5.20", "0.5.21", "0.5.22", "0.5.23"]
    assert all(fit.unexplained == 0 for fit in answer.fits[:2]) and all(fit.unexplained for fit in answer.fits[2:])
    other = reconcile(boot_of({**SERVER_INFO, "version": "0.9.0"}, "host"))
    assert other.chosen == "the server says 0.9.0, which has no profile; fits best; 0.5.20 fits as well"


def test_a_release_that_refuses_the_flags_explains_nothing() -> None:
    """bfloat16 states of tilelang's rows: of a later release."""
    boot = read_log(
        [f"server_args={PATCHED!r}", f"{STAMP}KV Cache is allocated. dtype: torch.x, #tokens: 65536, KV size: 0.43 GB"]
    )
    fits = {fit.engine: fit for fit in reconcile(boot[0], BesideLog(gpu="rtxpro6000")).fits}
    for release in ("0.5.20", "0.5.21"):
        assert fits[release][:4] == (release, 0, 0, "") and fits[release].refused
        assert all(fit.rank < fits[release].rank for fit in fits.values() if not fit.refused)


def test_what_is_known_of_the_card() -> None:
    told = reconcile(boot_of(SERVER_INFO, "host"), BesideLog(gpu="h200"))
    assert (told.gpu_guessed, told.gpu_unknown) == (False, False)
    fitting = held("example-b-0.5.23")
    assert (fitting.gpu_guessed, fitting.gpu_unknown) == (True, False)
    nothing = {name: value for name, value in SERVER_INFO.items() if not name.startswith("dsa_")}
    none = reconcile(boot_of(nothing, "host"))
    assert (none.gpu_guessed, none.gpu_unknown) == (True, True)


def test_a_copy_of_the_server_has_its_own_ranks() -> None:
    """Plain data parallelism: each copy is held against its own readings, under its own label."""
    boot = held("b200x4-mtp6-frac80").boot
    ranks = {rank._replace(dp=dp): found for dp in (0, 1) for rank, found in boot.ranks.items()}
    copies = world_sizes(replace(boot, ranks=ranks), replace(held("b200x4-mtp6-frac80").plan.deployment, replicas=2))
    assert [label for label, _ in copies] == ["DP0", "DP1"]
    for number, (_, copy) in enumerate(copies):
        assert copy.ranks and {rank.dp for rank in copy.ranks} == {number}
