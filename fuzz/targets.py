"""What is fuzzed: each target takes bytes and raises for a finding. A KvplanError of one line is an answer, no finding.

Used by run.py (atheris looks for inputs) and by tests/test_fuzz_corpus.py (kept inputs are replayed).
"""

import gzip
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from draw import Draw

from glm_kvplan.bootlog.boot import logged_memory
from glm_kvplan.bootlog.reader import read_log
from glm_kvplan.bootlog.releases import possible
from glm_kvplan.bootlog.stream import read_file
from glm_kvplan.deployment.command import MEMORY_ENVIRONMENT, read_launch_command
from glm_kvplan.deployment.flags import FLAGS, Flag
from glm_kvplan.deployment.options import option_table
from glm_kvplan.engine.gpu import known_gpus
from glm_kvplan.engine.profile import load_profile, releases
from glm_kvplan.errors import KvplanError
from glm_kvplan.model.geometry import Geometry
from glm_kvplan.model.loader import BUNDLED, BUNDLED_ORIGIN, Model, geometry_from_config, load_model
from glm_kvplan.planner import Given, Plan
from glm_kvplan.pools.attribution import attribution
from glm_kvplan.sizing.boot import MemoryGiven, boot, memory_of
from glm_kvplan.sizing.estimate import Workload, estimate
from glm_kvplan.sizing.solver import attempt_stages

RELEASES = releases()
DATA = Path(__file__).parents[1] / "tests" / "data"
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


# -- config.json -------------------------------------------------------------------------------------------------------


_PUBLISHED = BUNDLED.read_text(encoding="utf-8")


def published() -> dict[str, Any]:
    """A new copy of the bundled config."""
    config: dict[str, Any] = json.loads(_PUBLISHED)
    return config


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value[:4]) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _places(inner, (*path, key))


# What the reader asks of a config, and everything else in it, in even chances.
_READ = (
    *("num_hidden_layers", "layer_types", "linear_attn_config", "kv_lora_rank", "qk_rope_head_dim", "index_head_dim"),
    *("index_topk", "index_kpool", "index_kpool_compress", "num_attention_heads", "num_nextn_predict_layers"),
    *("max_position_embeddings", "full_attn_layers", "kda_layers", "num_heads", "head_dim"),
    *("short_conv_kernel_size", "index_topk_freq", "index_topk_pattern", "index_skip_topk_offset", "indexer_types"),
    *("cli_factor", "vision_config", "hidden_size", "text_config", "architectures", "model_type", "rope_scaling"),
)


def _value(draw: Draw, depth: int = 0) -> Any:
    kind = draw.below(12 if depth < 4 else 8)
    if kind < 3:
        return draw.count()
    if kind == 3:
        return draw.real(2000)
    if kind == 4:
        return draw.pick((True, False, None))
    if kind == 5:
        return draw.text()
    if kind == 6:
        return draw.pick(("full", "shared", "F", "S", "linear_attention", "full_attention", "sparse", ""))
    if kind == 7:
        return [draw.count() for _ in range(draw.below(6))]
    if kind == 8:
        return list(range(draw.below(60)))
    if kind == 9:
        return [_value(draw, depth + 1) for _ in range(draw.below(4))]
    if kind == 10:
        return {draw.pick(_READ): _value(draw, depth + 1) for _ in range(draw.below(4))}
    return [draw.pick(("linear_attention", "deepseek_sparse_attention", "F", "S", "x"))] * draw.below(60)


@lru_cache
def _published_places() -> tuple[tuple[Any, ...], ...]:
    return tuple(_places(published()))


