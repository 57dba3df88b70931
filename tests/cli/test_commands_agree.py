"""Every command of one deployment held against every other: bytes, sizes, requests, GPUs, verdicts, exit codes.

Deployments of all engines, releases and cards are drawn by chance (`drawn`). PROMISES=5000 draws so many, from a seed
of the moment, and asks every question of each.
"""

import io
import json
import os
import shlex
from contextlib import redirect_stderr, redirect_stdout
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from drawn import Drawn, deployments
from hypothesis import example, given, settings
from hypothesis import strategies as st
from shown_numbers import unmatched

from glm_kvplan.cli import main
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.by_name import answering, engine_named
from glm_kvplan.engines.planner import plan
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.json import plain
from glm_kvplan.units import GIB
from glm_kvplan.workload import Demand

BY_HAND = os.environ.get("PROMISES")
HEAD = ("kvplan", "model", "engine", "gpu", "gpus", "title", "layout", "deployment", "notes")
SIZES = {
    "max_total_num_tokens": "tokens",
    "max_mamba_cache_size": "state_slots",
    "max_running_requests": "running_requests",
}


class Said(NamedTuple):
    """What a command printed: its JSON or text, or the line of its error."""

    code: int
    document: Any
    error: str


def said(*words: str) -> Said:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        main(list(words))
    text, code = out.getvalue(), left.value.code
    lines = [line for line in err.getvalue().splitlines() if not line.startswith("kvplan: note: ")]
    assert isinstance(code, int) and len(lines) == (not text), (words, code, lines)
    document = json.loads(text) if text.startswith("{") else text or None
    return Said(code, document, "".join(lines).removeprefix("kvplan: "))


class Asked:
    """The commands of one deployment, each run once and when it is first looked at."""

    def __init__(self, drawn: Drawn, folder: Path) -> None:
        self.drawn, self.folder = drawn, folder
        self.sglang = drawn.engine == "sglang"

    def ask(self, command: str, *words: str, json: bool = True, memory: bool = False) -> Said:
        drawn = self.drawn
        return said(command, *drawn.words, *(drawn.memory_words if memory else ()), *words, *(["--json"] * json))

    def turned(self, flags: dict[str, Any], *, estimated: bool = False) -> "Asked":
        """The same with flags changed (None takes one back), its memory estimated anew where that is said."""
        every = {name: value for name, value in {**self.drawn.flags, **flags}.items() if value is not None}
        memory = self.drawn.memory
        if estimated:
            kept = ("pre_gib", "checkpoint") if self.sglang else ("checkpoint",)
            memory = {name: value for name, value in memory.items() if name in kept}
        return Asked(self.drawn._replace(flags=every, memory=memory), self.folder)

    def reads_fraction(self, flags: dict[str, Any]) -> bool:
        """Whether the reading of a log is another one with these flags: what is left at another utilization."""
        return "gpu_memory_utilization" in flags and "available_gib" in self.drawn.memory

    @property
    def context(self) -> tuple[str, str]:
        return "--context", self.drawn.contexts

    @property
    def workload(self) -> tuple[str, ...]:
        return (*self.context, "--concurrency", str(self.drawn.concurrency))

    @cached_property
    def resolve(self) -> Said:
        return self.ask("resolve")

    @cached_property
    def solve(self) -> Said:
        return self.ask("solve", *self.context, memory=True)

    @cached_property
    def estimate(self) -> Said:
        return self.ask("estimate", *self.workload)

    @cached_property
    def pools(self) -> Said:
        return self.ask("pools", *self.equal)

    @cached_property
    def validate(self) -> Said:
        return self.ask("validate", "--device", "meta", *self.equal)

    @cached_property
    def explain(self) -> Said:
        return self.ask("explain", "where" if self.sglang else "request", *self.equal)

    @property
    def equal(self) -> tuple[str, ...]:
        """A workload of equal requests, the longest of the lengths."""
        return ("--context", str(self.longest), "--concurrency", str(self.drawn.concurrency))

    @property
    def longest(self) -> int:
        return parse_contexts(self.drawn.contexts).longest

    @cached_property
    def advise(self) -> Said:
        return self.ask("advise", *self.workload, memory=True)

    @cached_property
    def row(self) -> dict[str, Any]:
        """The sweep of this one point."""
        engine = f"{self.drawn.engine}-{self.drawn.release}"
        swept = self.ask("sweep", "--over", f"engine={engine}", *self.context, memory=True)
        assert swept.code == 0
        (row,) = swept.document["rows"]
        return dict(row)

    @cached_property
    def checked(self) -> Said:
        return self.check()

    def check(self, **expect: Any) -> Said:
        return said("check", self.file(**expect), "--json")

    def file(self, **expect: Any) -> str:
        path = self.folder / "drawn.kvplan.yaml"
        path.unlink(missing_ok=True)  # some file systems put the end of an overwritten file on disk at once
        path.write_text(self.drawn.file(**expect), encoding="utf-8")
        return str(path)

    @property
    def served(self) -> dict[str, Any]:
        """What solve serves of the contexts; no requests where it does not start."""
        document = self.solve.document
        if document is None or document["served"] is None:
            return {"requests": 0, "low": 0, "high": 0, "mean_requests": 0}
        if self.sglang:
            return dict(document["served"])
        text = parse_contexts(self.drawn.contexts).text
        return next(dict(each) for each in document["served"] if each["contexts"] == text)


