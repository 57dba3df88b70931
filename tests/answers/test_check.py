"""What a check says of a deployment: what comes out, which limit binds, and the smallest change that would hold."""

from pathlib import Path

import pytest
import yaml

from glm_kvplan.answers.check.checking import Checked, check_file, check_files, exit_code, files_of
from glm_kvplan.answers.check.deployment_file import parse_deployment
from glm_kvplan.answers.check.file_plan import plan_of
from glm_kvplan.answers.check.finding_words import advice
from glm_kvplan.answers.check.findings import Finding, findings, held
from glm_kvplan.contexts import contexts
from glm_kvplan.engines.expectations import Change
from glm_kvplan.engines.sglang.sizing.advice import advise
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.errors import InputError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.workload import Demand

# Worked example of SGLang 0.5.21's own sizing: 8,563,520 tokens, 706 slots, 48 requests, a page of 64.
B200 = """\
gpu: B200
flags: {tp_size: 4, speculative_algorithm: EAGLE}
memory: {pre_gib: 177.0, available_gib: 126.0}
"""
# And of the same with attention DP 8 on H200: 2,076,032 tokens, 159 slots and 31 requests on each of 8 workers.
H200 = """\
gpu: H200
flags: {tp_size: 8, dp_size: 8, enable_dp_attention: true}
memory: {pre_gib: 138.5, available_gib: 84.0}
"""


def check(tmp_path: Path, text: str, **options: str) -> Checked:
    path = tmp_path / "plan.kvplan.yaml"
    path.write_text(text, encoding="utf-8")
    return check_file(str(path), **options)


def expecting(base: str, **expect: object) -> str:
    return base + yaml.safe_dump({"expect": expect})


def one(checked: Checked, name: str) -> Finding:
    assert checked.error is None, checked.error
    found = [finding for finding in checked.found if finding.name == name]
    assert len(found) == 1, checked.found
    return found[0]


@pytest.mark.parametrize(
    ("base", "name", "value", "limit"),
    [
        (B200, "min_total_tokens", 8_563_520, "tokens (memory)"),
        (B200, "max_running_requests", 48, "max_running_requests"),
        (B200, "min_context", 1_048_576, "context_length"),
        (H200, "min_total_tokens", 8 * 2_076_032, "tokens (memory)"),
        (H200, "max_running_requests", 8 * 31, "state slots"),
        (H200, "min_concurrency", 8 * 31, "state slots"),
    ],
)
def test_an_expectation_holds_up_to_what_the_engine_sizes(
    tmp_path: Path, base: str, name: str, value: int, limit: str
) -> None:
    at = one(check(tmp_path, expecting(base, **{name: value})), name)
    assert (at.status, at.found, at.changes) == ("holds", value, ())
    above = one(check(tmp_path, expecting(base, **{name: value + 1})), name)
    assert (above.status, above.found, above.wanted) == ("fails", value, value + 1)
    assert above.limit.startswith(limit)


