"""One side of `kvplan diff`: a deployment file, planned and started."""

from glm_kvplan.answers.check.deployment_file import read_deployment_file
from glm_kvplan.answers.check.file_plan import plan_of
from glm_kvplan.answers.diff.starts import Side
from glm_kvplan.engines.sglang.sizing.start import boot
from glm_kvplan.errors import InputError, RefusedError


def side_of(path: str, engine: str | None = None, gpu: str | None = None) -> Side:
    """The side of a file under another engine or on another GPU where one is given.

    Raises InputError for a file that cannot be used, RefusedError where the engine refuses its flags; both name it.
    """
    file = read_deployment_file(path)
    try:
        plan = plan_of(file, engine=engine, gpu=gpu).plan
        answer = boot(plan, file.memory, file.expect.min_context)
    except RefusedError as error:
        raise RefusedError(f"{file.path} on {engine or file.engine}: {error.reason}", error.source) from None
    except InputError as error:
        if str(error).startswith(file.path):
            raise
        raise file.error(str(error), "memory") from None
    return Side(file.path, plan, answer)