def file_of(found: Said) -> dict[str, Any]:
    (file,) = found.document["files"]
    return dict(file)


def expected(found: Said) -> dict[str, dict[str, Any]]:
    """The expectations of a checked file by name."""
    return {each["name"]: each for each in file_of(found)["findings"] if each["wanted"] is not None}


# -- asked of every deployment -----------------------------------------------------------------------------------------


def refusals(asked: Asked) -> None:
    """What one command refuses is refused by every one, with the same line and the same exit code."""
    refused = asked.resolve
    for each in ("estimate", "solve", "advise", "pools", "explain", "validate"):
        found = getattr(asked, each)
        assert (found.code, found.error) == (refused.code, refused.error), each
    file = file_of(asked.checked)
    assert asked.checked.code == refused.code
    if refused.code == 2:
        assert file["verdict"] == "unusable" and file["error"]["message"] == refused.error
    else:
        (finding,) = file["findings"]
        assert file["verdict"] == "falls short" and finding["why"] == refused.error
    assert asked.row["status"] == "refused" and refused.error.startswith(asked.row["reason"])


def heads(asked: Asked) -> None:
    """Model, release, card, GPUs and every resolved flag are said alike."""
    head = {name: asked.resolve.document[name] for name in HEAD}
    for name in ("estimate", "solve"):
        document = getattr(asked, name).document
        assert document is None or {each: document[each] for each in HEAD} == head, name
    checked = file_of(asked.checked)["plan"]
    assert {**head, "notes": checked["notes"]} == {each: checked[each] for each in HEAD}


def start(asked: Asked) -> None:
    """solve, sweep and check agree on whether it starts, on its sizes and on what bounds them."""
    solve, row, document = asked.solve, asked.row, asked.solve.document
    boots = expected(asked.checked)["boots"]
    starts = document is not None and document["failure"] is None
    assert (row["status"] == "ok") == starts
    assert asked.checked.code == solve.code, boots
    assert (boots["status"] == "holds") == (solve.code == 0)
    if not starts:
        reason = solve.error if document is None else document["failure"]["reason"]
        assert boots["why"].startswith(reason) and reason.startswith(row["reason"])
        return
    assert file_of(asked.checked)["sizes"] == sizes(document)
    assert file_of(asked.checked)["certainty"] == document["certainty"] == row["certainty"]
    assert row["gpus"] == document["gpus"]
    assert row["served"] == asked.served["requests"]
    (_sglang_start if asked.sglang else _vllm_start)(asked, row, document)


