"""Inputs out of fuzzer bytes: configs, launch commands, logs, flags and memory that are nearly what people have."""

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from draw import Draw

from glm_kvplan.engines.flag import Flag
from glm_kvplan.engines.planner import Given, Plan
from glm_kvplan.engines.sglang.environment import ENVIRONMENT
from glm_kvplan.engines.sglang.flags import FLAGS
from glm_kvplan.engines.sglang.option_lists import option_table
from glm_kvplan.engines.sglang.profile import load_profile, releases
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.memory.gpu import known_gpus
from glm_kvplan.model.loader import BUNDLED, Model

RELEASES = releases()
DATA = Path(__file__).parents[1] / "tests" / "data"

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


def edited_config(draw: Draw) -> dict[str, Any]:
    """The published config, or one of its family, with a few edits."""
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


def launch_text(draw: Draw) -> str:
    """The engine's options, values and shell syntax in a row."""
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


def log_text(draw: Draw) -> bytes:
    """Lines of the tests' logs cut, wrapped and shuffled."""
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


# -- solver ------------------------------------------------------------------------------------------------------------

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


def drawn_plan(draw: Draw, model: Model) -> Plan:
    """Flags, switches, a card and a release, resolved. Raises as `Given.plan`."""
    flags = dict(draw.pick(_LIKELY))
    for _ in range(draw.below(6)):
        flag = draw.pick(FLAGS)
        flags[flag.name] = _flag_value(draw, flag)
    environment = {draw.pick(tuple(ENVIRONMENT)): draw.pick(_ENVIRONMENT_VALUES) for _ in range(draw.below(3))}
    gpu = draw.pick(tuple(known_gpus().values()))
    profile = load_profile(draw.pick(RELEASES))
    return Given(model, profile, gpu, draw.one_in(4), flags, environment, None).plan()


def drawn_memory(draw: Draw) -> MemoryGiven:
    """Readings of memory, or what to estimate them from."""
    kind = draw.below(4)
    if kind == 0:
        return MemoryGiven(checkpoint=draw.pick((None, "fp8", "nvfp4", "bf16", "mxfp4")))
    if kind == 1:
        return MemoryGiven(weights_gib=draw.real(120), draft_weights_gib=draw.real(10))
    pre = draw.real(190)
    return MemoryGiven(pre_gib=pre, available_gib=draw.real(pre if 0 < pre < 1e6 else 190.0))
