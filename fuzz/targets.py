"""What is fuzzed: each target takes bytes and raises for a finding. A KvplanError of one line is an answer, no finding.

Used by run.py (atheris looks for inputs) and by tests/project/test_fuzz_corpus.py (kept inputs are replayed).
"""

import gzip
import sys
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from draw import Draw
from inputs import RELEASES, drawn_memory, drawn_plan, edited_config, launch_text, log_text

from glm_kvplan.engines.boot_logs import read_boots
from glm_kvplan.engines.by_name import engine_named
from glm_kvplan.engines.planner import Given, Plan
from glm_kvplan.engines.sglang.boot_log.boot import logged_memory
from glm_kvplan.engines.sglang.boot_log.log_releases import possible
from glm_kvplan.engines.sglang.launch_command import read_launch_command
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.rank import ranks
from glm_kvplan.engines.sglang.sizing.attribution import attribution
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.start import boot
from glm_kvplan.engines.sglang.sizing.workload_cost import Workload, estimate
from glm_kvplan.errors import KvplanError
from glm_kvplan.memory.gpu import known_gpus
from glm_kvplan.model.geometry import Geometry
from glm_kvplan.model.loader import BUNDLED, BUNDLED_ORIGIN, Model, geometry_from_config, load_model

_SCRATCH = Path(tempfile.gettempdir())


class Finding(AssertionError):
    """An input that breaks a promise without raising by itself."""


def require(promise: bool, words: str) -> None:
    if not promise:
        raise Finding(words)


def one_line(error: KvplanError) -> None:
    text = str(error)
    require(bool(text) and len(text.splitlines()) == 1, f"the message is not one line: {text!r}")
    require(len(text) <= 4000, f"the message is endless: {text[:200]!r}")


def config(data: bytes) -> None:
    """Edits of the published config: a geometry that holds together, or a refusal in one line."""
    draw = Draw(data)
    found = edited_config(draw)
    try:
        geometry = geometry_from_config(found, "config.json")
        _sound(geometry)
        if draw.one_in(4):
            _planned(drawn_plan(draw, Model(geometry, found, "fuzzed", "config.json")), draw)
    except KvplanError as error:
        one_line(error)


def _sound(geometry: Geometry) -> None:
    layers = sorted((*geometry.full_attention_layers, *geometry.linear_attention_layers))
    require(layers == list(range(geometry.num_hidden_layers)), "layers are not each of one kind")
    require(set(geometry.index_layers) <= set(geometry.full_attention_layers), "an indexer outside full attention")
    require(geometry.latent_width > 0, "an empty latent row")


def config_file(data: bytes) -> None:
    """Any bytes as a config.json; every other input is the published file with a piece overwritten."""
    draw = Draw(data)
    content = draw.rest()
    if content[:1] and content[0] % 2:
        whole = BUNDLED.read_bytes()
        draw = Draw(content[1:])
        at = draw.below(len(whole))
        piece = draw.rest()
        content = whole[:at] + piece + whole[at + len(piece) * (at % 2) :]
    path = _SCRATCH / "kvplan-fuzz-config.json"
    path.write_bytes(content)
    try:
        _sound(load_model(str(path)).geometry)
    except KvplanError as error:
        one_line(error)


def launch(data: bytes) -> None:
    """Shell text, words, and the plan of what was read: a launch command, or a refusal in one line."""
    draw = Draw(data)
    release = draw.pick(RELEASES)
    form = draw.below(4)
    if form == 0:
        text: str | list[str] = draw.rest().decode("utf-8", "surrogateescape")
    else:
        text = launch_text(draw)
        if form == 1:
            text = text.split(" ")
    try:
        command = read_launch_command(text, release)
        for name, value in command.flags.items():
            require(value is not None, f"{name} was read as nothing")
        given = Given(
            _bundled(), load_profile(release), known_gpus()["h200"], False, command.flags, command.environment, None
        )
        given.plan()
    except KvplanError as error:
        one_line(error)


def log(data: bytes) -> None:
    """Any bytes, and the logs of the tests cut, wrapped and shuffled: boots, or a refusal in one line."""
    draw = Draw(data)
    form = draw.below(4)
    content = draw.rest() if form == 0 else log_text(draw)
    if form == 3:
        packed = gzip.compress(content, 1, mtime=0)
        content = packed[: len(packed) - len(content) % 5] + (packed if len(content) % 3 == 0 else b"")
    path = _SCRATCH / "kvplan-fuzz.log"
    path.write_bytes(content)
    try:
        for found in read_boots(str(path), [engine_named("sglang")]).boots:
            logged_memory(found)
            require(bool(possible(found)), "no release is possible") if found.release is None else None
            repr(found)
    except KvplanError as error:
        one_line(error)


@lru_cache
def _bundled() -> Model:
    model = load_model()
    return Model(model.geometry, model.config, model.name, BUNDLED_ORIGIN)


def _planned(plan: Plan, draw: Draw) -> None:
    deployment = plan.deployment
    choices = plan.choices
    require(all(choice.reason for choice in choices), "a value without a reason")
    if draw.one_in(4):
        workload = Workload(1 + draw.below(1 << 16), 1 + draw.below(600))
        for rank in estimate(plan, workload).stages:
            require(rank.attribution.rest == 0, f"{rank.attribution.rest} bytes of {rank.stage} are not explained")
    memory = drawn_memory(draw)
    prompt = 1 + draw.below(1 << 16) if draw.one_in(2) else None
    if not Server(plan, memory).starts and not draw.one_in(8):
        return  # the search for remedies takes a hundred times a solve: one refusal in eight is enough
    answer = boot(plan, memory, prompt)
    if answer.failure is not None:
        one_line(answer.failure)
        return
    for solution, rank in zip(answer.solutions, ranks(plan), strict=True):
        require(min(solution.sizes) > 0, f"sizes {solution.sizes}")
        require(solution.tokens % deployment.page_size == 0, "tokens are not whole pages")
        rest = attribution(rank, solution.sizes).rest
        require(rest == 0, f"{rest} bytes of {rank.stage} are not explained")
    require(len({solution.tokens for solution in answer.solutions}) == 1, "stages differ in tokens")


def solver(data: bytes) -> None:
    """Flags, switches, a card, a release and memory: sizes whose bytes are all explained, or a refusal in one line."""
    draw = Draw(data)
    try:
        _planned(drawn_plan(draw, _bundled()), draw)
    except KvplanError as error:
        one_line(error)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "config": config,
    "config_file": config_file,
    "launch": launch,
    "log": log,
    "solver": solver,
}