def _family(draw: Draw) -> dict[str, Any]:
    """A config of the family with other depths, widths and layer kinds: what the reader should take."""
    config = published()
    text = config["text_config"]
    kinds = [draw.one_in(3) for _ in range(1 + draw.below(64))]
    names = {True: "deepseek_sparse_attention", False: "linear_attention"}
    full_name = next((kind for kind in text["layer_types"] if kind != "linear_attention"), names[True])
    text["layer_types"] = [full_name if full else "linear_attention" for full in kinds]
    text["num_hidden_layers"] = len(kinds)
    linear = text["linear_attn_config"]
    linear["full_attn_layers"] = [layer for layer, full in enumerate(kinds) if full]
    linear["kda_layers"] = [layer for layer, full in enumerate(kinds) if not full]
    for part, key, values in (
        (text, "kv_lora_rank", (128, 256, 512, 640, 100)),
        (text, "qk_rope_head_dim", (0, 64, 128)),
        (text, "index_head_dim", (64, 128, 256)),
        (text, "index_kpool", (1, 2, 4, 8, 16, 3)),
        (text, "index_kpool_compress", (True, False)),
        (text, "num_attention_heads", (1, 16, 64, 96)),
        (text, "num_nextn_predict_layers", (0, 1, 2, 3)),
        (text, "max_position_embeddings", (1, 4096, 131072, 1 << 20, 1 << 40)),
        (text, "index_topk_freq", (1, 2, 4)),
        (linear, "num_heads", (1, 8, 48, 64, 128)),
        (linear, "head_dim", (16, 64, 128, 192)),
        (linear, "short_conv_kernel_size", (1, 2, 4, 7)),
    ):
        if draw.one_in(2):
            part[key] = draw.pick(values)
    return config


def _edited(draw: Draw) -> dict[str, Any]:
    config = _family(draw) if draw.one_in(2) else published()
    places = _published_places()
    for _ in range(draw.below(4)):
        path = draw.pick(places)
        parent: Any = config
        try:
            for key in path[:-1]:
                parent = parent[key]
            if draw.one_in(4):
                del parent[path[-1]]
            else:
                parent[path[-1]] = _value(draw)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier edit removed the place
    text = config.get("text_config")
    for _ in range(draw.below(3)):
        part = text if isinstance(text, dict) and draw.one_in(2) else config
        part[draw.pick(_READ)] = _value(draw)
    if isinstance(config.get("text_config"), dict) and draw.one_in(4):
        config = config | config.pop("text_config")
    return config


def config(data: bytes) -> None:
    """Edits of the published config: a geometry that holds together, or a refusal in one line."""
    draw = Draw(data)
    found = _edited(draw)
    try:
        geometry = geometry_from_config(found, "config.json")
        _sound(geometry)
        if draw.one_in(4):
            _planned(_plan(draw, Model(geometry, found, "fuzzed", "config.json")), draw)
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


# -- launch command ----------------------------------------------------------------------------------------------------

_SHELL = (
    *("python -m sglang.launch_server ", "sglang serve ", "python3 -m sglang.launch_server", "docker run ", "env "),
    *("exec ", "bash -c '", 'bash -c "', "kubectl run x -- ", "srun ", "numactl ", "export ", "declare -x ", "-e "),
    *("A=1 ", "A+=x ", "A=(", "${A}", "$A", "${A[@]}", '"${A[@]}"', "${A:-", "${A:=", "${A:+", "${A?", "$(", "`", "$1"),
    *(
        "\n",
        " \\\n",
        "\r\n",
        ";",
        "&&",
        "||",
        "|",
        "&",
        ">",
        "2>&1",
        "<<EOF\n",
        "#",
        "'",
        '"',
        "\\",
        "(",
        ")",
        "{",
        "}",
    ),
    *("then ", "do ", "else ", "! ", "=", " ", "  ", "\t", "--", "-", "\ufeff", "\x1b", "é", "\u2028", "--env=", "-m "),
    *("zai-org/GLM-5.3-Flash ", "--model-path zai-org/GLM-5.3-Flash ", "--model-type ", "--config ", "--revision "),
    *("SGLANG_ENABLE_PP_SPEC=1 ", "SGLANG_PP_LAYER_PARTITION=23,22 ", "vllm serve ", "meta-llama/Llama ", "$'", "$$"),
)


@lru_cache
def _vocabulary() -> tuple[str, ...]:
    values = {word for flag in FLAGS for word in flag.choices or ()}
    options = {option for release in RELEASES for option in option_table(release).takes}
    ours = {option for flag in FLAGS for option in (*flag.options, *flag.negative)}
    numbers = ("1", "8", "0.9", "-1", "4k", "128Ki", "1e3", "nan", "inf", "0x10", "٣", "{}", '{"a": [1]}', "9" * 50)
    # Our own flags twice: they are the ones whose values are read.
    return (*sorted(options), *sorted(ours), *sorted(ours), *sorted(values), *numbers)


def _launch_text(draw: Draw) -> str:
    pieces = ["python -m sglang.launch_server " if draw.one_in(2) else ""]
    words = _vocabulary()
    while draw.more and len(pieces) < 400:
        kind = draw.byte()
        if kind < 112:
            pieces.append(draw.pick(words) + draw.pick((" ", " ", "=", "\n", '"')))
        elif kind < 208:
            pieces.append(draw.pick(_SHELL))
        elif kind < 232:
            pieces.append(f"{draw.count()} ")
        else:
            pieces.append(draw.text())
    return "".join(pieces)


