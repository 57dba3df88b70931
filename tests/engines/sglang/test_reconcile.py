"""Boots held against the plan: published logs are explained, changed ones are not."""

from typing import Any

import pytest
from boots import BOOTS, LOGS, PUBLISHED, boots_of, edited, held, printed, read_log

from glm_kvplan.engines.boot_logs import BesideLog
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.answers.reconcile_page import _difference
from glm_kvplan.engines.sglang.boot_log.boot import Boot, LogRank, logged_memory
from glm_kvplan.engines.sglang.boot_log.causes import _VARIATIONS, causes
from glm_kvplan.engines.sglang.boot_log.fit import fit
from glm_kvplan.engines.sglang.boot_log.log_launch import environment_of
from glm_kvplan.engines.sglang.boot_log.log_rows import PrintedSizes, Row, bytes_row, printed_sizes, telling_digits
from glm_kvplan.engines.sglang.boot_log.reconciliation import reconcile
from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.engines.sglang.sizing.solver import attempt
from glm_kvplan.errors import InputError, KvplanError, RefusedError
from glm_kvplan.units import GIB

OLDER_BUILD = {
    "tp_size": 8, "dp_size": 8, "enable_dp_attention": True, "ep_size": 8, "moe_runner_backend": "deep_gemm",
    "dsa_prefill_backend": "tilelang", "dsa_decode_backend": "tilelang", "context_length": 32768,
    "max_running_requests": 256, "mem_fraction_static": 0.8, "kv_cache_dtype": "fp8_e4m3",
}  # fmt: skip


def test_every_log_is_listed() -> None:
    assert {path.stem for path in LOGS.glob("*.log")} == PUBLISHED.keys()


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_boots_are_explained(name: str) -> None:
    answer = held(name)
    assert answer.explained, answer.first_unexplained
    assert answer.plan.profile.release == (name[-6:] if name.startswith("example") else "0.5.20")
    rows = printed(answer)
    for row, value in PUBLISHED[name].items():
        assert rows[row] == (value, value), row


@pytest.mark.parametrize("name", ["b200x4-mtp6-frac80", "b200x4-mtp4-slots700"])
def test_the_memory_that_explains_both_boots_is_the_same(name: str) -> None:
    """Two boots of one machine with the same weights: their sizes mean the same free memory, to some MiB."""
    band = held(name).sizing.band
    assert band is not None
    assert band.most_gib - band.least_gib < 0.001
    assert 127.575 < band.least_gib < 127.585


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name.startswith("example")])
def test_worked_examples_come_out_at_the_printed_memory(name: str) -> None:
    answer = held(name)
    assert answer.sizing.taken_gib == 0
    solution = answer.sizing.solution
    assert solution is not None
    assert solution.sizes == answer.sizing.sizes


def test_the_wrong_release_is_not_explained_and_the_right_one_is_named() -> None:
    answer = held("b200x4-mtp6-frac80", BesideLog(engine="0.5.23"))
    assert not answer.explained
    assert answer.first_unexplained is not None
    assert answer.first_unexplained.name == "page_size"
    assert causes(answer) == ("the engine is 0.5.20 or 0.5.21: under it every number is explained",)


@pytest.mark.parametrize(
    ("edit", "row", "cause"),
    [
        (("ssm_state size: 19.65GB", "ssm_state size: 9.83GB"), "state pool ssm", "a bfloat16 state"),
        (("#tokens: 7289664, KV size: 48.09", "#tokens: 7289664, KV size: 49.29"), "token pool size", "528 bytes"),
        (("avail mem=34.00 GB", "avail mem=29.00 GB"), "free after draft pools", "something else took GPU memory"),
        (("Reserving 0.10 GB", "Reserving 1.10 GB"), "multimodal reserve", ""),
        (
            ("max_mamba_cache_size: 574", "max_mamba_cache_size: 577"),
            "max_total_num_tokens",
            "no amount of free memory",
        ),
        (("avail mem=127.68 GB", "avail mem=129.68 GB"), "max_total_num_tokens", "2.10 GiB less free"),
        (("torch.float8_e4m3fn", "torch.bfloat16"), "token pool dtype", "BF16 rows"),
        (("'mem_fraction_static': 0.8}", "'mem_fraction_static': 0.81}"), "max_total_num_tokens", "GiB less free"),
    ],
)
def test_one_changed_number_is_found(edit: tuple[str, str], row: str, cause: str) -> None:
    answer = edited("b200x4-mtp6-frac80", edit)
    assert not answer.explained
    assert answer.first_unexplained is not None
    assert answer.first_unexplained.name == row
    assert any(cause in text for text in causes(answer)) or not cause


