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
    from glm_kvplan.engines.vllm.launch_command import LaunchCommand


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

    def read(self, launch: Sequence[str] | str, release: profile.EngineProfile) -> "LaunchCommand":
        from glm_kvplan.engines.vllm.launch_command import read_launch_command

        return read_launch_command(launch, release.base_release)

    def resolve(self, given: Given) -> Plan:
        return resolved(given)


ENGINE = _Vllm()