def launch(data: bytes) -> None:
    """Shell text, words, and the plan of what was read: a launch command, or a refusal in one line."""
    draw = Draw(data)
    release = draw.pick(RELEASES)
    form = draw.below(4)
    if form == 0:
        text: str | list[str] = draw.rest().decode("utf-8", "surrogateescape")
    else:
        text = _launch_text(draw)
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


# -- boot log ----------------------------------------------------------------------------------------------------------


@lru_cache
def _logs() -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in sorted((DATA / "logs").glob("*.log")))


@lru_cache
def _log_lines() -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(line[:3000] for log in _logs() for line in log.splitlines() if len(line) > 20))


_WRAPS = (
    b"",
    b"2026-01-02T03:04:05.678Z stdout F ",
    b"2026-01-02T03:04:05.678Z stdout P ",
    b'{"log":"',
    b'{"log":"\\u0000","stream":"stdout"}',
    b"\x1b[0m",
    b"[2026-01-02 03:04:05 DP1 PP0 TP3 EP3] ",
    b"[2026-01-02 03:04:05 TP999999] ",
    b"\xff\xfe",
    b"\x1f\x8b",
    b"server_args={'tp_size': ",
    b"server_args={'a': {'b': [1, ",
    b"\\",
    b"'",
)


def _log_text(draw: Draw) -> bytes:
    lines, pieces = _log_lines(), []
    while draw.more and len(pieces) < 200:
        line = draw.pick(lines)
        kind = draw.byte()
        if kind & 1:
            line = draw.pick(_WRAPS) + line
        if kind & 2:
            at = draw.below(len(line) + 1)
            line = line[:at] + draw.pick((b"", b"9" * 20, b"-", b"\xff", b"nan", b"\x00", b"'", b"{")) + line[at:]
        if kind & 4:
            line = line[: draw.below(len(line) + 1)]
        if kind & 8:
            line += draw.text().encode("utf-8", "surrogateescape")
        pieces.append(line + draw.pick((b"\n", b"\n", b"\n", b"\r\n", b"", b"\r")))
    return b"".join(pieces)


def log(data: bytes) -> None:
    """Any bytes, and the logs of the tests cut, wrapped and shuffled: boots, or a refusal in one line."""
    draw = Draw(data)
    form = draw.below(4)
    content = draw.rest() if form == 0 else _log_text(draw)
    if form == 3:
        packed = gzip.compress(content, 1, mtime=0)
        content = packed[: len(packed) - len(content) % 5] + (packed if len(content) % 3 == 0 else b"")
    path = _SCRATCH / "kvplan-fuzz.log"
    path.write_bytes(content)
    try:
        for found in read_log(read_file(str(path))):
            logged_memory(found)
            require(bool(possible(found)), "no release is possible") if found.release is None else None
            repr(found)
    except KvplanError as error:
        one_line(error)


# -- solver ------------------------------------------------------------------------------------------------------------


@lru_cache
def _bundled() -> Model:
    model = load_model()
    return Model(model.geometry, model.config, model.name, BUNDLED_ORIGIN)


_ENVIRONMENT_VALUES = ("0", "1", "true", "bfloat16", "float32", "float16", "100", "0.5", "23,22", "45", "a,b", "", "-1")
# A start that is likely to get through to the pools, so that not every input ends in the resolver.
_LIKELY: tuple[dict[str, object], ...] = (
    {},
    {"tp_size": 8},
    {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True},
    {"tp_size": 4, "speculative_algorithm": "EAGLE"},
    {"tp_size": 4, "speculative_algorithm": "NEXTN", "kv_cache_dtype": "fp8_e4m3"},
    {"tp_size": 8, "pp_size": 2},
    {"tp_size": 4, "pp_size": 3, "speculative_algorithm": "EAGLE", "disaggregation_mode": "prefill"},
    {"tp_size": 8, "disaggregation_mode": "decode", "max_running_requests": 64},
    {"tp_size": 8, "disaggregation_mode": "prefill"},
    {"tp_size": 8, "enable_prefill_cp": True, "cp_strategy": "interleave", "attn_cp_size": 8},
    {"tp_size": 4, "speculative_algorithm": "EAGLE", "speculative_adaptive": True},
    {"tp_size": 4, "speculative_algorithm": "EAGLE", "enable_linear_replayssm_spec": True},
    {"tp_size": 8, "enable_hierarchical_cache": True},
    {"tp_size": 8, "disable_radix_cache": True, "max_running_requests": 128},
    {"tp_size": 8, "max_mamba_cache_size": 512, "max_total_tokens": 1 << 20},
)


