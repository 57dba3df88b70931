"""Where `kvplan` and `python -m glm_kvplan` begin: signals end it in one way, also while modules are imported."""

import os
import sys

try:
    import signal
except KeyboardInterrupt:
    os._exit(130)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

INTERRUPTED, TERMINATED = 130, 143  # what a shell reports of a program that SIGINT or SIGTERM ended

_ended_by: list[int] = []


def main() -> None:
    """Run `kvplan` as a process. Exit code: that of `cli.main`, 130 after SIGINT, 143 after SIGTERM.

    A signal that whoever started the process has switched off stays off.
    """
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _unwind)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        from glm_kvplan.cli import main as run

        run()
    except KeyboardInterrupt:  # before a command runs
        sys.exit(INTERRUPTED)
    except Exception:
        if not _ended_by:
            raise
        sys.exit(_ended_by[0])  # compiled code made an error of its own of what the signal raised
    finally:
        if signal.getsignal(signal.SIGINT) is _interrupt:
            signal.signal(signal.SIGINT, _leave)


def _interrupt(number: int, frame: "FrameType | None") -> None:
    _ended_by.append(INTERRUPTED)
    raise KeyboardInterrupt


def _unwind(number: int, frame: "FrameType | None") -> None:
    """Every frame cleans up: unfinished files go, memory is freed."""
    _ended_by.append(TERMINATED)
    sys.exit(TERMINATED)


def _leave(number: int, frame: "FrameType | None") -> None:
    """The answer is given, and nothing is open any more."""
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
