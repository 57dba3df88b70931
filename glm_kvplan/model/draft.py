"""A draft model of its own: what of its config.json its cache, its weights and the engine's checks follow from."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from glm_kvplan.errors import InputError
from glm_kvplan.model.hub import HubError, fetch_config, is_hub_id
from glm_kvplan.model.json_file import read_json_object, shown_path
from glm_kvplan.model.loader import existing_path

MOST = 1 << 31  # of any number in a config.json
ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_LONGEST = (  # the first that stands there counts; the engine's order
    *("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings"),
)


class NoDraftError(InputError):
    """The config.json of a draft model is not within reach: another machine's path, a private repository."""


class DraftModel(NamedTuple):
    """The shape of one draft model. A number the config leaves out is None where the engine has its own idea of it."""

    origin: str
    architecture: str
    layers: int  # num_hidden_layers
    nextn_layers: int | None  # num_nextn_predict_layers, which the pools go by where it stands
    attention_heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int
    hidden_size: int
    intermediate_size: int
    dtype: str
    vocabulary: int
    max_position_embeddings: int
    longest_context: int  # what the engine derives, RoPE's factor counted in
    block_size: int | None
    dspark_block_size: int | None
    sliding_only: bool  # every layer is sliding attention
    causal: bool
    markov_rank: int
    selector_rank: int
    target_features: int  # hidden states of the target that it reads, side by side
    attention_bias: bool
    conv_taps: int
    conv_group: int
    packed_bits: float | None = None  # of a weight in the format that config.json names; None: not quantized

    @property
    def pool_layers(self) -> int:
        """Layers of its cache.

        Source: model_executor/model_runner_components/layer_setup.py:201 at 0.5.23 (_compute_model_num_layers).
        """
        return self.layers if self.nextn_layers is None else self.nextn_layers

    def heads(self, ranks: int) -> int:
        """KV heads of one of `ranks`; replicated where there are fewer (configs/model_config.py:1700 at 0.5.23)."""
        return max(1, self.kv_heads // ranks)


@lru_cache(maxsize=64)
def load_draft(source: str) -> DraftModel:
    """The draft model of a config.json: a file, a directory that holds one, or a Hub id.

    Raises NoDraftError where there is none to read, InputError for one that is broken.
    """
    config, origin = _config(source)
    return draft_from_config(config, origin)


@lru_cache(maxsize=64)
def find_draft(source: str) -> DraftModel | str:
    """As `load_draft`, but why there is nothing to read instead of an error, so that nobody asks the Hub twice."""
    try:
        return load_draft(source)
    except NoDraftError as error:
        return str(error)


def _config(source: str) -> tuple[Mapping[str, Any], str]:
    path = existing_path(source)
    if path is not None:
        path = path / "config.json" if path.is_dir() else path
        if not path.exists():
            raise NoDraftError(f"{shown_path(path.parent)}: is a directory without config.json")
        return read_json_object(path, shown_path(path))[0], shown_path(path)
    if not is_hub_id(source):
        raise NoDraftError(f"{shown_path(source)[:200]}: is not on this machine")
    try:
        found, _ = fetch_config(source, None)
    except HubError as error:
        raise NoDraftError(str(error).partition(";")[0]) from None
    return read_json_object(Path(found), source)[0], source


def draft_from_config(config: Mapping[str, Any], origin: str = "config.json") -> DraftModel:
    """The draft model of a parsed config.json. Raises InputError for a key that is missing or cannot be."""
    text = config.get("text_config")
    values = _Values({**config, **text} if isinstance(text, dict) else config, origin)
    own, dspark = values.part("dflash_config"), values.part("dspark_config")
    layers, heads = values.number("num_hidden_layers"), values.number("num_attention_heads")
    hidden = values.number("hidden_size")
    head_dim = values.number("head_dim", 0, least=0) or hidden // heads
    longest = next((values.number(name) for name in _LONGEST if values.holds(name)), 2048)
    kinds = values.found.get("layer_types")
    features = next(
        (
            part.found[name]
            for part, name in (
                (values, "dspark_target_layer_ids"),
                (own, "target_layer_ids"),
                (values, "target_layer_ids"),
            )
            if part.holds(name)
        ),
        None,
    )
    ranks = ((values, "dspark_markov_rank"), (dspark, "markov_rank"), (values, "markov_rank"))
    names = config.get("architectures")
    return DraftModel(
        origin=origin,
        architecture=str(names[0])[:80] if isinstance(names, list) and names else "",
        layers=layers,
        nextn_layers=values.number("num_nextn_predict_layers") if values.holds("num_nextn_predict_layers") else None,
        attention_heads=heads,
        kv_heads=values.number("num_key_value_heads", heads),
        head_dim=head_dim,
        v_head_dim=values.number("v_head_dim", 0, least=0) or head_dim,
        hidden_size=hidden,
        intermediate_size=values.number("intermediate_size", 4 * hidden),
        dtype=values.dtype(),
        vocabulary=values.number("vocab_size"),
        max_position_embeddings=values.number("max_position_embeddings", longest),
        longest_context=int(longest * values.rope_factor()),
        block_size=own.optional("block_size") or values.optional("block_size"),
        dspark_block_size=(
            values.optional("dspark_block_size") or dspark.optional("block_size") or values.optional("block_size")
        ),
        sliding_only=isinstance(kinds, list) and bool(kinds) and all(kind == "sliding_attention" for kind in kinds),
        causal=values.found.get("is_causal") is True or own.found.get("is_causal") is True,
        markov_rank=next((part.number(name, least=0) for part, name in ranks if part.holds(name)), 0),
        selector_rank=own.number("selector_rank", 0, least=0),
        target_features=len(features) if isinstance(features, list) and features else layers,
        attention_bias=values.found.get("attention_bias") is True,
        conv_taps=own.number("conv_kernel_size", 0, least=0),
        conv_group=own.number("conv_group_size", 0, least=0),
        packed_bits=_packed_bits(config),
    )


def _packed_bits(config: Mapping[str, Any]) -> float | None:
    """Bits of a quantized weight, the fewest that the format's name allows; None where config.json names none."""
    declared = config.get("quantization_config") or config.get("compression_config")
    if not isinstance(declared, Mapping):
        return None
    said = str({name: declared.get(name) for name in ("quant_method", "quant_algo", "format", "fmt")}).lower()
    return 8.0 if "fp8" in said or "int8" in said or "e4m3" in said else 4.0


class _Values:
    """A JSON object whose numbers are read with their bounds."""

    def __init__(self, found: Mapping[str, Any], origin: str) -> None:
        self.found, self.origin = found, origin

    def part(self, name: str) -> "_Values":
        value = self.found.get(name)
        return _Values(value if isinstance(value, dict) else {}, f"{self.origin}: {name}")

    def holds(self, name: str) -> bool:
        return self.found.get(name) is not None

    def optional(self, name: str) -> int | None:
        return self.number(name) if self.holds(name) else None

    def number(self, name: str, default: int | None = None, least: int = 1) -> int:
        value = self.found.get(name)
        if value is None:
            if default is None:
                raise InputError(f"{self.origin}: a draft model's config.json needs {name}")
            return default
        if type(value) is not int or not least <= value <= MOST:
            raise InputError(f"{self.origin}: {name} is {str(value)[:40]!r}; it must be a whole number from {least} up")
        return value

    def dtype(self) -> str:
        """The engine's own: float32, or none, becomes float16 (configs/model_config.py:2283-2341 at 0.5.23)."""
        value = str(self.found.get("dtype") or self.found.get("torch_dtype")).removeprefix("torch.")
        return value if value == "bfloat16" else "float16"

    def rope_factor(self) -> float:
        """What RoPE multiplies the longest context by (configs/model_config.py:1299-1314 at 0.5.23)."""
        rope = self.found.get("rope_scaling") or self.found.get("rope_parameters")
        if not isinstance(rope, dict) or "original_max_position_embeddings" in rope:
            return 1.0
        factor = rope.get("factor", 1)
        kind = rope.get("rope_type", rope.get("type"))
        plain = kind == "llama3" or not isinstance(factor, int | float) or not 0 < factor <= 1 << 20
        return 1.0 if plain else float(factor)
