"""How the model is launched: the engine's arguments once every default is filled in, frozen, each with its reason."""

from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from operator import attrgetter
from typing import Any

from glm_kvplan.engines.flag import Choice, Flag
from glm_kvplan.engines.sglang.flags import FLAG, TABLE
from glm_kvplan.engines.sglang.resolve.arguments import DEFAULTS, Arguments, Site
from glm_kvplan.engines.sglang.resolve.arguments import KvLayout as KvLayout
from glm_kvplan.kept import kept

# What sizes and weights follow from: the rest only decides these, or what the engine refuses.
SIZING: tuple[str, ...] = tuple(row.name for row in TABLE if row.moves and not row.becomes and not row.unplanned)
_sizing = attrgetter(*SIZING)
_SHOWN = tuple(row for row in TABLE if row.shown)


class Deployment(Arguments):
    """One resolved deployment, in the engine's own flag names; `resolve` makes it.

    Two are equal where everything that sizes follow from is equal, however it was asked for. Global values stay
    global here (`max_running_requests`, `max_mamba_cache_size`); the `..._per_worker` methods divide them.
    """

    # decided by the time the rules have run
    dsa_prefill_backend: str
    dsa_decode_backend: str
    page_size: int
    context_length: int
    mamba_ssm_dtype: str
    chunked_prefill_size: int
    prefill_graph_max_bs: int
    mem_fraction_static: float
    disaggregation_decode_extra_slots: int
    warnings: tuple[str, ...]  # type: ignore[assignment]  # what the engine accepts and does otherwise, a line each
    site: Site | None  # where it was resolved; None for one made by hand

    def __init__(self, **values: Any) -> None:
        """One made by hand from resolved values; what is left out is neutral: one H200, nothing switched on."""
        unknown = values.keys() - _NEUTRAL.keys()
        if unknown:
            raise TypeError(f"Deployment has no field {min(unknown)!r}")
        object.__setattr__(self, "__dict__", {**_NEUTRAL, **values})

    @classmethod
    def of(cls, draft: Arguments, site: Site) -> "Deployment":
        """The deployment that a draft has become. It takes the draft's values over: nothing is copied."""
        made = cls.__new__(cls)
        values = draft.__dict__
        values.update(site=site, warnings=tuple(draft.warnings))
        object.__setattr__(made, "__dict__", values)
        return made

    def with_values(self, **values: Any) -> "Deployment":
        """The same with some resolved values replaced, as they are: no rule runs. KeyError for a name that is none."""
        for name in values:
            self.__dict__[name]
        made = Deployment.__new__(Deployment)
        resolved = {name: value for name, value in self.__dict__.items() if name not in _KEPT}
        object.__setattr__(made, "__dict__", {**resolved, **values})
        return made

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Deployment) and self.sizing == other.sizing

    def __hash__(self) -> int:
        return hash(self.sizing)

    def __repr__(self) -> str:
        told = {name: value for name, value in zip(SIZING, self.sizing, strict=True) if value != _NEUTRAL[name]}
        return f"Deployment({', '.join(f'{name}={value!r}' for name, value in told.items())})"

    @property
    def sizing(self) -> tuple[Any, ...]:
        """The values of SIZING."""
        return _sizing(self)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Every value that bears on memory, with its reason; built when asked for, to keep resolving fast."""
        return tuple(self._choice(flag) for flag in _SHOWN if self._matters(flag))

    def reason(self, name: str) -> str:
        """Why the flag `name` has its value, in words; empty where nothing is to be said. KeyError for no flag."""
        return self._choice(FLAG[name]).reason if self._matters(FLAG[name]) else ""

    def _matters(self, flag: Flag) -> bool:
        if flag.name in self.given:
            return True
        if flag.under and not getattr(self, flag.under):
            return False
        return flag.name in self.because or flag.reason is not None

    def _choice(self, flag: Flag) -> Choice:
        name = flag.name
        value = getattr(self, flag.resolved or name)
        given = name in self.given and self.given[name] == value
        reason = self.because.get(name)
        if reason is None and name not in self.given:
            reason = flag.reason
        if reason is None or (given and name not in self.because):
            return Choice(name, value, given, "given", "")
        site = self.site
        text = reason.text.format(a=self, gpu=site and site.gpu, profile=site and site.profile)
        return Choice(name, value, given, text, reason.source)

    @kept
    def attn_tp_size(self) -> int:
        """How many ranks share one request's attention: tp / attention DP / CP (runtime_context.py:73-76 at 0.5.23)."""
        return self.tp_size // self.attn_dp_size // self.attn_cp_size

    @property
    def world_size(self) -> int:
        """Ranks (GPUs) of one engine: tp * pp. Plain data parallelism multiplies it by `replicas`."""
        return self.tp_size * self.pp_size

    @property
    def row_scales(self) -> bool:
        """FP8 rows carry their scales behind them."""
        return self.kv_layout in ("fp8_scaled", "fp8_padded")

    @kept
    def speculative(self) -> bool:
        return self.speculative_algorithm is not None

    @kept
    def eagle(self) -> bool:
        """The draft is the checkpoint's own MTP layer, with pools of the target's layout (NEXTN resolves to EAGLE)."""
        return self.speculative and self.speculative_draft_model_path is None and not self.block_draft

    @property
    def block_draft(self) -> bool:
        """The draft is a model of its own that drafts a block at once, priced by its own heads."""
        return self.speculative_algorithm in ("DFLASH", "DSPARK")

    @property
    def unknown_draft(self) -> bool:
        """The draft is a model of its own that nothing is known of: tokens are an upper bound."""
        return self.speculative and not self.eagle and self.draft_model is None

    @kept
    def extra_buffer(self) -> bool:
        """The radix cache keeps ping-pong tracking slots (arg_groups/model_override_base.py:260-265 at 0.5.23)."""
        return not self.disable_radix_cache and self.mamba_radix_cache_strategy in (
            "extra_buffer",
            "extra_buffer_lazy",
        )

    @property
    def tracking_slots(self) -> int:
        """State slots reserved for a request's tracking buffer: 2 with overlap, 1 without or lazily, 0 without one.

        The buffer itself has two entries under the lazy strategy, too (`pools.counts.ping_pong_slots`).
        """
        if not self.extra_buffer:
            return 0
        return 2 if self.mamba_radix_cache_strategy == "extra_buffer" and not self.disable_overlap_schedule else 1

    @kept
    def slots_per_request(self) -> int:
        """State slots the engine reserves for a running request: 5, 4, 3 or 1.

        Source: mem_cache/kv_cache_configurator.py:222-229, 3062-3088 at 0.5.23 (`_calculate_mamba_ratio`).
        """
        if self.disable_radix_cache:
            return 1
        if self.extra_buffer:
            return (2 if self.skip_decode_lock else 3) + self.tracking_slots
        return 3  # no_buffer: base 3, or base 2 and one more with SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK

    @kept
    def decode_reserve(self) -> int:
        """Tokens a running request is given ahead of its context (mem_cache/allocation_sizing.py:45-70 at 0.5.23).

        Twice a step's drafts, because of the overlap schedule; 0 without speculation, where the next token's place is
        taken when it comes.
        """
        if not self.speculative:
            return 0
        steps = (self.speculative_num_steps or 0) * (self.speculative_eagle_topk or 1)
        return 2 * max(steps, self.max_draft_tokens or 0)

    @kept
    def request_table_extra(self) -> int:
        """Columns of the request table beyond the context length (mem_cache/allocation_sizing.py:96-117 at 0.5.23)."""
        extra = 4 + (self.max_draft_tokens or 0)
        if self.speculative and self.page_size > 1:
            extra = max(extra, self.decode_reserve + self.page_size - 1)
        return extra

    def requests_per_worker(self, requests: int, least: int = 0) -> int:
        """A global request count divided over the attention-DP workers, with the release's floor."""
        return max(least, requests // self.attn_dp_size)


_KEPT = frozenset(name for name, value in vars(Deployment).items() if isinstance(value, kept))
_NEUTRAL: Mapping[str, Any] = {
    **DEFAULTS,
    **{"given": {}, "because": {}, "warnings": (), "site": None},
    "kv_cache_dtype": "bfloat16",
    "dsa_prefill_backend": "flashmla_sparse",
    "dsa_decode_backend": "fa3",
    "page_size": 64,
    "context_length": 1048576,
    "mamba_radix_cache_strategy": "extra_buffer",
    "mamba_ssm_dtype": "float32",
    "chunked_prefill_size": 8192,
    "decode_graph_max_bs": 256,
    "prefill_graph_max_bs": 0,
    "mem_fraction_static": 0.9,
    "mm_reserve_mib": 100,
    "disaggregation_decode_extra_slots": 0,
    "hicache_ratio": 2.0,
    "hicache_host_memory_fraction": None,
}