@pytest.mark.parametrize("name", ["chunked_prefill_size", "max_prefill_tokens", "context_len"])
def test_a_flag_that_is_not_the_log_s_own_is_told(name: str) -> None:
    answer = edited("example-b-0.5.21", (f"{name}=", f"{name}=1"))
    row = answer.first_unexplained
    assert row is not None and row.name == name
    assert causes(answer) == ("a flag that the log does not show, or a build that changes the engine's default",)


def test_what_is_tried_as_a_cause_is_a_flag_with_a_value_it_takes() -> None:
    """And every kind that changes the pools of this boot changes a size that is worked out."""
    base = held("b200x4-mtp6-frac80").plan
    moved = set()
    for text, change in _VARIATIONS:
        assert change.keys() <= FLAG.keys(), text
        flags = {name: value for name, value in {**base.flags, **change}.items() if value is not None}
        try:
            again = plan(flags, gpu="b200", engine="0.5.21")
        except KvplanError:
            continue  # not of this boot's kernels
        if again.deployment != base.deployment:
            moved.add(text.partition(" (")[0])
    assert moved >= {"BF16 rows of 1024 bytes", "a bfloat16 state", "a radix cache that is off"}


def test_what_a_whole_log_of_one_server_is_not_said_to_lack() -> None:
    edit = ("#tokens: 7289664, KV size: 48.09", "#tokens: 7289664, KV size: 47.11")
    found = causes(edited("b200x4-mtp6-frac80", edit))
    assert found == ("a build whose pools differ from every release known here (a profile of your own: --engine FILE)",)
    found = causes(edited("b200x4-mtp6-frac80", ("avail mem=127.68 GB", "avail mem=129.68 GB")))
    assert found and not any("ranks" in text for text in found)
    lines = (LOGS / "b200x4-mtp6-frac80.log").read_text(encoding="utf-8").replace("=127.68 GB", "=129.68 GB")
    some = reconcile(read_log([line for line in lines.splitlines() if " TP3 " not in line])[0])
    assert any(text.startswith("the log holds 3 of 4 ranks: one that is not in it") for text in causes(some))


@pytest.mark.parametrize(
    ("free", "off"), [("128.38", "0.80 GiB less"), ("129.68", "2.10 GiB less"), ("126.68", "0.90 GiB more")]
)
def test_the_memory_that_the_sizes_mean_is_told(free: str, off: str) -> None:
    """The published 127.68 GiB less 0.10 for images give the sizes: what another reading lacks of that is told."""
    found = causes(edited("b200x4-mtp6-frac80", ("avail mem=127.68 GB", f"avail mem={free} GB")))
    assert found[0] == (
        f"the printed sizes mean {off} free at the sizing than the last reading: another process, or a reading of "
        "another rank"
    )


def test_a_log_without_a_reading_is_sized_from_all_of_its_card() -> None:
    sizing = held("b200x4-mtp6-conc128").sizing
    assert sizing.memory is None and sizing.pre_gib == 179.06  # 183,359 MiB, as the engine would print it