def test_concurrency_counts_requests_of_the_context(tmp_path: Path) -> None:
    """8,563,520 tokens hold 8 requests of 1,000,000 tokens in whole pages, with 8 places of draft reserve each."""
    pages = -(-(1_000_000 + 8) // 64)
    most = 8_563_520 // (pages * 64)
    text = expecting(B200, min_context=1_000_000, min_concurrency=most + 1)
    found = one(check(tmp_path, text), "min_concurrency")
    assert (found.found, found.limit) == (most, "tokens (memory)")


def applied(text: str, change: Change) -> dict[str, str]:
    """Status of every expectation with a change applied to the file."""
    data = yaml.safe_load(text)
    for name, value in change.flags.items():
        data["flags"][name] = value
        if value is None:
            del data["flags"][name]
    if change.estimated:  # what was read after the load is of other weights
        data["memory"] = {name: data["memory"][name] for name in ("pre_gib", "host_gib") if name in data["memory"]}
    if change.more_gib:
        data["memory"]["available_gib"] += change.more_gib
    file = parse_deployment(yaml.safe_dump(data), "changed.yaml", Path())
    made = plan_of(file)
    return {finding.name: finding.status for finding in findings(file, made, held(file, made))}


def hosted(text: str, host_gib: float) -> str:
    """The same with HiCache, on hosts of so much memory."""
    flags = "enable_hierarchical_cache: true, hicache_ratio: 2"
    return text.replace("}\nmemory: {", f", {flags}}}\nmemory: {{host_gib: {host_gib}, ")


FAILING = [
    expecting(B200, min_total_tokens=9_000_000),
    expecting(B200, max_running_requests=64),
    expecting(B200, max_running_requests=64, min_total_tokens=8_500_000),
    expecting(B200, max_running_requests=200),
    expecting(B200, min_context=1_000_000, min_concurrency=9),
    expecting(B200, headroom=40),
    expecting(B200.replace("tp_size: 4", "tp_size: 4, context_length: 65536"), min_context="128k"),
    expecting(B200.replace("tp_size: 4", "tp_size: 4, max_total_tokens: 500000"), min_total_tokens=600_000),
    expecting(H200, max_running_requests=256),
    expecting(H200, min_total_tokens=20_000_000),
    expecting(H200.replace("84.0", "37.4"), min_total_tokens=1_000),
    expecting(B200, min_context=8192, min_concurrency=300),
    expecting(B200, min_context=65536, min_concurrency=150),
    expecting(H200, min_context=262144, min_concurrency=150),
    expecting(hosted(B200, 300), min_context=8192, min_concurrency=300, host_memory="fits"),
    expecting(hosted(B200, 602.1), max_running_requests=64, min_total_tokens=8_500_000, host_memory="fits"),
    expecting(hosted(H200, 709.4), max_running_requests=256, host_memory="fits"),
]


@pytest.mark.parametrize("text", FAILING)
def test_every_change_makes_its_expectation_hold_and_breaks_only_what_it_says(tmp_path: Path, text: str) -> None:
    checked = check(tmp_path, text)
    before = {finding.name: finding.status for finding in checked.found}
    failed = [finding for finding in checked.of("fails") if finding.found != "nothing"]
    assert failed and all(finding.changes for finding in failed)
    for finding in failed:
        for change in finding.changes:
            after = applied(text, change)
            assert after["boots"] == "holds"
            assert after[finding.name] == "holds", change.text
            broken = [name for name, status in before.items() if status == "holds" and after.get(name) == "fails"]
            assert [name for name in change.then_short if name in before] == broken


@pytest.mark.parametrize("text", FAILING)
def test_a_step_less_would_not_do(tmp_path: Path, text: str) -> None:
    """Each knob's number is the smallest: one step nearer to the present value falls short."""
    checked = check(tmp_path, text)
    assert checked.plan is not None and checked.answer is not None
    deployment, solution = checked.plan.deployment, checked.answer.solution
    workers = deployment.attn_dp_size
    knobs = {  # the step, and the value now
        "mem_fraction_static": (0.001, deployment.mem_fraction_static),
        "max_mamba_cache_size": (workers, solution.state_slots * workers),
        "max_running_requests": (workers, solution.running_requests * workers),
        "max_total_tokens": (deployment.page_size, solution.tokens),
    }
    for finding in checked.of("fails"):
        for change in finding.changes:
            if len(change.flags) == 1 and knobs.keys() & change.flags.keys():
                (name, value), *_ = change.flags.items()
                step, now = knobs[name]
                nearer = Change({name: round(value + (step if value < now else -step), 3)}, "one step nearer")
                assert applied(text, nearer).get(finding.name) != "holds", change.text


def test_where_no_single_knob_helps_none_is_named(tmp_path: Path) -> None:
    """20 million tokens of 7,728 bytes are 144 GiB: more than the weights leave, whichever one flag is changed."""
    finding = one(check(tmp_path, expecting(B200, min_total_tokens=20_000_000)), "min_total_tokens")
    assert (finding.status, finding.changes) == ("fails", ())


@pytest.mark.parametrize(("context", "requests"), [(8192, 300), (65536, 150)])
def test_where_no_single_knob_helps_all_of_what_advise_finds_is_named(
    tmp_path: Path, context: int, requests: int
) -> None:
    """The same flags as `kvplan advise` prints for these requests on this layout, or for the nearest layout."""
    text = expecting(B200, min_context=context, min_concurrency=requests)
    finding = one(check(tmp_path, text), "min_concurrency")
    (change,) = finding.changes
    assert change.together and len(change.flags) > 1
    assert applied(text, change)["min_concurrency"] == "holds"
    assert str(advice(finding)[0]).startswith(f"no single flag makes it hold; together these do: {change.text}")
    server = Server(plan_of(parse_deployment(B200, "b.yaml", Path())).plan, MemoryGiven(177.0, 126.0))
    found = advise(server, Demand(contexts([(context, 1)]), requests))
    own = {"tp_size": 4, "speculative_algorithm": "EAGLE"}
    advised = found.flags if found.holds else found.layouts[0].flags
    assert change.flags == {name: value for name, value in advised.items() if own.get(name) != value}


def test_a_fraction_that_the_file_gives_is_kept(tmp_path: Path) -> None:
    """200 requests of 8,192 tokens: with a larger fraction alone they would fit without another dtype of the state."""
    given = B200.replace("tp_size: 4", "tp_size: 4, mem_fraction_static: 0.6")
    (change,) = one(check(tmp_path, expecting(given, min_context=8192, min_concurrency=200)), "min_concurrency").changes
    assert change.together and "mem_fraction_static" not in change.flags and "mamba_ssm_dtype" in change.flags


def test_the_changes_of_a_refused_start_make_everything_hold(tmp_path: Path) -> None:
    text = expecting(B200.replace("126.0", "33.0"), min_total_tokens=500_000, max_running_requests=8)
    finding = one(check(tmp_path, text), "boots")
    assert finding.status == "fails" and finding.changes
    for change in finding.changes:
        after = applied(text, change)
        assert {after[name] for name in ("boots", "min_total_tokens", "max_running_requests")} == {"holds"}, change.text


def test_where_nothing_makes_everything_hold_the_changes_make_it_start(tmp_path: Path) -> None:
    """20 million tokens are more than any one flag gives; each change says that they would still be short."""
    text = expecting(B200.replace("126.0", "33.0"), min_total_tokens=20_000_000, max_running_requests=8)
    finding = one(check(tmp_path, text), "boots")
    assert finding.status == "fails" and len(finding.changes) > 1
    for change in finding.changes:
        after = applied(text, change)
        assert after["boots"] == "holds", change.text
        short = [name for name in ("min_total_tokens", "max_running_requests") if after[name] == "fails"]
        assert [name for name in change.then_short if name in after] == short, change.text
        assert "min_total_tokens" in short
    broken = [len(change.then_short) for change in finding.changes]
    assert broken == sorted(broken)


def test_a_start_that_is_refused_fails_every_expectation(tmp_path: Path) -> None:
    text = expecting(H200.replace("84.0", "37.0"), min_total_tokens=1, max_running_requests=1)
    checked = check(tmp_path, text)
    assert {finding.name: finding.status for finding in checked.found if finding.wanted is not None} == dict.fromkeys(
        ("boots", "min_total_tokens", "max_running_requests"), "fails"
    )
    assert "mem_fraction_static" in one(checked, "boots").why
    assert exit_code([checked]) == 1


def test_weights_that_do_not_fit_fall_short_and_the_gpus_that_would_do_are_named(tmp_path: Path) -> None:
    """The published FP8 weights are 149.9 GiB a GPU at TP 2 and 75.3 at TP 4, on a card of 79.6 GiB."""
    checked = check(tmp_path, expecting("gpu: H100\nflags:\n  tp_size: 2\n", min_context=1000))
    finding = one(checked, "boots")
    assert (finding.status, finding.found, exit_code([checked])) == ("fails", "out of memory", 1)
    assert [dict(change.flags) for change in finding.changes] == [{"tp_size": 8}]


def test_flags_that_the_engine_refuses_fall_short(tmp_path: Path) -> None:
    checked = check(tmp_path, "gpu: B200\nflags:\n  tp_size: 4\n  kv_cache_dtype: fp8_e5m2\n")
    finding = one(checked, "boots")
    assert (finding.status, finding.line, exit_code([checked])) == ("fails", 2, 1)
    assert (finding.wanted, finding.found, finding.limit) == ("starts", "refused", "flags")


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("launch: sglang serve zai-org/GLM-5.3-Flash --tp 4\nflags: {kv_cache_dtype: fp8_e5m2}\n", 2),
        ("flags: {kv_cache_dtype: fp8_e5m2}\nlaunch: sglang serve zai-org/GLM-5.3-Flash --tp 4\n", 3),
        ("flags: {kv_cache_dtype: fp8_e5m2}\nlaunch_file: serve.sh\n", 3),
        ("source: x\nflags: {tp_size: 4, kv_cache_dtype: fp8_e5m2}\n", 3),
    ],
)
def test_a_refused_start_is_told_at_its_launch(tmp_path: Path, keys: str, line: int) -> None:
    (tmp_path / "serve.sh").write_text("sglang serve zai-org/GLM-5.3-Flash --tp 4\n")
    assert one(check(tmp_path, f"gpu: B200\n{keys}"), "boots").line == line


