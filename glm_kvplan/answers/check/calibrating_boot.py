"""--calibrate: one boot of the user's own, from its log or from the file that `reconcile --save` wrote."""

from pathlib import Path

from glm_kvplan.answers.check.deployment_file import SUFFIXES, read_deployment_file
from glm_kvplan.answers.check.file_plan import plan_of
from glm_kvplan.engines.boot_logs import read_boots
from glm_kvplan.engines.by_name import NAMES, engine_named
from glm_kvplan.engines.log_stream import Progress
from glm_kvplan.memory.calibration import Calibration


def read_calibration(path: str) -> Calibration:
    """The last boot of a log, or the memory of a deployment file. Raises InputError for what does not say enough."""
    if Path(path).suffix.lower() in SUFFIXES:
        file = read_deployment_file(path)
        found: Calibration = plan_of(file).plan.calibration(file.content.memory.given, path)
        return found
    with Progress(path) as progress:
        engine, boots = read_boots(path, [engine_named(name) for name in NAMES], progress)
    return engine.calibration(boots[-1], path)