def sizes(document: dict[str, Any]) -> dict[str, Any]:
    return {"num_blocks": document["num_blocks"]} if "num_blocks" in document else dict(document["sizes"])


def _sglang_start(asked: Asked, row: dict[str, Any], document: dict[str, Any]) -> None:
    for name, size in SIZES.items():
        assert row[name] == document[name] == document["sizes"][size]
    limits, headroom = document["limits"], document["headroom"]
    assert row["tokens_bound_by"] == limits["tokens"][0]["name"]
    assert row["requests_bound_by"] == limits["requests"][0]["name"]
    assert limits["tokens"][0]["value"] == document["sizes"]["tokens"]
    assert limits["requests"][0]["value"] == document["sizes"]["running_requests"]
    assert row["free_bytes"] == headroom["free_bytes"]
    assert row["needed_bytes"] == headroom["needed_bytes"] == document["needs"]["bytes"]
    assert row["headroom"] == headroom["verdict"]
    drawn = document["memory_map"]
    assert sum(each["bytes"] for each in drawn["segments"]) == drawn["total_bytes"]


def _vllm_start(asked: Asked, row: dict[str, Any], document: dict[str, Any]) -> None:
    block, fixed, printed = document["block"], document["request"]["fixed"], document["printed"]
    assert row["num_blocks"] == document["num_blocks"]
    assert (row["block_bytes"], row["block_size"], row["token_bytes"]) == (
        block["bytes"],
        block["tokens"],
        block["token_bytes"],
    )
    assert row["available_bytes"] == document["memory"]["bytes"]
    assert (row["printed_tokens"], row["printed_concurrency"]) == (printed["cache_tokens"], printed["concurrency"])
    assert row["longest_context"] == document["longest_context"]
    assert (row["fixed_bytes"], row["fixed_blocks"]) == (fixed["bytes"], fixed["blocks"])
    assert document["span"][0] <= document["num_blocks"] <= document["span"][1]
    assert row["request_bytes"] == asked.served["bytes"]
    assert asked.served["low"] <= asked.served["requests"] <= asked.served["high"]


# -- bytes -------------------------------------------------------------------------------------------------------------


def the_same_bytes(asked: Asked) -> None:
    """estimate, pools, validate and explain say the same bytes of the same workload."""
    estimate = asked.ask("estimate", *asked.equal)
    pools, validate = asked.pools.document, asked.validate.document
    assert asked.pools.error == asked.validate.error
    assert asked.explain.error in ("", asked.pools.error, estimate.error)
    if pools is None or estimate.document is None:
        return
    asks_as_given = asked.resolve.document["deployment"]
    for said_too in (asked.pools, asked.validate, asked.explain):
        assert said_too.document["deployment"] == asks_as_given and said_too.code == 0
    assert validate["ok"] and pools["sizes"] == validate["sizes"] == validate["allocated_sizes"]
    assert validate["predicted_bytes"] == validate["taken_bytes"] == sum(each["bytes"] for each in pools["tensors"])
    assert [{name: each[name] for name in pools["tensors"][0]} for each in validate["tensors"]] == pools["tensors"]
    assert pools["allocated_bytes"] == sum(each["bytes"] for each in pools["tensors"] if each["place"] == "device")
    (_sglang_bytes if asked.sglang else _vllm_bytes)(asked, estimate.document, pools)


