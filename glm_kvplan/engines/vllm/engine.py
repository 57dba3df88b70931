"""vLLM's answers to the questions of the seam."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from glm_kvplan.engines.flag import Flag, Variable
from glm_kvplan.engines.profile_file import installed_release
from glm_kvplan.engines.protocol import Given
from glm_kvplan.engines.vllm import profile
from glm_kvplan.engines.vllm.environment import ENVIRONMENT
from glm_kvplan.engines.vllm.flag_values import read_flag
from glm_kvplan.engines.vllm.flags import FLAGS
from glm_kvplan.engines.vllm.plan import NO_CALIBRATION, Plan, resolved
from glm_kvplan.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from glm_kvplan.engines.boot_logs import BesideLog, LogReader
    from glm_kvplan.engines.launches import LaunchCommand
    from glm_kvplan.engines.vllm.boot_fits import BootFit
    from glm_kvplan.engines.vllm.boot_lines import Boot
    from glm_kvplan.launch.launch import Launch
    from glm_kvplan.memory.calibration import Calibration
    from glm_kvplan.show.page import Page


class _Vllm:
    """See `engines.protocol.Engine`."""

    name = "vllm"
    title = "vLLM"
    assumed = profile.NEWEST
    flags: Sequence[Flag] = FLAGS
    switches: Mapping[str, Variable] = ENVIRONMENT
    context_option = "--max-model-len"

    @property
    def log_anchors(self) -> Sequence[str]:
        from glm_kvplan.engines.vllm.boot_lines import ANCHORS

        return ANCHORS

    def releases(self) -> tuple[str, ...]:
        return profile.releases()

    def installed(self) -> str | None:
        return installed_release(self.name)

    def facts(self, release: profile.EngineProfile) -> Mapping[str, str]:
        return profile.facts(release)

    def compare(self, before: profile.EngineProfile, after: profile.EngineProfile) -> "tuple[object, Page]":
        raise InputError(
            "releases of vLLM are not compared by themselves; kvplan diff compares one deployment under two: "
            f"--engine vllm-{before.release} --engine vllm-{after.release}"
        )

    def load(self, name: str) -> profile.EngineProfile:
        return profile.load_profile(name)

    def read_flag(self, flag: Flag, text: str) -> object:
        return read_flag(flag, text)

    def read(self, launch: "Launch", release: profile.EngineProfile, within: "Path | None" = None) -> "LaunchCommand":
        from glm_kvplan.engines.vllm.launch_command import command_of

        patched = release.release != release.base_release
        return command_of(launch, release.base_release, within, patched=patched)

    # what reads boot logs is imported where one is read
    def log_reader(self) -> "LogReader":
        from glm_kvplan.engines.vllm.boot_reader import LogReader

        return LogReader()

    def ask_server(self, url: str, timeout: float) -> "Boot":
        raise InputError("--url: a vLLM server does not tell its blocks; give its log")

    def reconcile(self, boot: "Boot", beside: "BesideLog") -> "BootFit":
        from glm_kvplan.engines.vllm.boot_fits import fit_boot

        return fit_boot(boot, beside)

    def calibration(self, boot: "Boot", source: str) -> "Calibration":
        raise InputError(f"--calibrate {source} {NO_CALIBRATION}")

    def saved_plan(self, found: "BootFit", source: str) -> Mapping[str, object]:
        from glm_kvplan.engines.vllm.boot_fits import plan_document

        return plan_document(found, source)

    def resolve(self, given: Given, flags: Mapping[str, object]) -> Plan:
        return resolved(given, flags)


ENGINE = _Vllm()
