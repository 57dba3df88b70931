"""`kvplan advise --gpus` for vLLM: layouts that start, the user's own kept, hosts, and files to go on with."""

import json
import shlex
from pathlib import Path

import pytest
from running import ended

import glm_kvplan as kv
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.fleet_values import FleetAnswer
from glm_kvplan.engines.vllm.answers.fleet_answer import answer_fleet
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.starting import begin
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.workload import Demand

MTP3 = {"method": "mtp", "num_speculative_tokens": 3}
MIX = "0.8:8k,0.2:128k"


def plan(gpu: str = "h200", release: str = "0.33.0", **flags: object) -> Plan:
    found: Plan = kv.plan(flags, engine=f"vllm-{release}", gpu=gpu)
    return found


def sought(
    *gpus: int, gpu: str = "h200", lengths: str = MIX, requests: int = 200, tries: object = None, **flags: object
) -> FleetAnswer:
    demand = Demand(parse_contexts(lengths), requests)
    return answer_fleet(plan(gpu, **flags), demand, MemoryGiven(), gpus, tries or {})  # type: ignore[arg-type]


def widths(found: FleetAnswer) -> set[tuple[object, object, object]]:
    """Tensor and data parallelism and hosts of what is shown."""
    shown = [kv.plan(launch=one.command, engine="vllm", gpu="h200").deployment for one in found.layouts]
    return {(one.tensor_parallel_size, one.data_parallel_size, one.nnodes) for one in shown}


def test_fewest_gpus_first() -> None:
    found = sought(16, 4, 8)
    assert [layout.gpus for layout in found.layouts] == [4, 8, 16]
    assert not found.layouts[0].holds and found.best == found.layouts[1]
    assert found.best is not None and found.best.most >= found.best.served == 200
    assert found.runner_up is not None and found.runner_up.gpus == 8


def test_what_the_user_gave_of_a_layout_stays() -> None:
    assert widths(sought(8, tensor_parallel_size=4, data_parallel_size=1)) == {(4, 1, 1)}
    ((tensor, data, _),) = widths(sought(8, tensor_parallel_size=4))
    assert tensor == 4 and data in (1, 2)
    ((_, data, _),) = widths(sought(16, data_parallel_size=4))
    assert data == 4
    assert sought(6, tensor_parallel_size=4).layouts == ()


def test_why_a_number_of_gpus_holds_nothing_and_one_that_serves() -> None:
    found = sought(1, requests=16)
    ((number, size, reason),) = found.unserved
    assert (number, size) == (1, 1) and reason is not None and reason.startswith("the weights (299.2 GiB a GPU)")
    assert found.serving_gpus == 4 and sought(4, requests=16).holds
    none = sought(6, requests=16, tensor_parallel_size=4)
    assert none.unserved == ((6, None, None),) and none.serving_gpus == 4
    (long,) = sought(4, lengths="2m", requests=1).unserved
    assert long.reason == "no request fits, bound by --max-model-len"


def test_a_plan_that_is_sure_is_preferred() -> None:
    """More of the card serves at the low end of the estimate, too."""
    best = sought(8, gpu="h20", lengths="32768", requests=264).best
    assert best is not None and best.served_at_least == 264


def test_the_launch_s_own_words_stay(capsys: pytest.CaptureFixture[str]) -> None:
    own = ("--host", "0.0.0.0", "--port", "8000", "--served-model-name", "glm", "flash", "--trust-remote-code")
    launch = ("vllm", "serve", "zai-org/GLM-5.3-Flash", "--api-key", "s3cret-value", "--headless", *own)
    assert ended("advise", "--gpus", "8", "--gpu", "h200", "--concurrency", "9", "--json", "--", *launch) == 0
    out = capsys.readouterr().out
    best = json.loads(out)["best"]
    words = shlex.split(best["command"].replace("\\\n", " "))
    assert " ".join(own) in " ".join(words) and "--headless" not in words
    assert best["left_out"] == ["--api-key", "--headless"] and "s3cret" not in out