def _sglang_bytes(asked: Asked, estimate: dict[str, Any], pools: dict[str, Any]) -> None:
    fullest = estimate["fullest_stage"]
    stage = estimate["stages"][fullest]
    assert pools["sizes"] == estimate["sizes"] and pools["layers"] == stage["layers"]
    assert pools["allocated_bytes"] == stage["allocated_bytes"] and pools["charged_bytes"] == stage["charged_bytes"]
    assert pools["difference"] == stage["difference"] and pools["unexplained_bytes"] == 0
    assert pools["allocated_bytes"] - pools["charged_bytes"] == sum(each["bytes"] for each in pools["difference"])
    assert pool_bytes(estimate) == stage["allocated_bytes"] + staging(estimate)[fullest]
    every = sum(each["allocated_bytes"] for each in estimate["stages"]) * estimate["ranks_per_stage"]
    assert estimate["allocated_bytes_all_ranks"] == every and estimate["ranks"] == estimate["gpus"]
    for place in asked.explain.document["places"]:
        mine = [each for each in pools["tensors"] if each["component"] == place["component"]]
        assert place["bytes"] == sum(each["bytes"] for each in mine if each["name"] in place["tensors"]), place


def pool_bytes(document: dict[str, Any]) -> int:
    return sum(each["bytes"] for each in document["memory_map"]["segments"] if each["components"])


def staging(estimate: dict[str, Any]) -> list[int]:
    """Bytes of HiCache's buffers on a GPU, by stage."""
    if estimate["host"] is None:
        return [0] * len(estimate["stages"])
    return [each["staging_bytes"] for each in estimate["host"]["stages"]]


def _vllm_bytes(asked: Asked, estimate: dict[str, Any], pools: dict[str, Any]) -> None:
    blocks = estimate["given_blocks"] or estimate["blocks"]["total"]
    assert pools["sizes"]["num_blocks"] == blocks
    assert (pools["block_bytes"], pools["block_tokens"]) == (estimate["block_bytes"], estimate["block_tokens"])
    assert pools["allocated_bytes"] == blocks * estimate["block_bytes"]
    assert estimate["bytes"] == estimate["blocks"]["total"] * estimate["block_bytes"]
    assert estimate["bytes"] == sum(each["bytes"] for each in estimate["ledgers"]) + estimate["rest_bytes"]
    assert estimate["bytes_all_gpus"] == estimate["bytes"] * estimate["gpus"]


def sizes_typed(asked: Asked) -> None:
    """The sizes that solve finds, typed as flags: the same bytes in estimate, pools and sweep, and a file holds."""
    if asked.row["status"] != "ok" or asked.solve.code:
        return
    solve, row = asked.solve.document, asked.row
    flags: dict[str, Any] = {"num_gpu_blocks_override": solve.get("num_blocks")}
    if asked.sglang:
        of_all = solve["deployment"]["attn_dp_size"]
        flags = {"max_total_tokens": solve["sizes"]["tokens"]}
        flags["max_mamba_cache_size"] = solve["sizes"]["state_slots"] * of_all
        flags["max_running_requests"] = solve["sizes"]["running_requests"] * of_all
    typed = asked.turned(flags)
    found, pools = typed.ask("estimate", *typed.equal), typed.pools.document
    if pools is None:
        return  # longer than the server takes
    estimate = found.document
    assert sizes(pools) == sizes(solve)
    if not asked.sglang:
        assert estimate["given_blocks"] == solve["num_blocks"] and estimate["fixed"] == solve["request"]["fixed"]
        assert pools["allocated_bytes"] * estimate["gpus"] == row["cache_bytes"]
        assert estimate["request"]["bytes"] == row["request_bytes"]
        serves = min(row["served"], row["served"] if asked.longest <= row["longest_context"] else 0)
        assert bool(estimate["warnings"]) == found.code
        if parse_contexts(asked.drawn.contexts).lengths == (asked.longest,):
            assert found.code == (serves < asked.drawn.concurrency)
    elif estimate["deployment"]["disaggregation_decode_extra_slots"] == _extra_slots(solve):
        request = estimate["request"]
        stage = estimate["stages"][estimate["fullest_stage"]]
        every = estimate["allocated_bytes_all_ranks"] + sum(staging(estimate)) * estimate["ranks_per_stage"]
        assert sizes(estimate) == sizes(solve) and every == row["cache_bytes"]
        assert pool_bytes(estimate) == pool_bytes(solve)
        assert stage["bytes_per_token"] == row["token_bytes"] and row["request_bytes"] == request["bytes"]
        assert row["fixed_bytes"] == request["state_slot_bytes"] + request["row_bytes"]
        if not asked.drawn.memory and "mem_fraction_static" in asked.drawn.flags:
            assert estimate["fit"]["left_bytes"] == int(solve["memory"]["available_gib"] * GIB)
            assert estimate["fit"]["error_bytes"] == int(solve["memory"]["error_gib"] * GIB)
            if estimate["fit"]["weights_bytes"] is not None:
                loaded = [part["gib"] for part in solve["memory"]["parts"] if part["name"].endswith(" weights")]
                assert abs(estimate["fit"]["weights_bytes"] + sum(loaded) * GIB) < 2
            assert estimate["fit"]["fits"] is not False
    checked = typed.check(**_of_row(row))
    fraction = file_of(checked)["plan"]["deployment"].get("mem_fraction_static")
    if fraction == solve["deployment"].get("mem_fraction_static"):  # where nobody types it, it follows the requests
        assert checked.code == 0, file_of(checked)["findings"]
        assert file_of(checked)["sizes"] == sizes(solve)


