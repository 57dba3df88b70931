"""The starts in a text of a vLLM log, for the tests of its reader and of `reconcile`."""

from glm_kvplan.engines.vllm.boot_lines import Boot
from glm_kvplan.engines.vllm.boot_reader import LogReader


def boots_of(text: str) -> list[Boot]:
    reader = LogReader()
    for number, line in enumerate(text.splitlines(), 1):
        reader.read(number, line)
    return reader.boots


def read_boot(text: str) -> Boot:
    """The last start."""
    return boots_of(text)[-1]
