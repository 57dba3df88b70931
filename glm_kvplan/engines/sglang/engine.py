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
    from glm_kvplan.engines.sglang.launch_command import LaunchCommand


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

    def read(self, launch: Sequence[str] | str, release: profile.EngineProfile) -> "LaunchCommand":
        # the reader is a third of the start-up time, and most questions come without a launch command
        from glm_kvplan.engines.sglang.launch_command import read_launch_command
        from glm_kvplan.launch.launch_file import with_config_file

        return with_config_file(read_launch_command(launch, release.base_release), release.base_release)

    def resolve(self, given: Given) -> Plan:
        return resolved(given)


ENGINE = _Sglang()