def _extra_slots(solve: dict[str, Any]) -> Any:
    return solve["deployment"]["disaggregation_decode_extra_slots"]


# -- expectations ------------------------------------------------------------------------------------------------------


def _of_row(row: dict[str, Any]) -> dict[str, Any]:
    """Expectations of sizes that a sweep's row just meets."""
    if not row.get("max_running_requests"):
        return {}
    workers = row["total_requests"] // row["max_running_requests"]
    return {"max_running_requests": row["total_requests"], "min_total_tokens": row["max_total_num_tokens"] * workers}


def expectations(asked: Asked) -> None:
    """What sweep says is held where a file expects it, and one more is not; what would help does."""
    row = asked.row
    if row["status"] != "ok" or not row["served"] or row["longest_context"] < asked.longest:
        return
    lengths = parse_contexts(asked.drawn.contexts)
    mix: dict[str, Any] = {"contexts": lengths.shares} if len(lengths.lengths) > 1 else {"min_context": asked.longest}
    counts = {"min_concurrency": row["served"], **_of_row(row)}
    held = expected(asked.check(**mix, **counts))
    assert {name: held[name]["found"] for name in counts} == counts
    assert {each["status"] for each in held.values()} <= ({"holds"} if asked.solve.code == 0 else {"holds", "fails"})
    if "min_context" in mix:
        assert held["min_context"]["found"] == row["longest_context"]
    more = {**mix, **{name: count + 1 for name, count in counts.items()}}
    missed = expected(asked.check(**more))
    assert {missed[name]["status"] for name in counts} == {"fails"}
    helping = [(name, change) for name, each in missed.items() for change in each["changes"] if not change["more_gib"]]
    for name, change in helping[:2]:
        if not asked.reads_fraction(change["flags"]):
            then = expected(asked.turned(change["flags"], estimated=change["estimated"]).check(**more))
            assert then[name]["status"] == then["boots"]["status"] == "holds", change


# -- advice ------------------------------------------------------------------------------------------------------------

OWN_SPLIT = dict.fromkeys(("max_mamba_cache_size", "mamba_full_memory_ratio", "max_total_tokens"))


def advice(asked: Asked) -> None:
    """advise is no worse than what is there, and its flags, typed, give what it says."""
    advised, solved = asked.advise, asked.solve
    if advised.document is None or solved.document is None:
        assert (advised.code, advised.error) == (solved.code, solved.error)
        return
    document, concurrency = advised.document, asked.drawn.concurrency
    assert document["memory"] == solved.document["memory"]
    enough = document["served"]["requests"] >= concurrency
    here = asked.sglang or not document["options"] or document["options"][0]["gpus"] == document["gpus"]
    assert document["holds"] == (advised.code == 0) == (enough and here)
    assert document["served"]["requests"] >= min(asked.served["requests"], concurrency)
    (_sglang_advice if asked.sglang else _vllm_advice)(asked, document)


