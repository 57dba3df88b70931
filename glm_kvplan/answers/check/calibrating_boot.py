"""--calibrate: one boot of the user's own, from its log or from the file that `reconcile --save` wrote."""

from pathlib import Path

from glm_kvplan.answers.check.deployment_file import SUFFIXES, read_deployment_file
from glm_kvplan.answers.check.file_plan import plan_of
from glm_kvplan.engines.log_stream import Progress, read_file
from glm_kvplan.engines.sglang.boot_log.calibrated import of_boot, of_memory
from glm_kvplan.engines.sglang.boot_log.lines import ANCHORS
from glm_kvplan.engines.sglang.boot_log.reader import read_log
from glm_kvplan.engines.sglang.boot_log.reconciliation import reconcile
from glm_kvplan.memory.calibration import Calibration


def read_calibration(path: str) -> Calibration:
    """The last boot of a log, or the memory of a deployment file. Raises InputError for what does not say enough."""
    if Path(path).suffix.lower() in SUFFIXES:
        file = read_deployment_file(path)
        return of_memory(plan_of(file).plan, file.content.memory.given, path)
    with Progress(path) as progress:
        boots = read_log(read_file(path, ANCHORS, progress))
    return of_boot(reconcile(boots[-1]), path)
