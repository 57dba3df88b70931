"""A boot log held against the plans of the releases: which fits, which card it is, and what would explain it."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from glm_kvplan.engines.boot_logs import CARD_ERROR, BesideLog
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.vllm.backends import BACKENDS
from glm_kvplan.engines.vllm.boot_lines import Boot
from glm_kvplan.engines.vllm.memory_before import total_gib
from glm_kvplan.engines.vllm.moves import NO_DRAFT
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.profile import NEWEST, releases
from glm_kvplan.engines.vllm.reconciliation import Reconciliation, reconcile, release_of
from glm_kvplan.errors import InputError, KvplanError
from glm_kvplan.launch.model_name import refuse_other_model
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.memory.gpu import Gpu, find_gpu, known_gpus

STAND_IN = "h200"  # where neither the user nor the log says the card
_MOST_DRAFTS = 8
_SWITCHES = {"True": True, "False": False}


class Fit(NamedTuple):
    """How one release does on a boot. `refused` says why it would not even start with these flags."""

    engine: str
    differs: int
    same: int
    refused: str = ""

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Smaller is better."""
        return bool(self.refused), self.differs, -self.same


class BootFit(NamedTuple):
    """`held` is the boot against `plan`. `chosen` says why this release; `causes` what else would explain the boot."""

    boot: Boot
    plan: Plan
    held: Reconciliation
    chosen: str
    gpu_guessed: bool
    gpu_unknown: bool  # the log does not tell the card: a stand-in, whose memory is no evidence
    fits: tuple[Fit, ...]
    causes: tuple[str, ...]

    @property
    def explained(self) -> bool:
        return self.held.explained


def fit_boot(boot: Boot, beside: BesideLog) -> BootFit:
    """The release that the log or the user names, or that fits best; every release is tried where it does not fit.

    Raises InputError for a log without flags or of another model, RefusedError where the named release refuses.
    """
    if beside.draft is not None:
        raise InputError("--draft-config: a draft model of its own is not planned for vLLM; leave it out")
    if boot.model is not None and beside.model is None:
        refuse_other_model(boot.model)
    flags = {**_printed_flags(boot), **beside.flags}
    if not flags:
        raise InputError(
            f"{boot.origin}: the boot prints no arguments; give its launch command after -- or with --launch FILE"
        )
    card, known = _card(boot, beside)
    named, chosen = _named(boot, beside)
    tries: list[tuple[Fit, Plan, Reconciliation]] = []
    fits: list[Fit] = []
    known_releases = releases() if named is None or named in releases() else (*releases(), named)
    for release in sorted(known_releases, key=lambda each: each != named):
        try:
            made = _plan(release, flags, beside, card)
        except KvplanError as error:
            if release == named and beside.engine is not None:
                raise
            fits.append(Fit(release, 0, 0, str(error)))
            continue
        held = _held(boot, made, known)
        fit = _fit(release, held)
        tries.append((fit, made, held))
        fits.append(fit)
        if release == named and held.explained:
            break  # the release is known and explains everything
    if not tries:
        raise InputError(f"{boot.origin}: no release known here takes these flags: {fits[0].refused}")
    best = min(tries, key=lambda each: (each[0].rank, each[0].engine != NEWEST))
    fit, made, held = next((each for each in tries if each[0].engine == named), best)
    if named is None:
        chosen = "fits best"
    guessed = beside.gpu is None
    causes = () if held.explained else tuple(_causes(boot, made, known, fits, fit))
    return BootFit(boot, made, held, chosen, guessed, guessed and not known, tuple(fits), causes)


def _named(boot: Boot, beside: BesideLog) -> tuple[str | None, str]:
    """(the release that is told, why it is the one)."""
    if beside.engine is not None:
        return beside.engine.removeprefix("vllm-") if beside.engine != "vllm" else None, "named"
    if boot.release is None:
        return None, ""
    release, note = release_of(boot)
    return release, note or f"the server says {boot.release}"


def _printed_flags(boot: Boot) -> Mapping[str, object]:
    """The launch flags as the log prints them; where it lacks the arguments, what the engine says of itself."""
    if boot.flags or not boot.facts:
        return boot.flags
    facts, found = boot.facts, dict[str, object]()
    for name in ("tensor_parallel_size", "data_parallel_size", "decode_context_parallel_size"):
        if facts.get(name, "").isdecimal():
            found[name] = int(facts[name])
    if facts.get("max_seq_len", "").isdecimal():
        found["max_model_len"] = int(facts["max_seq_len"])
    if "kv_cache_dtype" in facts:
        found["kv_cache_dtype"] = facts["kv_cache_dtype"]
    for name in ("enable_prefix_caching", "enforce_eager"):
        if facts.get(name) in _SWITCHES:
            found[name] = _SWITCHES[facts[name]]
    if "method" in facts:
        found["speculative_config"] = {
            "method": facts["method"],
            "num_speculative_tokens": int(facts["num_speculative_tokens"]),
        }
    return found