def _sglang_advice(asked: Asked, document: dict[str, Any]) -> None:
    concurrency, served, short = asked.drawn.concurrency, document["served"]["requests"], document["shortage"]
    default = document["default_served"]["requests"]
    assert default == min(asked.turned(OWN_SPLIT).served["requests"], concurrency) and served >= default
    assert (short is None) == document["holds"]
    assert short is None or short["missing_requests"] == concurrency - served
    if document["flags"]:
        typed = asked.turned(document["flags"])
        then = typed.ask("solve", *typed.context, "--prompt", str(asked.longest), memory=True).document
        assert then["failure"] is None and then["sizes"] == document["sizes"]
        assert min(then["served"]["requests"], concurrency) == served
        free, needed, unsure = document["headroom"].values()
        assert (free, needed) == (then["headroom"]["free_bytes"], then["headroom"]["needed_bytes"])
        assert unsure == then["needs"]["unsure_bytes"]
    for layout in document["layouts"][: None if BY_HAND else 2]:
        flags = {**dict.fromkeys(asked.drawn.flags), **layout["flags"]}
        typed = asked.turned(flags, estimated=layout["estimated"])
        assert min(typed.served["requests"], concurrency) == layout["served"]["requests"] == concurrency, layout
        assert typed.solve.document["gpus"] == layout["gpus"]
        assert asked.turned(layout["changes"], estimated=layout["estimated"]).advise.code == 0, layout


def _vllm_advice(asked: Asked, document: dict[str, Any]) -> None:
    now, served = document["now"], asked.served
    assert {name: now[name] for name in ("requests", "low", "high")} == {name: served[name] for name in list(now)[:3]}
    for option in document["options"][: None if BY_HAND else 3]:
        if asked.reads_fraction(option["flags"]):
            continue
        typed = asked.turned(option["flags"], estimated=option["estimated"])
        then = typed.solve.document
        assert (then["num_blocks"], then["gpus"]) == (option["num_blocks"], option["gpus"]), option
        assert then["longest_context"] == option["longest_context"]
        assert typed.served["requests"] == option["requests"] >= asked.drawn.concurrency


LAYOUT = ("tp_size", "pp_size", "dp_size", "enable_dp_attention", "nnodes", "ep_size", "dcp_size", "attn_cp_size",
          "enable_prefill_cp", "cp_strategy", "tensor_parallel_size", "data_parallel_size", "pipeline_parallel_size",
          "decode_context_parallel_size", "enable_expert_parallel")  # fmt: skip


def a_fleet(asked: Asked) -> None:
    """advise --gpus: the file that it saves passes check, and its command, typed, is what it says."""
    flags = {name: value for name, value in asked.drawn.flags.items() if name not in LAYOUT}
    drawn = asked.drawn._replace(flags=flags, memory={k: v for k, v in asked.drawn.memory.items() if k == "checkpoint"})
    saved = asked.folder / "saved.kvplan.yaml"
    saved.unlink(missing_ok=True)
    words = (*drawn.words, *drawn.memory_words)
    found = said("advise", *words, *asked.workload, "--gpus", "8", "--save", str(saved), "--json")
    if found.document is None or found.document["best"] is None:
        assert found.code
        return
    best = found.document["best"]
    checked = said("check", str(saved), "--json")
    assert checked.code == 0 and file_of(checked)["sizes"].items() <= best["sizes"].items(), file_of(checked)
    assert file_of(checked)["plan"]["gpus"] * best["servers"] == best["gpus"]
    typed = Asked(drawn, asked.folder)
    engine = f"{drawn.engine}-{drawn.release}"
    words = ("--engine", engine, "--gpu", drawn.gpu, *drawn.memory_words, *typed.context, "--json")
    typed.solve = said("solve", *words, "--", best["command"])
    assert sizes(typed.solve.document).items() <= best["sizes"].items()
    served = typed.served["requests"] * best["servers"]
    assert best["served"] == min(served, drawn.concurrency) and best["served"] <= best["most"]