def test_host_pools_that_the_engine_cannot_build_fall_short(tmp_path: Path) -> None:
    """Flags that are refused only as the pools are sized: a shortfall, no unusable file."""
    flags = "flags: {tp_size: 4, enable_hierarchical_cache: true, hicache_mem_layout: layer_first}\n"
    checked = check(tmp_path, f"gpu: B200\n{flags}")
    finding = one(checked, "boots")
    assert (finding.status, finding.found, finding.line) == ("fails", "refused", 2)
    assert checked.error is None and checked.plan is not None and checked.answer is None


def test_pools_that_do_not_fit_beside_the_budget_do_not_boot(tmp_path: Path) -> None:
    """The request table (4 MiB a request at full context) is not charged: many requests and no slack end the start."""
    text = B200.replace("tp_size: 4", "tp_size: 4, mem_fraction_static: 0.999, max_running_requests: 140")
    finding = one(check(tmp_path, text), "boots")
    assert (finding.status, finding.found) == ("fails", "out of memory")


def test_a_tolerated_shortfall_does_not_fail(tmp_path: Path) -> None:
    text = expecting(B200, min_total_tokens=9_000_000, tolerate={"min_total_tokens": "bought already"})
    checked = check(tmp_path, text)
    finding = one(checked, "min_total_tokens")
    assert (finding.status, finding.note, exit_code([checked])) == ("tolerated", "bought already", 0)
    assert finding.changes


