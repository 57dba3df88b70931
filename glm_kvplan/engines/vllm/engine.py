"""vLLM's answers to the questions of the seam."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from glm_kvplan.engines.engine import Given
from glm_kvplan.engines.flag import Flag, Variable
from glm_kvplan.engines.vllm import profile
from glm_kvplan.engines.vllm.environment import ENVIRONMENT
from glm_kvplan.engines.vllm.flag_values import read_flag
from glm_kvplan.engines.vllm.flags import FLAGS
from glm_kvplan.engines.vllm.plan import Plan, resolved

if TYPE_CHECKING:
    from pathlib import Path

    from glm_kvplan.engines.launches import LaunchCommand
    from glm_kvplan.launch.launch import Launch


class _Vllm:
    """See `engines.engine.Engine`."""

    name = "vllm"
    title = "vLLM"
    assumed = profile.NEWEST
    flags: Sequence[Flag] = FLAGS
    switches: Mapping[str, Variable] = ENVIRONMENT
    context_option = "--max-model-len"

    def releases(self) -> tuple[str, ...]:
        return profile.releases()

    def installed(self) -> str | None:
        return profile.installed_release()

    def load(self, name: str) -> profile.EngineProfile:
        return profile.load_profile(name)

    def read_flag(self, flag: Flag, text: str) -> object:
        return read_flag(flag, text)

    def read(self, launch: "Launch", release: profile.EngineProfile, within: "Path | None" = None) -> "LaunchCommand":
        from glm_kvplan.engines.vllm.launch_command import command_of

        return command_of(launch, release.base_release, within)

    def resolve(self, given: Given) -> Plan:
        return resolved(given)


ENGINE = _Vllm()