# -- two sides, a report, a text ---------------------------------------------------------------------------------------

MEASURES = {
    "gpus": "gpus",
    "requests_at_context": "served",
    "longest_context": "longest_context",
    "cache_bytes": "cache_bytes",
    "token_bytes": "token_bytes",
    "request_bytes": "request_bytes",
    "fixed_bytes": "fixed_bytes",
}
OWN_MEASURES = {
    "sglang": {name: name for name in SIZES},
    "vllm": {"num_gpu_blocks": "num_blocks", "printed cache tokens": "printed_tokens"},
}


def two_releases(asked: Asked) -> None:
    """diff of two releases says what sweep says of both."""
    releases = [*engine_named(asked.drawn.engine).releases()]
    other = releases[releases.index(asked.drawn.release) - 1]
    names = [f"{asked.drawn.engine}-{each}" for each in (asked.drawn.release, other)]
    swept = asked.ask("sweep", "--over", f"engine={','.join(names)}", *asked.equal[:2], memory=True)
    a, b = swept.document["rows"]
    if parse_contexts(asked.drawn.contexts).lengths == (asked.longest,):
        assert a == asked.row
    diff = said("diff", asked.file(min_context=asked.longest), "--engine", names[0], "--engine", names[1], "--json")
    if diff.document is None:
        reasons = [row["reason"] for row in (a, b) if row["status"] != "ok"]
        assert diff.code == 1 and any(reason in diff.error for reason in reasons), (diff, reasons)
        return
    assert {each: diff.document["a"][each] for each in HEAD} == {each: asked.resolve.document[each] for each in HEAD}
    if a["status"] != "ok" or b["status"] != "ok":
        return
    changes = {each["name"]: each for each in diff.document["changes"] if each["kind"] in ("served", "size")}
    if diff.document["context"] != asked.longest:
        return  # more than either server takes
    for name, column in (MEASURES | OWN_MEASURES[asked.drawn.engine]).items():
        if a[column] == b[column]:
            assert name not in changes, name
        else:
            assert (changes[name]["before"], changes[name]["after"]) == (a[column], b[column]), name


def a_report(asked: Asked) -> None:
    """A report holds what solve and advise say, and its verdict is theirs."""
    if asked.solve.document is None:
        return
    drawn, contexts = asked.drawn, parse_contexts(asked.drawn.contexts)
    made = plan(drawn.flags, gpu=drawn.gpu, engine=f"{drawn.engine}-{drawn.release}", environment=drawn.environment)
    answer = answering(made, "report").answer(made, Demand(contexts, drawn.concurrency), MemoryGiven(**drawn.memory))
    assert plain(answer.advised) == {
        name: value for name, value in asked.advise.document.items() if name[:6] != "schema"
    }
    prompt = ("--prompt", str(asked.longest)) if asked.longest <= made.context_length else ()
    assert answer.holds == (asked.advise.code == 0)
    solve = asked.ask("solve", *asked.context, *prompt, "--prices", memory=True).document
    begun = plain(answer.start)
    other = {name for name, value in solve.items() if begun.get(name) != value}
    if not prompt:  # which the server refuses
        other -= {"needs", "headroom"}
    assert other <= {"schema", "schema_version", "served", "host"}, other
    assert answer.served.requests == min(asked.served["requests"], 1 << 48) or asked.sglang
    if asked.sglang:
        assert answer.served.requests == min(asked.served["requests"], drawn.concurrency)