def _card(boot: Boot, beside: BesideLog) -> tuple[Gpu, bool]:
    """(the card, whether the user or the log's memory tells it)."""
    printed = boot.printed.get("card")
    named = beside.card(boot.origin, None if printed is None else printed.value)
    if named is not None:
        return named, True
    if printed is not None:
        generations = {backend.generation for backend in BACKENDS}
        cards = {key: gpu for key, gpu in known_gpus().items() if gpu.vendor == "cuda"}
        fitting = [key for key, gpu in cards.items() if gpu.capability[0] in generations]
        # of several cards of one memory the one with the shortest name is the usual one
        near = cards[min(fitting, key=lambda key: (abs(total_gib(cards[key]) - printed.value), len(key)))]
        if abs(total_gib(near) - printed.value) <= CARD_ERROR:
            return near, True
    return find_gpu(STAND_IN), False


def _plan(release: str, flags: Mapping[str, object], beside: BesideLog, card: Gpu) -> Plan:
    made: Plan = plan(
        flags,
        model=beside.model,
        revision=beside.revision,
        gpu=card,
        engine=f"vllm-{release}",
        environment=beside.environment,
    )
    return made


def _held(boot: Boot, made: Plan, card_known: bool) -> Reconciliation:
    held = reconcile(boot, made, MemoryGiven())
    if card_known:
        return held
    # what is estimated from a card that nobody named is no evidence against the plan
    rows = tuple(row._replace(verdict="not planned") if row.error else row for row in held.rows)
    return held._replace(rows=rows)


def _fit(release: str, held: Reconciliation) -> Fit:
    verdicts = [row.verdict for row in held.rows]
    differs = verdicts.count("differs") + verdicts.count("not planned") * (held.start is None)
    return Fit(release, differs, verdicts.count("same"))


def _causes(boot: Boot, made: Plan, card_known: bool, fits: list[Fit], own: Fit) -> Iterator[str]:
    """What would explain the boot, each tried."""
    good = [fit.engine for fit in fits if not fit.refused and not fit.differs and fit is not own]
    if good:
        yield f"the engine is {' or '.join(good)}: under it every number is explained"
    for said, changes in _variations(made):
        try:
            if _held(boot, made.with_flags(**changes), card_known).explained:
                yield f"{said}: with it every number is explained"
        except KvplanError:
            continue


def _variations(made: Plan) -> Iterator[tuple[str, Mapping[str, object]]]:
    deployment = made.deployment
    caching = not deployment.enable_prefix_caching
    yield f"prefix caching is {'on' if caching else 'off'}", {"enable_prefix_caching": caching}
    for tokens in range(_MOST_DRAFTS):
        if tokens != deployment.num_speculative_tokens:
            config = {"method": "mtp", "num_speculative_tokens": tokens}
            yield f"{tokens} draft tokens", {**NO_DRAFT, **({"speculative_config": config} if tokens else {})}
    for dtype in ("bfloat16", "fp8", "fp8_ds_mla"):
        if dtype != deployment.cache_dtype:
            yield f"--kv-cache-dtype {dtype}", {"kv_cache_dtype": dtype}
    yield "a bfloat16 state", {"mamba_ssm_cache_dtype": "bfloat16"}
    yield "--kda-prefill-backend triton", {"kda_prefill_backend": "triton"}
    for width in (1, 2, 4, 8):
        if width != deployment.tensor_parallel_size:
            yield f"--tensor-parallel-size {width}", {"tensor_parallel_size": width}


def plan_document(found: BootFit, source: str) -> dict[str, object]:
    """The content of a deployment file; as `expect` it has the context that the server takes.

    `available_gib` gives exactly the blocks that the log prints, where it prints them.
    """
    made, boot, start = found.plan, found.boot, found.held.start
    document: dict[str, object] = {
        "model": boot.model or made.model.name,
        "engine": f"vllm-{made.profile.base_release}",
        "gpu": made.gpu.name,
        "flags": dict(made.flags),
    }
    if made.environment:
        document["environment"] = dict(made.environment)
    available = boot.printed.get("available")
    if made.deployment.kv_cache_memory_bytes is None and available is not None:
        gib, how = available.value, "the printed memory"
        if start is not None and made.blocks.count(int(gib * 2**30)) != start.count:
            gib, how = (start.count + 0.5) * made.blocks.nbytes / 2**30, "the memory that gives the printed size"
        document["memory"] = {"available_gib": round(gib, 6), "source": f"{source}: {how}"}
    if start is not None:
        document["expect"] = {"min_context": start.max_model_len}
    return document