def test_words_of_the_launch_s_own_layout_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    """vLLM takes --nnodes with the mp backend alone (config/parallel.py:1112 at 0.33.0), ranks are each host's own."""
    launch = ("vllm", "serve", "zai-org/GLM-5.3-Flash", "--distributed-executor-backend", "ray", "--uvicorn-log-level")
    own = (*launch, "info", "--data-parallel-backend", "ray", "--master-addr", "a")
    words = ("advise", "--gpus", "16", "--gpu", "h200", "--concurrency", "400", "--json", "--", *own)
    assert ended(*words) == 0
    best = json.loads(capsys.readouterr().out)["best"]
    assert best["hosts_of_a_server"] == 2 and best["command"].endswith("--uvicorn-log-level info")
    assert best["left_out"] == ["--distributed-executor-backend", "--data-parallel-backend"]
    assert best["command"].count("--master-addr") == 1


def test_a_server_of_one_host_keeps_its_words_and_has_no_rank(capsys: pytest.CaptureFixture[str]) -> None:
    own = ("--distributed-executor-backend", "ray", "--node-rank", "0")
    words = ("advise", "--gpus", "8", "--gpu", "h200", "--concurrency", "9", "--json", "--")
    assert ended(*words, "vllm", "serve", "zai-org/GLM-5.3-Flash", *own) == 0
    best = json.loads(capsys.readouterr().out)["best"]
    assert best["command"].endswith("--distributed-executor-backend ray") and best["hosts_of_a_server"] == 1
    assert "NODE_RANK" not in best["command"] and best["left_out"] == ["--node-rank"]


def test_limits_are_written_only_where_they_are_in_the_way() -> None:
    """Four engines of one card have fewer blocks than vLLM's default of 1,024 requests."""
    enough = sought(8).best
    assert enough is not None and not {"max_model_len", "max_num_seqs"} & enough.flags.keys()
    few = sought(8, requests=300, max_num_seqs=16, max_model_len=65536).best
    assert few is not None and few.flags["max_model_len"] == 131072
    assert 300 / 8 <= few.flags["max_num_seqs"] <= 300  # type: ignore[operator]
    tight = sought(4, requests=100).best
    assert tight is not None and tight.sizes is not None
    assert tight.sizes.num_blocks < 1024 and tight.flags["max_num_seqs"] == 25  # type: ignore[attr-defined]


def test_more_of_the_card_is_taken_unless_the_user_said_how_much() -> None:
    more, fixed = (sought(4, requests=150, **flags).layouts[0] for flags in ({}, {"gpu_memory_utilization": 0.92}))
    assert more.flags["gpu_memory_utilization"] == 0.97 and "gpu_memory_utilization" not in fixed.flags
    assert fixed.served < more.served


def test_values_to_try_come_after_the_user_s_own() -> None:
    tries = {"kv_cache_dtype": ["fp8"], "mamba_ssm_cache_dtype": ["bfloat16"]}
    assert not sought(4).holds
    helped = sought(4, tries=tries).best
    assert helped is not None and set(tries) & set(helped.flags)
    enough = sought(8, tries=tries).best
    assert enough is not None and not set(tries) & set(enough.flags)


def test_a_server_of_several_hosts_says_who_is_the_first() -> None:
    found = sought(16, lengths="128k", requests=600)
    assert found.best is not None and found.best.hosts == found.best.hosts_of_a_server == 2
    words = shlex.split(found.best.command.replace("\\\n", " "))
    assert words[words.index("--nnodes") + 1] == "2" and "$NODE_RANK" in words and "$HEAD_NODE" in words
    assert found.best.command.endswith('$([ "$NODE_RANK" = 0 ] || echo --headless)')
    assert found.best.plan_file["nodes"] == 2 and "nnodes" not in found.best.plan_file["flags"]  # type: ignore[operator]
    small = sought(8, gpu="gb10", requests=10).best
    assert small is not None and small.hosts == 8