@pytest.mark.parametrize(
    ("vendor", "page", "aiter"),
    [("rocm", 64, True), ("rocm", 2, True), ("rocm", 1, False), ("rocm", None, True), ("cuda", 64, False)],
)
def test_what_a_page_of_several_tokens_says_of_rocm(vendor: str, page: int | None, aiter: bool) -> None:
    """Only aiter's kernels take it there (arg_groups/overrides.py:871 at 0.5.23); the log does not print the switch."""
    boot = Boot("log", arguments={} if page is None else {"page_size": page})
    assert environment_of(boot, vendor) == ({"SGLANG_USE_AITER": "1"} if aiter else {})


def test_a_rank_of_another_build_is_told() -> None:
    lines = (LOGS / "b200x4-mtp6-frac80.log").read_text(encoding="utf-8").splitlines()
    other = [
        line.replace("conv_state size: 0.69", "conv_state size: 0.70") if " TP1 " in line else line for line in lines
    ]
    answer = reconcile(read_log(other)[0])
    row = answer.first_unexplained
    assert row is not None and (row.name, row.rank) == ("state pool of TP1", "TP1")
    assert "conv=0.69" in row.predicted and "conv=0.70" in row.printed
    assert causes(answer) == ("the ranks do not run the same build or the same flags",)


def test_which_message_says_a_size() -> None:
    """The final ones; of a log that is cut before them, the cap's. A decode server sizes before it raises its slots."""
    lines = (LOGS / "b200x4-mtp6-conc128.log").read_text(encoding="utf-8").splitlines()
    cut = [line for line in lines if "max_total_num_tokens=" not in line]
    assert any("max_running_requests is capped to 122" in line for line in cut)
    assert printed_sizes(read_log(cut)[0]).running_requests == 122
    uncapped = [line for line in cut if "is capped to" not in line]
    assert printed_sizes(read_log(uncapped)[0]).running_requests is None
    boot = Boot("log")
    for message, slots in (("capped", "3"), ("state_pool", "2"), ("decode_slots", "1")):
        boot.add(LogRank(), message, {"slots": slots})
        assert printed_sizes(boot) == (None, int(slots), None)
    boot.add(LogRank(), "ready", {"tokens": "640"})
    assert printed_sizes(boot).tokens == 640
    boot.add(LogRank(), "token_pool", {"tokens": "576"})
    assert printed_sizes(boot).tokens == 576


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("b200x4-mtp6-frac80", "exact with 0.10 GiB less free"),  # what is reserved for images
        ("b200x4-mtp6-conc128", "one budget gives all sizes"),
        ("example-b-0.5.23", ""),
    ],
)
def test_what_makes_the_sizes_exact_is_noted(name: str, note: str) -> None:
    (row,) = (row for row in held(name).rows if row.name == "max_total_num_tokens")
    assert (row.explained, row.note) == (True, note)


def reduced(wanted: int, granted: int, asked: str = "'max_running_requests': 128") -> dict[str, Row]:
    text = (LOGS / "b200x4-mtp6-conc128.log").read_text(encoding="utf-8")
    text = text.replace("'max_running_requests': 128", asked)
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if "TP0" in line and "max_running_requests is capped" in line)
    said = f"max_running_requests was reduced from the requested {wanted} to {granted} (per dp worker) due to"
    rows = reconcile(read_log([*lines[: at + 1], f"{lines[at].partition(']')[0]}] {said}", *lines[at + 1 :]])[0]).rows
    return {row.name: row for row in rows if row.name.startswith("reduced")}


@pytest.mark.parametrize(("wanted", "granted"), [(128, 122), (127, 122), (128, 121)])
def test_requests_that_were_reduced_are_held_against_the_flag(wanted: int, granted: int) -> None:
    """--max-running-requests 128, of which 612 slots leave 122 at five each."""
    found = {name: row.explained for name, row in reduced(wanted, granted).items()}
    assert found == {"reduced: requested": wanted == 128, "reduced: granted": granted == 122}


def test_requests_that_nobody_asked_for_are_the_engines_default() -> None:
    """48 of a launch that speculates, as the README's own boot has it: 128 were another build's."""
    row = reduced(128, 122, "'max_running_requests': None")["reduced: requested"]
    assert (row.predicted, row.explained) == ("48", False)


