"""Files that a deployment file names: read where they lie in its folder, or in another that the caller allows.

Somebody else may have written the deployment file; nobody else decides what is opened here.
"""

from collections.abc import Mapping
from pathlib import Path

from glm_kvplan.engines.servers import SERVERS
from glm_kvplan.errors import InputError
from glm_kvplan.launch.bash.surroundings import Surroundings
from glm_kvplan.launch.forms import launches_in
from glm_kvplan.launch.launch import Found
from glm_kvplan.launch.launch_file import read_launch_file
from glm_kvplan.model.loader import existing_path
from glm_kvplan.reading.guarded_file import inside

HOW = "--root DIR allows another folder"


def named_file(folder: Path, root: Path, name: str, shown: str) -> Path:
    """The path of `name`, which starts at `folder`. Raises InputError where it lies neither there nor in `root`."""
    try:
        return inside(folder, name, shown)
    except InputError as error:
        if root == folder:
            raise InputError(f"{error}; {HOW}") from None
    try:
        return inside(root, str((folder / name).absolute()), shown)
    except InputError as error:
        raise InputError(f"{error}; {HOW}") from None


def local_file(folder: Path, name: str) -> Path | None:
    """What `name` would open here, beside the deployment file or elsewhere; None where nothing of that name exists."""
    beside = folder / name
    return beside if existing_path(str(beside)) is not None else existing_path(name)


def launches_of_file(folder: Path, root: Path, name: str, given: Mapping[str, str]) -> Found:
    """The launches of a launch's own file; `given` are values of its variables. Raises InputError."""
    shown = f"launch_file {name}"
    return read_launch_file(named_file(folder, root, name, shown), SERVERS, given, shown)


def launches_of_text(text: str, given: Mapping[str, str]) -> Found:
    """The launches of a text that stands in the file itself. Raises InputError."""
    return launches_in(text, SERVERS, Surroundings(given=given))
