"""`kvplan advise --gpus`: the fewest GPUs, and a command that does what it promises when it is typed."""

import json
import shlex
from pathlib import Path

import pytest
import yaml
from running import ended

import glm_kvplan as kv
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.fleet_values import FleetAnswer
from glm_kvplan.engines.sglang.answers.fleet_answer import answer_fleet
from glm_kvplan.engines.sglang.sizing.served_requests import served
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.errors import InputError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.workload import Demand

MIX = "0.8:8k,0.2:128k"


def sought(*gpus: int, gpu: str = "h200", requests: int = 200, tries: object = None, **flags: object) -> FleetAnswer:
    plan = kv.plan(flags, gpu=gpu)
    return answer_fleet(plan, Demand(parse_contexts(MIX), requests), MemoryGiven(), gpus, tries or {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("gpu", "gpus", "requests"),
    [
        ("h200", (8,), 200),
        ("h200", (2, 4, 8, 16), 500),
        ("b200", (4, 8), 300),
        ("mi300x", (8,), 100),
        ("gb200", (8,), 300),
    ],
)
def test_the_command_does_what_it_promises(gpu: str, gpus: tuple[int, ...], requests: int) -> None:
    found = sought(*gpus, gpu=gpu, requests=requests)
    assert found.holds and found.best is not None
    for one in (found.best, found.runner_up):
        if one is None:
            continue
        plan = kv.plan(launch=one.command, gpu=gpu)
        assert plan.gpus * one.servers == one.gpus and plan.hosts <= one.hosts
        server = Server(plan, MemoryGiven())
        assert server.sizes == one.sizes
        share = Demand(parse_contexts(MIX), -(-requests // one.servers))
        assert served(share, plan.deployment, server.sizes).requests >= share.concurrency
        assert one.floor_tokens <= server.sizes.tokens <= one.ceiling_tokens
        assert server.usable >= server.needs(share.contexts.longest).nbytes


def test_fewest_gpus_first() -> None:
    found = sought(16, 4, 8)
    assert [layout.gpus for layout in found.layouts] == [4, 8, 16]
    assert not found.layouts[0].holds and found.best == found.layouts[1]
    assert found.best is not None and found.best.most >= found.best.served == 200


def test_where_none_serves_more_of_the_same_do() -> None:
    found = sought(4, 8, requests=3000)
    assert not found.holds and found.serving_gpus is not None and found.serving_gpus > 8
    assert sought(found.serving_gpus, requests=3000).holds
    assert sought(8, requests=1).serving_gpus is None


@pytest.mark.parametrize(("gpus", "server_gpus"), [(2, 2), (7, 1), (3, 1)])
def test_why_a_number_of_gpus_holds_nothing_and_one_that_serves(gpus: int, server_gpus: int) -> None:
    """TP 1 and TP 2 leave no memory on an H200: of 4 GPUs the weights are 75 GiB each."""
    found = sought(gpus, requests=16)
    ((number, size, reason),) = found.unserved
    assert (number, size) == (gpus, server_gpus) and reason is not None and "do not fit in" in reason
    assert found.serving_gpus == 4 and sought(4, requests=16).holds
    own = sought(3, requests=16, tp_size=8)
    assert own.unserved == ((3, 8, None),) and own.serving_gpus == 8


@pytest.mark.parametrize("release", ["0.5.21", "0.5.23"])
def test_a_plan_that_is_sure_is_preferred(release: str) -> None:
    """On H20s the fraction that serves 264 in the middle of the estimate serves 240 at its low end; another all."""
    demand = Demand(parse_contexts("32768"), 264)
    plan = kv.plan({"kv_cache_dtype": "fp8_e4m3"}, gpu="h20", engine=release)
    best = answer_fleet(plan, demand, MemoryGiven(), (8,), {}).best
    assert best is not None and best.served_at_least == 264
    server = Server(kv.plan(launch=best.command, gpu="h20", engine=release), MemoryGiven())
    low = server.sized_with(server.budget.available_gib - server.budget.error_gib)
    assert low.failure is None and served(demand, server.deployment, low.sizes).requests >= 264
    needs = server.needs(32768)
    assert server.usable >= needs.nbytes + needs.unsure_bytes


def test_the_number_that_serves_is_the_fewest_whole_hosts() -> None:
    """A server of more GPUs holds more of each, so that fewer do than copies of the small one that was tried."""
    found = sought(4, requests=1600, gpu="h200")
    number = found.serving_gpus
    assert number is not None and number % 8 == 0 and sought(number, requests=1600).holds
    assert not sought(number - 8, requests=1600).holds
    ((gpus, most),) = [(one.gpus, one.most) for one in found.layouts]
    assert number < gpus * -(-1600 // most)


def test_a_layout_of_the_user_s_stays() -> None:
    found = sought(8, tp_size=4)
    assert {layout.servers for layout in found.layouts} == {2}
    assert sought(6, tp_size=4).layouts == ()


def test_values_to_try_come_after_the_user_s_own() -> None:
    tries = {"kv_cache_dtype": ["fp8_e4m3"], "mamba_ssm_dtype": ["bfloat16"]}
    assert not sought(4).holds
    helped = sought(4, tries=tries).best
    assert helped is not None and set(tries) & set(helped.flags)
    enough = sought(8, tries=tries).best
    assert enough is not None and not set(tries) & set(enough.flags)
    with pytest.raises(InputError, match="at most 64"):
        sought(4, tries={f"f{n}": [1] for n in range(7)})


def test_a_server_of_several_hosts_has_their_flags() -> None:
    found = sought(8, gpu="gb10", requests=10).best
    assert found is not None and found.hosts == 8
    words = shlex.split(found.command.replace("\\\n", " "))
    assert words[words.index("--nnodes") + 1] == "8" and "$NODE_RANK" in words


def test_a_layout_of_the_user_s_that_needs_several_hosts_gets_their_flags() -> None:
    own = sought(16, tp_size=16).best
    assert own is not None and own.flags["nnodes"] == own.hosts_of_a_server == own.hosts == 2


def test_memory_of_one_layout_is_refused() -> None:
    with pytest.raises(InputError, match="one layout's"):
        answer_fleet(
            kv.plan({}, gpu="h200"), Demand(parse_contexts("8k"), 1), MemoryGiven(available_gib=50.0), (8,), {}
        )


def test_files_to_go_on_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command, plan = tmp_path / "launch.sh", tmp_path / "plan.yaml"
    words = ["advise", "--gpu", "h200", "--gpus", "4,8", "--context", MIX, "--concurrency", "200", "--json"]
    assert ended(*words, "--launch-out", str(command), "--save", str(plan)) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["best"]["gpus"] == 8 and command.read_text(encoding="utf-8") == told["best"]["command"] + "\n"
    assert yaml.safe_load(plan.read_text(encoding="utf-8"))["expect"] == {
        "min_concurrency": 200,
        "headroom": "fits",
        "contexts": {8192: 4, 131072: 1},
        "confidence": 0.99,
    }
    assert ended("check", str(plan)) == 0
    assert ended(*words, "--save", str(plan)) == 2


def test_flags_that_no_memory_follows_from_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Their values are kept nowhere, secrets among them; what the command has is not said."""
    serve = (
        "sglang",
        "serve",
        "zai-org/GLM-5.3-Flash",
        "--api-key",
        "s3cret-value",
        "--port",
        "8000",
        "--enable-priority-scheduling",
        *("--host", "0.0.0.0", "--served-model-name", "glm", "--trust-remote-code"),
        *("--otlp-traces-endpoint", "http://user:s3cret@host/x"),
    )
    hosts = ("--tp-size", "16", "--nnodes", "2", "--node-rank", "0", "--dist-init-addr", "a:1")
    assert ended("advise", "--gpus", "16", "--gpu", "h200", "--concurrency", "9", "--json", "--", *serve, *hosts) == 0
    out = capsys.readouterr().out
    best = json.loads(out)["best"]
    assert best["left_out"] == ["--api-key", "--otlp-traces-endpoint"] and "s3cret" not in out
    words = shlex.split(best["command"].replace("\\\n", " "))
    assert "--api-key" not in words and words.count("--node-rank") == 1
    assert words[words.index("--port") + 1] == "8000" and "--enable-priority-scheduling" in words
    assert words[words.index("--host") + 1] == "0.0.0.0" and words[words.index("--served-model-name") + 1] == "glm"
    assert "--trust-remote-code" in words
    kv.plan(launch=best["command"], gpu="h200")


def test_none_serves(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("advise", "--gpus", "4", "--context", "1m", "--concurrency", "500") == 1
    assert "none of these numbers of GPUs serves it: 4" in capsys.readouterr().out.replace("\n", " ")
    assert ended("advise", "--gpus", "3", "--", "sglang", "serve", "m", "--tp", "8") == 1
    out = " ".join(capsys.readouterr().out.split())
    assert (
        "3 GPUs: with --tp-size 8 a server takes 8 GPUs, which do not divide them" in out
        and "--gpus 8 serves it" in out
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--try", "kv_cache_dtype=fp8_e4m3"), "goes with --gpus"),
        (("--gpus", "8", "--try", "nothing=1"), "FLAG=VALUE"),
        (("--gpus", "many"), "--gpus"),
        (("--gpus", "4096"), "at most 1024"),
    ],
)
def test_what_cannot_be_sought(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str) -> None:
    assert ended("advise", *words) == 2
    assert said in capsys.readouterr().err