def test_a_note_with_nothing_to_tolerate_is_named(tmp_path: Path) -> None:
    checked = check(tmp_path, expecting(B200, tolerate={"gpu_count": "x"}))
    assert any("gpu_count" in note for note in checked.notes)


def test_requests_that_are_asked_for_and_not_granted_warn(tmp_path: Path) -> None:
    text = B200.replace("tp_size: 4", "tp_size: 4, max_running_requests: 8, max_mamba_cache_size: 10")
    checked = check(tmp_path, text)
    finding = one(checked, "requests_capped")
    assert "8 running requests are asked for and 2 granted" in finding.why
    assert (exit_code([checked]), exit_code([checked], strict=True)) == (0, 1)


def test_an_estimate_that_just_holds_warns(tmp_path: Path) -> None:
    measured = check(tmp_path, expecting(B200, min_total_tokens=8_563_520))
    assert not [finding for finding in measured.found if finding.name == "estimated_memory"]
    text = "gpu: B200\nflags: {tp_size: 4}\n"
    tokens = check(tmp_path, expecting(text, min_total_tokens=1)).found[1].found
    assert "min_total_tokens" in one(check(tmp_path, expecting(text, min_total_tokens=tokens)), "estimated_memory").why


def test_no_gpu_warns(tmp_path: Path) -> None:
    assert one(check(tmp_path, "flags: {tp_size: 8}\n"), "assumed_gpu").status == "warns"


HICACHE = """\
gpu: B200
flags: {tp_size: 4, enable_hierarchical_cache: true, hicache_size: 100, max_running_requests: 64}
memory: {pre_gib: 176.0, available_gib: 120.0, pod_gib: 256}
"""


def test_host_pools_that_exceed_the_pod_fall_short_and_the_size_offered_fits(tmp_path: Path) -> None:
    """100 GB a rank, 4 ranks: about 400 GB against the 256 GiB that the recipe asks for."""
    text = expecting(HICACHE, host_memory="fits")
    finding = one(check(tmp_path, text), "host_memory")
    assert (finding.status, finding.limit) == ("fails", "container limit")
    sizes = [change.flags["hicache_size"] for change in finding.changes if change.flags.get("hicache_size")]
    assert len(sizes) == 1
    for size, status in ((sizes[0], "holds"), (sizes[0] + 1, "fails")):
        again = check(tmp_path, text.replace("hicache_size: 100", f"hicache_size: {size}"))
        assert one(again, "host_memory").status == status


def test_hicache_hazards_warn_with_and_without_the_expectation(tmp_path: Path) -> None:
    for text in (HICACHE, expecting(HICACHE, host_memory="fits")):
        assert one(check(tmp_path, text), "size_is_per_rank").status == "warns"
    assert one(check(tmp_path, HICACHE), "host_memory").status == "warns"


