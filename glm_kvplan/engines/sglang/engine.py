"""SGLang's answers to the questions of the seam."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from glm_kvplan.engines.flag import Flag, Variable, read_value
from glm_kvplan.engines.profile_file import installed_release
from glm_kvplan.engines.protocol import Given
from glm_kvplan.engines.sglang import profile
from glm_kvplan.engines.sglang.environment import ENVIRONMENT
from glm_kvplan.engines.sglang.flags import TABLE
from glm_kvplan.engines.sglang.plan import Plan, resolved

if TYPE_CHECKING:
    from pathlib import Path

    from glm_kvplan.engines.boot_logs import BesideLog, LogReader
    from glm_kvplan.engines.launches import LaunchCommand
    from glm_kvplan.engines.sglang.answers.release_comparison import EngineComparison
    from glm_kvplan.engines.sglang.boot_log.boot import Boot
    from glm_kvplan.engines.sglang.boot_log.reconciliation import Reconciliation
    from glm_kvplan.launch.launch import Launch
    from glm_kvplan.memory.calibration import Calibration
    from glm_kvplan.show.page import Page


class _Sglang:
    """See `engines.protocol.Engine`."""

    name = "sglang"
    title = "SGLang"
    assumed = profile.BASELINE
    flags: Sequence[Flag] = tuple(row for row in TABLE if row.role in ("flag", "ours"))
    switches: Mapping[str, Variable] = ENVIRONMENT
    context_option = "--context-length"

    @property
    def log_anchors(self) -> Sequence[str]:
        from glm_kvplan.engines.sglang.boot_log.lines import ANCHORS

        return ANCHORS

    def releases(self) -> tuple[str, ...]:
        return profile.releases()

    def installed(self) -> str | None:
        return installed_release(self.name)

    def facts(self, release: profile.EngineProfile) -> Mapping[str, str]:
        return profile.facts(release)

    def compare(self, before: profile.EngineProfile, after: profile.EngineProfile) -> "tuple[EngineComparison, Page]":
        from glm_kvplan.engines.sglang.answers.comparison_page import comparison_page
        from glm_kvplan.engines.sglang.answers.release_comparison import compare_engines

        found = compare_engines(before, after)
        return found, comparison_page(found)

    def load(self, name: str) -> profile.EngineProfile:
        return profile.load_profile(name)

    def read_flag(self, flag: Flag, text: str) -> object:
        return read_value(flag, text)

    def read(self, launch: "Launch", release: profile.EngineProfile, within: "Path | None" = None) -> "LaunchCommand":
        # the reader is a third of the start-up time, and most questions come without a launch command
        from glm_kvplan.engines.sglang.launch_command import command_of

        patched = release.release != release.base_release
        return command_of(launch, release.base_release, within, patched=patched)

    # what reads boot logs is imported where one is read
    def log_reader(self) -> "LogReader":
        from glm_kvplan.engines.sglang.boot_log.reader import LogReader

        return LogReader()

    def ask_server(self, url: str, timeout: float) -> "Boot":
        from glm_kvplan.engines.sglang.boot_log.server_info import read_server_info

        return read_server_info(url, timeout)

    def reconcile(self, boot: "Boot", beside: "BesideLog") -> "Reconciliation":
        from glm_kvplan.engines.sglang.boot_log.reconciliation import reconcile

        return reconcile(boot, beside)

    def calibration(self, boot: "Boot", source: str) -> "Calibration":
        from glm_kvplan.engines.sglang.boot_log.calibrated import of_boot
        from glm_kvplan.engines.sglang.boot_log.reconciliation import reconcile

        return of_boot(reconcile(boot), source)

    def saved_plan(self, found: "Reconciliation", source: str) -> Mapping[str, object]:
        from glm_kvplan.engines.sglang.boot_log.plan_file import plan_document

        return plan_document(found, source)

    def resolve(self, given: Given, flags: Mapping[str, object]) -> Plan:
        return resolved(given, flags)


ENGINE = _Sglang()
