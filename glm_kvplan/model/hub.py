"""config.json of a Hub repository, by huggingface_hub: its token, endpoint, offline switch and cache are honoured."""

import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

from glm_kvplan.errors import InputError
from glm_kvplan.model.json_file import LARGEST_FILE

# The whole look-up, whatever the library's own timeouts and retries add up to. Name resolution has no timeout at all.
DEADLINE_S = 12.0
CONNECT_S = 5.0
_UNFINISHED = "*.incomplete"  # what the library calls a file that is on its way
_ID = r"(?a)[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*"
_INSTEAD = "give a path, or leave the model out for the bundled copy of zai-org/GLM-5.3-Flash"


class HubError(InputError):
    """The Hub has no config.json for us: unreachable, unknown, private, gated or offline. One line."""


def is_hub_id(text: str) -> bool:
    """Whether `text` reads as `org/name`."""
    return re.fullmatch(_ID, text) is not None and not text.endswith(".json")


def fetch_config(repo: str, revision: str | None) -> tuple[Path, tuple[str, ...]]:
    """The cached config.json of `repo`, and warnings. HubError, one line, within 15 seconds, where there is none."""
    found: list[tuple[Path, tuple[str, ...]]] = []
    failed: list[Exception] = []

    def look_up() -> None:
        try:
            found.append(_look_up(repo, revision))
        except Exception as error:
            failed.append(error)

    blobs = _blobs(repo)
    before = set(blobs.glob(_UNFINISHED))
    with _silent():
        # A daemon: a look-up that hangs must not keep the process alive after the answer was given.
        thread = threading.Thread(target=look_up, name="hub look-up", daemon=True)
        thread.start()
        try:
            thread.join(DEADLINE_S)
        finally:
            if not found:
                for unfinished in set(blobs.glob(_UNFINISHED)) - before:
                    unfinished.unlink(missing_ok=True)
    if found:
        return found[0]
    if failed:
        raise HubError(_line(failed[0], repo, revision))
    raise HubError(f"{repo}: the Hub did not answer within {DEADLINE_S:.0f} s; {_INSTEAD}")


class _TooLargeError(Exception):
    """More than any config.json has."""


def _blobs(repo: str) -> Path:
    """Where the library keeps the files of `repo`."""
    from huggingface_hub.constants import HF_HUB_CACHE

    return Path(HF_HUB_CACHE) / f"models--{repo.replace('/', '--')}" / "blobs"


def _download(repo: str, revision: str | None) -> str:
    """The library's download, given up where more arrives than a config.json may have.

    Its progress bar is what sees every piece arrive; releases that take no bar check the length they were told.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils.tqdm import tqdm

    class Bounded(tqdm):
        arrived = 0

        def update(self, n: float | None = 1) -> bool | None:
            self.arrived += int(n or 0)
            if self.arrived > LARGEST_FILE:
                raise _TooLargeError
            return bool(super().update(n))

    options: dict[str, Any] = {"tqdm_class": Bounded} if "tqdm_class" in signature(hf_hub_download).parameters else {}
    return str(hf_hub_download(repo, "config.json", revision=revision, etag_timeout=CONNECT_S, **options))


def _look_up(repo: str, revision: str | None) -> tuple[Path, tuple[str, ...]]:
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError, OfflineModeIsEnabled, RevisionNotFoundError

    try:
        # The download itself answers a dead network with half a minute of retries, this look does not.
        told = get_hf_file_metadata(hf_hub_url(repo, "config.json", revision=revision), timeout=CONNECT_S)
    except (EntryNotFoundError, RevisionNotFoundError):
        raise
    except Exception as error:
        try:
            cached = hf_hub_download(repo, "config.json", revision=revision, local_files_only=True)
        except EntryNotFoundError:
            raise error from None
        if isinstance(error, OfflineModeIsEnabled):
            return Path(cached), ()
        return Path(cached), (f"{repo}: the Hub did not serve it ({type(error).__name__}); its cached copy is read",)
    if told.size is not None and told.size > LARGEST_FILE:
        raise _TooLargeError
    return Path(_download(repo, revision)), ()


def _line(error: Exception, repo: str, revision: str | None) -> str:
    from huggingface_hub import errors

    if isinstance(error, _TooLargeError):
        return f"{repo}: its config.json is larger than {LARGEST_FILE >> 20} MiB; {_INSTEAD}"
    if isinstance(error, errors.LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    if isinstance(error, errors.FileMetadataError):
        return f"{repo}: what answers is no Hub; check HF_ENDPOINT and the proxy, {_INSTEAD}"
    if isinstance(error, errors.HFValidationError):
        return f"{repo}: is not a Hub id; write org/name"
    if isinstance(error, errors.OfflineModeIsEnabled):
        return f"{repo}: HF_HUB_OFFLINE is set and the Hub cache holds no config.json of it; unset it, {_INSTEAD}"
    if isinstance(error, errors.GatedRepoError):
        return f"{repo}: is gated; accept its terms on the Hub and set HF_TOKEN, {_INSTEAD}"
    if isinstance(error, errors.RepositoryNotFoundError):
        return f"{repo}: is no repository of the Hub, or a private one; check the id, set HF_TOKEN, {_INSTEAD}"
    if isinstance(error, errors.RevisionNotFoundError):
        return f"{repo}: has no revision {(revision or 'main')!r}; name a branch, a tag or a commit of it"
    if isinstance(error, errors.EntryNotFoundError):
        return f"{repo}: holds no config.json; {_INSTEAD}"
    if isinstance(error, errors.HfHubHTTPError):
        status = getattr(error.response, "status_code", "an error")
        hint = "check HF_TOKEN, " if status in (401, 403) else ""
        return f"{repo}: the Hub answered {status}; {hint}{_INSTEAD}"
    return f"{repo}: the Hub cannot be reached ({type(error).__name__}); {_INSTEAD}"


@contextmanager
def _silent() -> Iterator[None]:
    """No progress bars, log lines or warnings of the library on the user's terminal."""
    import logging

    from huggingface_hub.utils import logging as library_log
    from huggingface_hub.utils.tqdm import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    verbosity, bars = library_log.get_verbosity(), not are_progress_bars_disabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library_log.set_verbosity(logging.CRITICAL)
        disable_progress_bars()
        try:
            yield
        finally:
            library_log.set_verbosity(verbosity)
            if bars:
                enable_progress_bars()