@pytest.mark.parametrize("lacking", ["Load weight begin", "Load weight end"])
def test_memory_is_read_before_and_after_the_load_or_not_at_all(lacking: str) -> None:
    lines = (LOGS / "b200x4-mtp6-frac80.log").read_text(encoding="utf-8").splitlines()
    assert logged_memory(read_log(lines)[0]) == (176.25, 127.68, 44.76, 3.81)
    assert logged_memory(read_log([line for line in lines if lacking not in line])[0]) is None


def test_a_size_that_memory_does_not_decide_stays_explained() -> None:
    """The flag says 700 slots whatever is free; the tokens of 2 GiB more are others."""
    answer = edited("b200x4-mtp4-slots700", ("avail mem=127.68", "avail mem=129.68"))
    sizes = {row.name: row.explained for row in answer.rows if row.basis == "memory" and row.name.startswith("max_")}
    assert sizes == {"max_total_num_tokens": False, "max_mamba_cache_size": True}


def test_memory_after_the_graphs_is_shown_as_printed() -> None:
    answer = held("example-b-0.5.21")
    assert [row.printed for row in answer.rows if row.name == "available_gpu_mem"] == ["26.40"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_prediction_rests_on_flags_memory_or_printed_sizes(name: str) -> None:
    """As docs/json.md says of `rows[].basis`; what is only shown rests on nothing."""
    for row in held(name).rows:
        assert row.basis in ("flags", "memory", "printed sizes") or row.name == "available_gpu_mem"
    shown = {row.name: row.basis for row in held(name).rows}
    assert shown.get("free after pools", "memory") == "memory"
    assert (
        shown.get("page_size", "flags") == "flags" and shown.get("state pool slots", "printed sizes") == "printed sizes"
    )


def test_every_printed_digit_counts() -> None:
    """Moving any one printed pool size by its last digit leaves it unexplained."""
    text = (LOGS / "example-b-0.5.23.log").read_text(encoding="utf-8")
    answer = held("example-b-0.5.23")
    for row in answer.rows:
        if row.basis != "printed sizes" or "." not in row.printed:
            continue
        for step in (-0.01, 0.01):
            moved = f"{float(row.printed) + step:.2f}"
            changed = text.replace(f": {row.printed}GB", f": {moved}GB").replace(f": {row.printed} GB", f": {moved} GB")
            assert changed != text
            again = reconcile(read_log(changed.splitlines())[0], BesideLog(engine="0.5.23"))
            assert not again.explained


def test_an_unexplained_row_never_shows_no_difference() -> None:
    """Compared before rounding: a reading just outside the span is told with the digits that tell it."""
    rows = {row.name: row for row in held("b200x4-mtp6-frac80").rows}
    top = rows["free after draft pools"].predicted.partition("..")[2]
    answer = edited("b200x4-mtp6-frac80", ("avail mem=34.00 GB", f"avail mem={float(top) + 0.01:.2f} GB"))
    for row in answer.rows:
        if row.explained is False:
            assert float(_difference(row).replace(",", "")), row
    assert [telling_digits("1.00", off) for off in (0.0, 0.004, 0.006, -0.0004, 2.0)] == [2, 3, 2, 4, 2]
    odd = Row("free after pools", "", "33.9..34.0", "34.00", 0.0003, False, "memory")
    assert _difference(odd) == "+0.0003"


def test_what_can_be_judged_stays_where_no_memory_gives_the_sizes() -> None:
    """A build of before the release: its pools come out as far as they are the same, and its page tells it."""
    (log,) = boots_of(BOOTS / "h20-3e-older-build.log")
    answer = reconcile(log, BesideLog(flags=OLDER_BUILD, gpu="h20-3e", engine="0.5.23"))
    assert printed(answer) == {
        "max_total_num_tokens": ("?", "4922240"),
        "max_mamba_cache_size": ("?", "211"),
        "state pool slots": ("211", "211"),
        "state pool conv": ("0.99", "0.99"),
        "state pool ssm": ("28.16", "28.16"),
        "token pool dtype": ("float8_e4m3fn", "float8_e4m3fn"),
        "token pool tokens": ("4922240", "4922240"),
        "token pool size": ("27.48", "32.47"),
    }
    assert causes(answer) == ("4,922,240 is no multiple of this release's page of 256 tokens: an older build",)
    assert answer.sizing.sizes is None
    first, second = answer.sizing.stand_ins
    assert (first.tokens, first.state_slots) == (second.tokens, second.state_slots) == (4922240, 211)
    assert first.running_requests != second.running_requests


def test_rows_of_a_size_that_nobody_knows_are_left_out() -> None:
    """Snapshots go with the requests, which the log lacks; the state pool does not."""
    lines = (LOGS / "b200x4-mtp6-frac80.log").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if "Load weight" not in line and "max_total_num_tokens=" not in line]
    answer = reconcile(read_log([line.replace("7289664", "7289665") for line in kept])[0])
    rows = printed(answer)
    assert (answer.sizing.band, answer.sizing.sizes) == (None, None)
    assert "state pool snapshot_ssm" not in rows
    assert rows["state pool ssm"] == ("19.65", "19.65")
    assert rows["draft token pool size"] == ("4.37", "4.37")
    assert any("is no multiple of this release's page of 64 tokens" in cause for cause in causes(answer))