@pytest.mark.parametrize("release", ["0.30.0", "0.31.0", "0.32.0", "0.33.0"])
def test_layouts_that_cannot_start_are_refused(release: str) -> None:
    """Experts of 2,048 channels do not divide by 12; shared ones come to 64 channels at TP32, half an FP8 scale."""
    with pytest.raises(RefusedError, match=rf"experts' 2048 channels.*config.py:\d+ at {release}"):
        plan(release=release, tensor_parallel_size=4, data_parallel_size=3)
    assert plan(release=release, tensor_parallel_size=4, data_parallel_size=3, enable_expert_parallel=True).gpus == 12
    with pytest.raises(RefusedError, match=rf"cut the shared experts of 2048 .*fp8_utils.py:\d+ at {release}"):
        begin(plan(release=release, tensor_parallel_size=32), MemoryGiven())
    assert begin(plan(release=release, tensor_parallel_size=32), MemoryGiven(checkpoint="bf16")).start.count
    assert begin(plan(release=release, data_parallel_size=64), MemoryGiven()).start.count
    with pytest.raises(RefusedError, match=rf"experts' 2048 channels into 16.*oracle/fp8.py:\d+ at {release}"):
        begin(plan(release=release, data_parallel_size=128), MemoryGiven())
    assert begin(plan(release=release, data_parallel_size=128, enable_expert_parallel=True), MemoryGiven()).start.count
    with pytest.raises(RefusedError, match=rf"--nnodes 3 does not divide the 8 GPUs.*arg_utils.py:\d+ at {release}"):
        plan(release=release, tensor_parallel_size=8, nnodes=3)
    assert plan(release=release, tensor_parallel_size=8, nnodes=2).hosts == 2


def test_servers_that_fill_no_host_leave_gpus_idle() -> None:
    """Of six GPUs a server, one on a host of eight."""
    found = sought(24, requests=10, tensor_parallel_size=2, data_parallel_size=3, enable_expert_parallel=True).best
    assert found is not None and (found.servers, found.hosts, found.hosts_of_a_server) == (4, 4, 1)


def test_servers_are_no_larger_than_their_experts_can_be_cut() -> None:
    """2,048 channels over 64 GPUs are 32, vLLM's least with an FP8 scale of their own."""
    found = sought(256, lengths="128k", requests=10000)
    assert found.best is not None and found.best.servers >= 4
    whole = sought(256, lengths="128k", requests=10000, enable_expert_parallel=True).best
    assert whole is not None and whole.servers < 4


def test_what_cannot_be_sought() -> None:
    with pytest.raises(InputError, match="one layout's"):
        answer_fleet(plan(), Demand(parse_contexts("8k"), 1), MemoryGiven(available_gib=50.0), (8,), {})
    with pytest.raises(InputError, match="--prefix-states"):
        answer_fleet(plan(), Demand(parse_contexts("8k"), 1, 2), MemoryGiven(), (8,), {})


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script, file = tmp_path / "launch.sh", tmp_path / "plan.yaml"
    words = ["advise", "--gpu", "h200", "--gpus", "4,8", "--context", MIX, "--concurrency", "200"]
    serve = ["--", "vllm", "serve", "zai-org/GLM-5.3-Flash", "--no-enable-prefix-caching"]
    serve += ["--port", "8000", "--revision=main"]
    assert ended(*words, "--json", "--launch-out", str(script), "--save", str(file), *serve) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["best"]["gpus"] == 4 and script.read_text(encoding="utf-8") == told["best"]["command"] + "\n"
    assert "--no-enable-prefix-caching" in told["best"]["command"]
    assert ended("check", str(file)) == 0
    assert ended("solve", "--gpu", "h200", "--launch", str(script)) == 0
    capsys.readouterr()
    assert ended(*words, *serve) == 0
    out = capsys.readouterr().out
    assert "--port 8000" in out and "--revision main" in out and "not in it" not in out
    assert "4 GPUs serve it: 1 server" in out and "the load needs" in out and "memory gives" in out
    secret = ("--api-key", "k-11112222", "--chat-template", "a b.jinja")
    assert ended(*words, "--launch-out", str(script), "--force", *serve, *secret) == 0
    text = script.read_text(encoding="utf-8")
    assert text.startswith("# not in it, for you to add: --api-key, --chat-template\nvllm serve")
    assert "1111" not in text and "jinja" not in text
    capsys.readouterr()
    tries = ("--try", f"speculative-config={json.dumps(MTP3)}", "--try", "max-num-batched-tokens=4k")
    assert ended(*words, "--json", *tries, *serve) == 0
    flags = json.loads(capsys.readouterr().out)["layouts"][0]["flags"]
    assert flags.get("speculative_config", MTP3) == MTP3 and flags.get("max_num_batched_tokens", 4000) == 4000
    assert ended("advise", "--gpus", "4", "--gpu", "h200", "--context", "1m", "--concurrency", "500", *serve) == 1
    assert "none of these numbers of GPUs serves it: 4" in capsys.readouterr().out.replace("\n", " ")
