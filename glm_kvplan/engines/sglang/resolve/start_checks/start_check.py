"""One start-up check of the engine that no memory rule makes: when it refuses, and why."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar, cast

from glm_kvplan.engines.sglang.environment import switched_on
from glm_kvplan.engines.sglang.resolve.arguments import DEFAULTS, Arguments, Site
from glm_kvplan.engines.sglang.start_flags import START_FLAG
from glm_kvplan.errors import RefusedError

ENVIRONMENT = "environment"  # beside the names of flags
# Expert kernels that MXFP8 takes; any other becomes flashinfer_trtllm (arg_groups/overrides.py:1488-1512 at 0.5.23).
_MXFP8_RUNNERS = ("cutlass", "deep_gemm", "flashinfer_megamoe", "flashinfer_trtllm", "flashinfer_trtllm_routed")
_Number = TypeVar("_Number", int, None)
# What the rules leave of a launch that gives no flag, as far as checks ask: any values would do, these spare most work.
USUAL = {**DEFAULTS, "attention_backend": "dsa", "mamba_radix_cache_strategy": "extra_buffer"}


class Launch:
    """A resolved launch as the checks read it: `launch.tp_size`, or any flag of START_FLAGS, given or by default."""

    site: Site

    def __init__(self, arguments: Arguments, site: Site) -> None:
        # a view of the arguments, not a copy: every resolution reads it some two hundred times
        self.__dict__ = arguments.__dict__
        self.site = site

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no flag is called {name}")

    @property
    def hopper(self) -> bool:
        return self.site.gpu.vendor == "cuda" and self.site.gpu.capability[0] == 9

    @property
    def sm120(self) -> bool:
        return self.site.gpu.vendor == "cuda" and self.site.gpu.capability[0] == 12

    @property
    def engine_quantization(self) -> str | None:
        """The method the engine runs its kernels by: the flag's, or on data-centre Blackwell the checkpoint's."""
        asked = self.given.get("quantization")
        if asked is not None:
            return None if asked == "unquant" else str(asked)
        return self.site.kernels if self.site.gpu.sm100 else None

    @property
    def expert_runner(self) -> str:
        """The expert kernels after the engine's own choice."""
        named = self.moe_runner_backend
        if self.engine_quantization == "mxfp8":
            return str(named) if named in _MXFP8_RUNNERS else "flashinfer_trtllm"
        if named != "auto":
            return str(named)
        if self.engine_quantization == "nvfp4_online":
            return "flashinfer_trtllm"
        return "flashinfer_cutlass" if self.engine_quantization == "modelopt_fp4" and self.sm120 else "auto"

    @property
    def asked_ranks(self) -> int:
        """Expert ranks before an exchange spreads the experts over all: what the checks of kernels still see."""
        decided = self.moe_a2a_backend == "none" or (self.enable_prefill_cp and self.cp_strategy == "zigzag")
        return int(self.ep_size if decided else self.given.get("ep_size", 1))

    @property
    def attention(self) -> tuple[str, str]:
        """The attention kernels of prefill and of decode."""
        base = self.attention_backend
        return self.prefill_attention_backend or base, self.decode_attention_backend or base

    @property
    def explicit_attention(self) -> tuple[str | None, str | None, str | None]:
        """The three names of attention kernels, as far as they are resolved."""
        return self.attention_backend, self.prefill_attention_backend, self.decode_attention_backend

    def switch(self, name: str) -> bool:
        """An on/off variable of the environment."""
        return switched_on(self.site.environment, name)

    def number(self, name: str, default: _Number) -> int | _Number:
        """A number of the environment; the engine's default where the text is none."""
        try:
            return int(self.site.environment.get(name, ""))
        except ValueError:
            return default


for _flag in START_FLAG.values():  # what is not given is as the engine has it
    setattr(Launch, _flag.name, _flag.default)


class Check(NamedTuple):
    """One check. `name` is what a profile's `absent_checks` says of a release that does not make it."""

    name: str
    refuses: Callable[[Launch], bool]
    reason: str  # in our words; {a} is the launch
    source: str


def refuse(checks: Iterable[Check], launch: Launch) -> None:
    """Raise RefusedError for the first check that the release makes and the launch fails."""
    for check in checks:
        if check.refuses(launch) and check.name not in launch.site.profile.absent_checks.split():
            raise RefusedError(check.reason.format(a=launch), check.source)


class _NoFlag(Exception):
    pass


class _NothingTurned:
    """A launch whose flags are all USUAL, in an environment that is empty. Nothing else is known of it, nor of its
    site, which it is itself.
    """

    def __init__(self) -> None:
        self.asked: set[str] = set()

    @property
    def site(self) -> "_NothingTurned":
        return self

    @property
    def environment(self) -> Mapping[str, str]:
        self.asked.add(ENVIRONMENT)
        return {}

    def __getattr__(self, name: str) -> Any:
        derived = vars(Launch).get(name)
        if isinstance(derived, property) and derived.fget is not None:
            return derived.fget(self)
        if name in USUAL:
            value = USUAL[name]
        elif name in START_FLAG:
            value = START_FLAG[name].default
        else:
            raise _NoFlag
        self.asked.add(name)
        return value


def asked_only(check: Check) -> frozenset[str]:
    """The flags (or ENVIRONMENT) of which one must be turned for the check to refuse; empty where it may refuse
    whatever they are.

    It is tried with none turned: where it says no before it asks for anything else, it always will.
    """
    launch = _NothingTurned()
    try:
        refuses = check.refuses(cast(Launch, launch))
    except _NoFlag:
        return frozenset()
    return frozenset() if refuses else frozenset(launch.asked)