def a_text(asked: Asked) -> None:
    """Every figure of the terminal is one of the JSON; what is missing is one amount."""
    document = asked.solve.document
    if document is None:
        return
    text = asked.ask("solve", "--all", *asked.context, json=False, memory=True)
    assert text.code == asked.solve.code
    if asked.sglang:
        short = 0 if document["headroom"] is None else -document["headroom"]["free_bytes"]
        known = {**document, "contexts": parse_contexts(asked.drawn.contexts).lengths, "short": short}
        sentences = [*document["warnings"], *([document["failure"]["message"]] if document["failure"] else [])]
        words = " ".join(text.document.split())
        for sentence in sentences:
            assert sentence in words
            words = words.replace(sentence, "")
        for limit in (document["limits"] or {"requests": ()})["requests"]:
            words = words.replace(limit["text"], "")  # arithmetic
        assert unmatched(words, known) == [], text.document


def remedies(asked: Asked) -> None:
    """With what solve says is missing it starts, and with each of its remedies."""
    document = asked.solve.document
    if document is None or document["failure"] is None:
        return
    for remedy in document["remedies"]:
        if not asked.sglang:
            words = shlex.split(remedy["text"])
            if words[0] == "without" or (asked.drawn.memory and not words[0].startswith("--max-")):
                continue  # the reading would be another one
            then = asked.ask("solve", *words, memory=True).document
        elif remedy["flag"] == "available_gib":
            more = float(remedy["value"]) - document["memory"]["available_gib"]
            assert document["failure"]["missing_bytes"] in (0, int(more * GIB + 0.5))
            read = {"pre_gib": document["memory"]["pre_gib"], "available_gib": float(remedy["value"])}
            then = Asked(asked.drawn._replace(memory=read), asked.folder).solve.document
        else:
            then = asked.turned(remedy["flags"], estimated=remedy["estimated"]).solve.document
        assert then is not None and then["failure"] is None, remedy


def prices(asked: Asked) -> None:
    """One more unit of a knob, typed, buys what solve --prices says."""
    if asked.row["status"] != "ok" or not asked.sglang:
        return
    before = asked.ask("solve", "--prices", memory=True).document
    for price in before["prices"][: None if BY_HAND else 4]:
        after = asked.turned(price["flags"], estimated=price["estimated"]).solve.document
        if price["failure"] is not None:
            assert after is None or after["failure"]["kind"] == price["failure"], price
            continue
        bought = {"tokens": price["tokens"], "state_slots": price["slots"], "running_requests": price["requests"]}
        assert {name: after["sizes"][name] - size for name, size in before["sizes"].items()} == bought, price
        assert after["gpus"] - before["gpus"] == price["gpus"], price
        free = (document["memory_map"]["segments"][-1]["bytes"] for document in (after, before))
        assert next(free) - next(free) == price["free_bytes"], price


ALWAYS = (heads, start)
QUESTIONS = (the_same_bytes, sizes_typed, expectations, advice, two_releases, a_text, remedies, prices)
DEAR = (a_fleet, a_report)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For deployment files."""
    return tmp_path_factory.mktemp("drawn")


def few_pages(release: str, gpu: str) -> Drawn:
    """Short of memory, and with little more of it of pages for HiCache's layers."""
    flags = {"tp_size": 8, "max_mamba_cache_size": 640, "chunked_prefill_size": -1, "enable_hierarchical_cache": True}
    flags |= {"hicache_write_policy": "write_back", "hicache_io_backend": "direct"}
    return Drawn("sglang", release, gpu, flags, {}, {}, "1000", 1)


@example(few_pages("0.5.20", "h800"), remedies, None)
@example(few_pages("0.5.22", "a100"), remedies, None)
@settings(
    max_examples=int(BY_HAND or 300),
    derandomize=not BY_HAND,
    database=None,
)
@given(deployments(), st.sampled_from(QUESTIONS), st.sampled_from((*DEAR, *[None] * 10)))
def test_commands_agree(folder: Path, drawn: Drawn, question: Any, dear: Any) -> None:
    asked = Asked(drawn, folder)
    if asked.resolve.code:
        refusals(asked)
        return
    for each in (*ALWAYS, *QUESTIONS, *DEAR) if BY_HAND else (*ALWAYS, question, dear):
        if each is not None:
            each(asked)
