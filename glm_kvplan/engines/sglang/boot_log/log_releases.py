"""Which release wrote a log: the boot lines never say, but the names of the arguments and some messages do."""

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from glm_kvplan.engines.sglang.boot_log.boot import Boot
from glm_kvplan.engines.sglang.flags import FLAGS
from glm_kvplan.engines.sglang.profile import releases


class Steps(NamedTuple):
    """Argument fields that came and went with a release."""

    new: frozenset[str]
    gone: frozenset[str]


@lru_cache
def steps() -> dict[str, Steps]:
    """What each release but the oldest changed, oldest first."""
    text = (Path(__file__).parent / "releases.toml").read_text(encoding="utf-8")
    return {
        release: Steps(
            frozenset((*row["new"], *(flag.name for flag in FLAGS if flag.since == release))),
            frozenset((*row["gone"], *(flag.name for flag in FLAGS if flag.gone == release))),
        )
        for release, row in sorted(tomllib.loads(text).items())
    }


@lru_cache
def telling_names() -> frozenset[str]:
    """The field names worth remembering while a log is read."""
    return frozenset().union(*(step.new | step.gone for step in steps().values()))


def said(boot: Boot) -> str | None:
    """The release that a server named outright (`0.5.22.post1` is 0.5.22), where there is a profile of it."""
    match = re.match(r"\d{1,4}\.\d{1,4}\.\d{1,4}(?!\d)", boot.release or "")
    return match.group() if match is not None and match.group() in releases() else None


def possible(boot: Boot) -> tuple[str, ...]:
    """The releases that could have written this boot, oldest first; all of them where nothing tells.

    0.5.20 prints "Init torch distributed ends" with the memory it used; later ones print
    "Memory baseline taken" instead (distributed/bootstrap.py:164 at 0.5.20, :219 at 0.5.23).
    """
    known = releases()
    release = said(boot)
    if release is not None:
        return (release,)
    first, last = 0, len(known) - 1
    for release, step in steps().items():
        at = known.index(release)
        if boot.argument_names & step.new:
            first = at
        elif boot.arguments_whole or boot.argument_names & step.gone:
            last = min(last, at - 1)
    if boot.has("baseline"):
        first = max(first, 1)
    attached = boot.first("attached")
    if boot.has("distributed_end") or (attached is not None and attached["key"] == "transfer_layer_num"):
        last = 0
    return known[first : last + 1] if first <= last else known
