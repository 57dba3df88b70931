"""SGLang's answers to the questions of the seam."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from glm_kvplan.engines.engine import Given
from glm_kvplan.engines.flag import Flag, Variable, read_value
from glm_kvplan.engines.sglang import profile
from glm_kvplan.engines.sglang.environment import ENVIRONMENT
from glm_kvplan.engines.sglang.flags import TABLE
from glm_kvplan.engines.sglang.plan import Plan, resolved

if TYPE_CHECKING:
    from pathlib import Path

    from glm_kvplan.engines.launches import LaunchCommand
    from glm_kvplan.launch.launch import Launch


class _Sglang:
    """See `engines.engine.Engine`."""

    name = "sglang"
    title = "SGLang"
    assumed = profile.BASELINE
    flags: Sequence[Flag] = tuple(row for row in TABLE if row.role in ("flag", "ours"))
    switches: Mapping[str, Variable] = ENVIRONMENT
    context_option = "--context-length"

    def releases(self) -> tuple[str, ...]:
        return profile.releases()

    def installed(self) -> str | None:
        return profile.installed_release()

    def load(self, name: str) -> profile.EngineProfile:
        return profile.load_profile(name)

    def read_flag(self, flag: Flag, text: str) -> object:
        return read_value(flag, text)

    def read(self, launch: "Launch", release: profile.EngineProfile, within: "Path | None" = None) -> "LaunchCommand":
        # the reader is a third of the start-up time, and most questions come without a launch command
        from glm_kvplan.engines.sglang.launch_command import command_of

        return command_of(launch, release.base_release, within)

    def resolve(self, given: Given) -> Plan:
        return resolved(given)


ENGINE = _Sglang()
