"""How many GPUs a load takes with vLLM, and the command that serves it: the answer of `kvplan advise --gpus`."""

from collections.abc import Mapping, Sequence

from glm_kvplan.engines.flag_words import command_lines
from glm_kvplan.engines.fleet_values import Advised, FleetAnswer, Layouts
from glm_kvplan.engines.fleets import model_word, seek
from glm_kvplan.engines.vllm.flags import FLAG
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.served_requests import refuse_prefix_states
from glm_kvplan.engines.vllm.server_layouts import advise_server, server_layouts
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.workload import UNKNOWN_HOST, Demand, HostGiven

# Of the launch's own layout or host: written anew.
_OF_LAYOUT = frozenset(("--node-rank", "--master-addr", "--master-port", "--headless", "--numa-bind-nodes"))
_OF_DATA_PARALLEL = ("--data-parallel-", "--no-data-parallel-")
_OF_ONE_HOST = frozenset(("--distributed-executor-backend",))  # several take the one that --nnodes goes with
# The first host serves; the others are told so.
_HOSTS = ('--node-rank "$NODE_RANK" --master-addr "$HEAD_NODE"', '$([ "$NODE_RANK" = 0 ] || echo --headless)')


def answer_fleet(
    plan: Plan,
    demand: Demand,
    given: MemoryGiven,
    gpus: Sequence[int],
    tries: Mapping[str, Sequence[object]],
    per_host: int | None = None,
    host_given: HostGiven = UNKNOWN_HOST,
) -> FleetAnswer:
    """See `engines.fleets.seek`. Raises InputError for prefix states, too."""
    refuse_prefix_states(demand)

    def advise(server: Plan, share: Demand, beside: int) -> Advised:
        return advise_server(server, given, share)

    return seek(plan, demand, given, gpus, tries, per_host, Layouts(server_layouts, advise, launch_command))


def launch_command(plan: Plan) -> str:
    """The whole command that starts one server of `plan`, a flag a line. On several hosts it is run on each of them."""
    hosts = _HOSTS if plan.hosts > 1 else ()
    other = _OF_LAYOUT | _OF_ONE_HOST if plan.hosts > 1 else _OF_LAYOUT
    own = (
        words
        for option, words in plan.others.items()
        if option not in other and not option.startswith(_OF_DATA_PARALLEL)
    )
    return command_lines(f"vllm serve {model_word(plan)}", FLAG, plan.flags, plan.environment, *hosts, *own)
