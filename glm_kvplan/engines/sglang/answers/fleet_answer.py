"""How many GPUs a load takes with SGLang, and the command that serves it: the answer of `kvplan advise --gpus`."""

from collections.abc import Mapping, Sequence

from glm_kvplan.engines.flag_words import command_lines
from glm_kvplan.engines.fleet_values import Advised, FleetAnswer, Layouts
from glm_kvplan.engines.fleets import model_word, seek
from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.server_layouts import advise_server, server_layouts
from glm_kvplan.engines.sglang.sizing.serving_host import Hosts
from glm_kvplan.engines.sglang.start_flags import START_FLAG
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.workload import UNKNOWN_HOST, Demand, HostGiven

_KNOWN = {**START_FLAG, **FLAG}
# Not the engine's, written apart, or known without their value.
_APART = {name for name, flag in _KNOWN.items() if flag.role in ("ours", "named") or flag.kind == "present"}
_APART |= {"node_rank"}
# Of the launch's own layout or host: written anew.
_OF_LAYOUT = frozenset(("--node-rank", "--dist-init-addr", "--nccl-init-addr", "--numa-node"))


def answer_fleet(
    plan: Plan,
    demand: Demand,
    given: MemoryGiven,
    gpus: Sequence[int],
    tries: Mapping[str, Sequence[object]],
    per_host: int | None = None,
    host_given: HostGiven = UNKNOWN_HOST,
) -> FleetAnswer:
    """See `engines.fleets.seek`."""

    def advise(server: Plan, share: Demand, beside: int) -> Advised:
        return advise_server(Server(server, given), share, Hosts(host_given.serving(share), beside))

    return seek(plan, demand, given, gpus, tries, per_host, Layouts(server_layouts, advise, launch_command))


def launch_command(plan: Plan) -> str:
    """The whole command that starts one server of `plan`, a flag a line. On several hosts it is run on each of them."""
    given = {name: value for name, value in {**plan.checked, **plan.flags}.items() if name not in _APART}
    hosts = ['--node-rank "$NODE_RANK" --dist-init-addr "$HEAD_NODE:20000"'] if plan.hosts > 1 else []
    own = (words for option, words in plan.others.items() if option not in _OF_LAYOUT)
    start = f"python -m sglang.launch_server --model-path {model_word(plan)}"
    return command_lines(start, _KNOWN, given, plan.environment, *hosts, *own)