def _flag_value(draw: Draw, flag: Flag) -> object:
    if flag.kind in ("flag", "switch"):
        return not draw.one_in(8)
    if flag.kind in ("int", "count"):
        return draw.count()
    if flag.kind == "float":
        return draw.real(3 if flag.name.endswith("ratio") else 1)
    if flag.kind == "ints":
        return [draw.count() for _ in range(draw.below(4))]
    if flag.kind == "json":
        return {draw.pick(("decode", "prefill", "a", *_READ)): _value(draw) for _ in range(draw.below(3))}
    if flag.choices and not draw.one_in(16):
        return draw.pick(flag.choices)
    if flag.name == "speculative_algorithm":
        return draw.pick(("EAGLE", "NEXTN", "EAGLE3", "DFLASH", "DSPARK", "STANDALONE", "NGRAM", "eagle", ""))
    return draw.text()


def _plan(draw: Draw, model: Model) -> Plan:
    flags = dict(draw.pick(_LIKELY))
    for _ in range(draw.below(6)):
        flag = draw.pick(FLAGS)
        flags[flag.name] = _flag_value(draw, flag)
    environment = {draw.pick(MEMORY_ENVIRONMENT): draw.pick(_ENVIRONMENT_VALUES) for _ in range(draw.below(3))}
    gpu = draw.pick(tuple(known_gpus().values()))
    profile = load_profile(draw.pick(RELEASES))
    return Given(model, profile, gpu, draw.one_in(4), flags, environment, None).plan()


def _memory(draw: Draw) -> MemoryGiven:
    kind = draw.below(4)
    if kind == 0:
        return MemoryGiven(checkpoint=draw.pick((None, "fp8", "nvfp4", "bf16", "mxfp4")))
    if kind == 1:
        return MemoryGiven(weights_gib=draw.real(120), draft_weights_gib=draw.real(10))
    pre = draw.real(190)
    return MemoryGiven(pre_gib=pre, available_gib=draw.real(pre if 0 < pre < 1e6 else 190.0))


def _planned(plan: Plan, draw: Draw) -> None:
    geometry, deployment, profile = plan.geometry, plan.deployment, plan.profile
    choices = plan.choices
    require(all(choice.reason for choice in choices), "a value without a reason")
    if draw.one_in(4):
        workload = Workload(1 + draw.below(1 << 16), 1 + draw.below(600))
        for rank in estimate(plan, workload).stages:
            require(rank.attribution.rest == 0, f"{rank.attribution.rest} bytes of {rank.stage} are not explained")
    memory = _memory(draw)
    prompt = 1 + draw.below(1 << 16) if draw.one_in(2) else None
    budget, _ = memory_of(plan, memory, deployment)
    tried = attempt_stages(geometry, deployment, profile, budget.pre_gib, budget.available_gib)
    if any(solution.failure for solution in tried) and not draw.one_in(8):
        return  # the search for remedies takes a hundred times a solve: one refusal in eight is enough
    answer = boot(plan, memory, prompt)
    if answer.failure is not None:
        one_line(answer.failure)
        return
    for solution, stage in zip(answer.solutions, answer.stages, strict=True):
        require(min(solution.sizes) > 0, f"sizes {solution.sizes}")
        require(solution.tokens % deployment.page_size == 0, "tokens are not whole pages")
        rest = attribution(geometry, deployment, profile, solution.sizes, stage).rest
        require(rest == 0, f"{rest} bytes of {stage} are not explained")
    require(len({solution.tokens for solution in answer.solutions}) == 1, "stages differ in tokens")


def solver(data: bytes) -> None:
    """Flags, switches, a card, a release and memory: sizes whose bytes are all explained, or a refusal in one line."""
    draw = Draw(data)
    try:
        _planned(_plan(draw, _bundled()), draw)
    except KvplanError as error:
        one_line(error)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "config": config,
    "config_file": config_file,
    "launch": launch,
    "log": log,
    "solver": solver,
}