def test_a_rank_that_differs_is_named() -> None:
    text = (LOGS / "b200x4-mtp6-frac80.log").read_text(encoding="utf-8").splitlines()
    at = next(number for number, line in enumerate(text) if "TP2" in line and "Mamba Cache" in line)
    text[at] = text[at].replace("574", "560")
    answer = reconcile(read_log(text)[0])
    row = answer.first_unexplained
    assert row is not None
    assert (row.name, row.rank) == ("state pool of TP2", "TP2")


def test_a_rank_whose_rings_differ_is_named() -> None:
    rings = "ReplaySSM ring buffers allocated (record_len=16): d=0.10GB, k=0.10GB, g=0.10GB"
    text = (LOGS / "b200x4-mtp6-frac80.log").read_text(encoding="utf-8").splitlines()
    for rank in range(4):
        at = next(number for number, line in enumerate(text) if f"TP{rank}" in line and "Mamba Cache" in line)
        said = rings.replace("d=0.10", "d=0.20") if rank == 2 else rings
        text.insert(at + 1, f"{text[at].partition(']')[0]}] {said}")
    rows = [row for row in reconcile(read_log(text)[0]).rows if row.name.startswith("replay rings of ")]
    assert [(row.name, row.explained) for row in rows] == [("replay rings of TP2", False)]


@pytest.mark.parametrize("rank", ["TP0", "TP2"])
def test_a_rank_whose_draft_pool_is_not_in_the_log_differs_in_nothing(rank: str) -> None:
    text = (LOGS / "b200x4-mtp6-frac80.log").read_text(encoding="utf-8").splitlines()
    target, draft = (number for number, line in enumerate(text) if rank in line and "KV Cache is allocated" in line)
    assert reconcile(read_log([*text[:draft], *text[draft + 1 :]])[0]).explained
    row = reconcile(read_log([*text[:target], *text[target + 1 :]])[0]).first_unexplained  # the draft's stands first
    assert row is not None and row.name == f"token pool of {rank}"


def test_a_boot_cut_before_its_end_is_checked_as_far_as_it_goes() -> None:
    lines = (LOGS / "b200x4-mtp6-frac80.log").read_text(encoding="utf-8").splitlines()
    upto = next(number for number, line in enumerate(lines) if "KV Cache" in line)
    answer = reconcile(read_log(lines[: upto + 1])[0])
    assert answer.explained
    assert not answer.boot.ready
    with pytest.raises(InputError, match="no number to hold against the plan"):
        reconcile(read_log([lines[0].replace("'page_size': 64, ", "")])[0])