def test_host_memory_needs_a_host(tmp_path: Path) -> None:
    checked = check(tmp_path, expecting(HICACHE.replace(", pod_gib: 256", ""), host_memory="fits"))
    assert checked.error is not None and "host_gib" in checked.error
    assert checked.line == 5
    off = check(tmp_path, expecting(B200, host_memory="fits"))
    assert (one(off, "host_memory").status, one(off, "host_memory").found) == ("holds", "no host pools")


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("engine: 0.4.1\nflags: {tp_size: 4}\n", 1, "no profile"),
        ("flags: {tp_size: 4}\ngpu: B2000\n", 2, "nearest"),
        ("flags: {tp_size: 4}\nmodel: ./gone.json\n", 2, "no such file"),
        ("flags: {tp_size: 4}\nmodel: meta-llama/Llama-3-8B\n", 2, "another model"),
        ("engine: 0.5.21\nlaunch: vllm serve x\n", 2, "another engine"),
        ("gpu: H200\nlaunch_file: gone.sh\n", 2, "No such file"),
        ("gpu: H200\nflags:\n  ep_size: 1\n  tp_size: 0\n", 4, "flags.tp_size: 0 is not accepted"),
        ("gpu: H200\nflags: {tp_size: 8}\nmemory:\n  pre_gib: 500\n", 3, "more than a H200"),
        ("gpu: H200\nflags: {tp_size: 8}\nmemory:\n  checkpoint: int3\n", 3, "no size formula"),
    ],
)
def test_what_a_file_names_and_cannot_be_used(tmp_path: Path, text: str, line: int, says: str) -> None:
    checked = check(tmp_path, text)
    assert checked.error is not None
    assert says in checked.error
    assert (checked.line, exit_code([checked])) == (line, 2)


def test_another_engine_and_gpu_for_every_file(tmp_path: Path) -> None:
    text = expecting(B200, min_total_tokens=8_563_520)
    found = one(check(tmp_path, text, engine="0.5.22"), "min_total_tokens").found
    assert found == 9_932_544  # 0.5.22's own sizing of the same deployment
    other = check(tmp_path, text, gpu="B300")
    assert other.plan is not None and other.plan.gpu.name == "B300"


def test_a_launch_file_and_its_flags(tmp_path: Path) -> None:
    (tmp_path / "serve.sh").write_text("exec python -m dynamo.sglang --model-path x/GLM-5.3-Flash --tp 8 --foo 1\n")
    checked = check(tmp_path, "gpu: H200\nlaunch_file: serve.sh\nflags: {max_running_requests: 4}\n")
    assert checked.plan is not None
    assert (checked.plan.deployment.tp_size, checked.plan.deployment.max_running_requests) == (8, 4)
    assert "--foo" in one(checked, "launch").why


def test_folders_and_repeated_files(tmp_path: Path) -> None:
    for name in ("b.kvplan.yaml", "a.kvplan.toml", "sub/c.kvplan.yml", ".git/d.kvplan.yaml", "other.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('gpu = "B200"\nflags = {tp_size = 4}\n' if "toml" in name else B200)
    names = [Path(name).relative_to(tmp_path).as_posix() for name in files_of(str(tmp_path))]
    assert names == ["a.kvplan.toml", "b.kvplan.yaml", "sub/c.kvplan.yml"]
    checked = check_files([str(tmp_path), str(tmp_path / "b.kvplan.yaml"), str(tmp_path / "gone.yaml")])
    assert len(checked) == 4
    assert (exit_code(checked), exit_code(checked[:3])) == (2, 0)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no file in it"):
        files_of(str(tmp_path / "empty"))


def test_a_finding_says_where(tmp_path: Path) -> None:
    finding = one(
        check(tmp_path, B200 + "expect:\n  headroom: fits\n  max_running_requests: 50\n"), "max_running_requests"
    )
    assert finding.line == 6


def test_set_gives_what_the_launch_leaves_open(tmp_path: Path) -> None:
    (tmp_path / "serve.sh").write_text("KV=auto\nsglang serve zai-org/GLM-5.3-Flash --tp $TP --kv-cache-dtype $KV\n")
    file = "gpu: H200\nlaunch_file: serve.sh\n"
    assert "--set TP=VALUE" in (check(tmp_path, file).error or "")
    checked = check(tmp_path, file + "set: {TP: 8, KV: fp8_e4m3}\n")
    assert checked.error is None and checked.plan.deployment.tp_size == 8
    assert any("--set KV changes nothing" in finding.why for finding in checked.found)
    assert "names no such variable" in (check(tmp_path, file + "set: {TP: 8, TPP: 1}\n").error or "")


def test_the_card_and_the_limits_of_a_manifest_count(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: glm}\n"
        "spec:\n  nodeSelector: {nvidia.com/gpu.product: NVIDIA-B200}\n"
        "  containers:\n  - {name: a, command: [sglang, serve, zai-org/GLM-5.3-Flash, --tp, '4'],"
        " resources: {limits: {nvidia.com/gpu: 8}}}\n"
    )
    checked = check(tmp_path, "launch_file: pod.yaml\n")
    assert checked.plan.gpu.name == "B200" and not checked.plan.gpu_assumed
    assert any("asks for 8 GPUs; the layout has 4" in finding.why for finding in checked.found)
    assert check(tmp_path, "gpu: H200\nlaunch_file: pod.yaml\n").plan.gpu.name == "H200"