def test_flags_from_a_launch_command_where_the_log_has_none() -> None:
    lines = (LOGS / "example-b-0.5.21.log").read_text(encoding="utf-8").splitlines()[1:]
    boot = read_log(lines)[0]
    with pytest.raises(InputError, match="no server_args line"):
        reconcile(boot)
    answer = reconcile(boot, BesideLog({"tp_size": 4, "speculative_algorithm": "EAGLE"}, gpu="b200", engine="0.5.21"))
    assert answer.explained


def test_a_release_that_refuses_the_flags() -> None:
    with pytest.raises(RefusedError):
        held("b200x4-mtp6-frac80", BesideLog({"speculative_eagle_topk": 2}, engine="0.5.20"))


def test_flags_cannot_be_read_from_arguments_without_a_width() -> None:
    with pytest.raises(InputError, match="no tp_size"):
        reconcile(read_log(["server_args={'model_path': 'x', 'mem_fraction_static': 0.8}"])[0])


@pytest.mark.parametrize(
    ("line", "kind", "memory"),
    [
        (
            "RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache. x",
            "no_state_slots",
            33.6,
        ),
        ("ValueError: Loaded weights leave no GPU memory for the KV cache under --mem", "no_token_memory", 20.0),
    ],
)
def test_a_refused_start(line: str, kind: str, memory: float) -> None:
    head, *rest = (LOGS / "example-b-0.5.21.log").read_text(encoding="utf-8").splitlines()
    lines = [text.replace("126.00", f"{memory:.2f}") for text in rest if "Load weight" in text]
    if kind == "no_token_memory":
        head = head.replace("'max_mamba_cache_size': None", "'max_mamba_cache_size': 64")
    answer = reconcile(read_log([head, *lines, line])[0], BesideLog(engine="0.5.21"))
    rows = printed(answer)
    assert rows["refusal"] == (kind, kind)
    assert answer.explained


def test_fit_gives_back_the_memory() -> None:
    made = plan({"tp_size": 4, "speculative_algorithm": "EAGLE"}, gpu="b200", engine="0.5.21")

    def at(gib: float) -> Any:
        return attempt(made, 177.0, gib)

    # At the first two the tokens alone mean memory of two slots more, or less.
    for gib in (48.664722914983, 48.713519424383, 60.0, 91.234567, 126.0, 150.5):
        sizes = at(gib).sizes
        for known in (PrintedSizes(*sizes), PrintedSizes(sizes.tokens, None, sizes.running_requests)):
            band = fit(at, 177.0, known)
            assert band is not None
            assert band.least_gib <= gib <= band.most_gib
            assert band.most_gib - band.least_gib < 0.01
            assert at(band.least_gib).sizes == sizes
    assert fit(at, 177.0, PrintedSizes(1_000_000, 700, 48)) is None


def test_rounding_is_the_printed_digits() -> None:
    assert bytes_row("x", "", int(1.004 * GIB), "1.00").explained
    assert not bytes_row("x", "", int(1.006 * GIB), "1.00").explained
    assert bytes_row("x", "", 1_004_000_000, "1.00", decimal=True).explained


def test_flags_that_no_release_takes_are_told_with_their_place() -> None:
    with pytest.raises(InputError, match=r"line 1: no release known here takes these flags: --tp-size 0"):
        edited("example-b-0.5.21", ("'tp_size': 4", "'tp_size': 0"))


def test_a_page_size_that_is_no_number_is_no_number_to_explain() -> None:
    answer = edited("example-b-0.5.23", ("'page_size': 256", "'page_size': True"))
    assert "page_size" not in {row.name for row in answer.rows}


def test_a_card_that_is_smaller_than_the_log_says() -> None:
    """176.25 GiB were free on the B200 of this log; an H200 has 140.40."""
    with pytest.raises(InputError, match=r"--gpu h200: .* shows 176\.25 GiB on a card, and H200 has 140\.40"):
        held("b200x4-mtp6-frac80", BesideLog(gpu="h200"))
    assert held("b200x4-mtp6-frac80", BesideLog(gpu="b200")).explained
