"""The terminal's memory map at every width: nothing wider than the terminal, no figure cut, bars to scale."""

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from running import kvplan

from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.answers.map_chart import map_stack
from glm_kvplan.engines.sglang.answers.map_shown import show_map
from glm_kvplan.engines.sglang.components import tensor_specs
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.rank import rank_of
from glm_kvplan.engines.sglang.sizing.memory_map import MemoryMap
from glm_kvplan.engines.sglang.sizing.pool_map import REST, pool_map
from glm_kvplan.engines.sglang.sizing.start import boot
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.said import ENGLISH
from glm_kvplan.show.terminal import Piece, Screen
from glm_kvplan.show.text_bars import bar_lines, legend
from glm_kvplan.show.wrapping import width_of, wrap
from glm_kvplan.tensor import device_bytes

KVPLAN = str(Path(sys.executable).parent / "kvplan")
WIDTHS = range(40, 201)
FIGURE = re.compile(r"~?-?\d+\.\d+ (?:GiB|MiB|KiB)")
PLANS: dict[str, tuple[dict[str, Any], str, MemoryGiven]] = {
    "plain": ({"tp_size": 8}, "h200", MemoryGiven()),
    "speculative": ({"tp_size": 4, "speculative_algorithm": "NEXTN"}, "b200", MemoryGiven()),
    "measured": ({"tp_size": 4}, "b200", MemoryGiven(176.25, 130.0)),
    "pools over": ({"tp_size": 4, "mem_fraction_static": 0.999}, "b200", MemoryGiven(176.25, 130.0)),
}


def map_of(name: str) -> MemoryMap:
    flags, gpu, given = PLANS[name]
    drawn = boot(plan(flags, gpu=gpu), given).map
    assert drawn is not None
    return drawn


def drawn(memory: MemoryMap, width: int, plain: bool) -> list[list[Piece]]:
    """The lines of the bars, without the legend."""
    stack = map_stack(show_map(memory))
    return bar_lines(stack, Screen(io.StringIO(), width, False, plain), ENGLISH)[: -legend_lines(memory, width)]


def legend_lines(memory: MemoryMap, width: int) -> int:
    return len(wrap(legend(map_stack(show_map(memory)), ENGLISH), width))


def text_of(line: list[Piece]) -> str:
    return "".join(text for text, _ in line)


@pytest.mark.parametrize("plain", [False, True], ids=["blocks", "ascii"])
@pytest.mark.parametrize("name", PLANS)
def test_every_width(name: str, plain: bool) -> None:
    memory = map_of(name)
    for width in WIDTHS:
        lines = drawn(memory, width, plain)
        text = "\n".join(map(text_of, lines))
        assert all(width_of(text_of(line)) <= width for line in lines), width
        assert len(FIGURE.findall(text)) == len(memory.segments), width
        for segment in memory.segments:
            assert segment.name in text
        assert plain is False or text.isascii()


@pytest.mark.parametrize("name", PLANS)
def test_bars_are_to_scale(name: str) -> None:
    """A bar is as long as its segment's share of the whole, to half an eighth of a cell; in ASCII to half a cell."""
    memory = map_of(name)
    for width in (80, 137, 200):
        room = min(100, width - max(len(line[0][0]) for line in drawn(memory, width, False)))
        for plain, cell in ((False, 0.125), (True, 1.0)):
            for segment, line in zip(memory.segments, drawn(memory, width, plain), strict=True):
                length = sum(1 if mark in "█#" else (" ▏▎▍▌▋▊▉".index(mark)) / 8 for mark in line[1][0])
                assert abs(length - max(0, segment.nbytes) / memory.total * room) <= cell / 2 + 1e-9


def test_marks() -> None:
    def said(name: str) -> str:
        return legend(map_stack(show_map(map_of(name))), ENGLISH)

    assert said("measured") == "179.06 GiB in all; * outside the engine's budget"
    assert said("plain") == "140.40 GiB in all; * outside the engine's budget; ~ estimated"
    (text, _), (bar, look) = drawn(map_of("pools over"), 80, True)[-1]
    assert text.startswith("free ") and " -" in text and look == "alarm" and not bar


@pytest.mark.parametrize("gpu", [None, "h200"])
def test_pools_alone(gpu: str | None) -> None:
    """`estimate` draws the pools: their sum where no card is named, the card's memory where one is."""
    sizes = PoolSizes(8388608, 320, 64)
    made = plan({"tp_size": 8, "speculative_algorithm": "NEXTN"}, gpu=gpu)
    memory = pool_map(made, rank_of(made), sizes, 7)
    pools = device_bytes(tensor_specs(rank_of(made), sizes)) + 7
    assert sum(segment.nbytes for segment in memory.segments) == memory.total
    assert memory.total == (pools if gpu is None else 143771 << 20)
    assert memory.pools == pools
    assert (memory.segments[-1].name == REST) == (gpu is not None)


def shell(command: str, **environment: str) -> str:
    variables = {**os.environ, "NO_COLOR": "1", "PYTHONUTF8": "1", **environment}
    done = subprocess.run([KVPLAN, *command.split()], env=variables, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.parametrize("command", ["estimate --tp-size 8 --gpu h200 --all", "solve --tp-size 8 --gpu h200 --all"])
@pytest.mark.parametrize("width", [40, 67, 200])
def test_commands_keep_to_the_width(command: str, width: int) -> None:
    done = kvplan(*command.split(), COLUMNS=str(width))
    assert max(map(len, done.stdout.splitlines())) <= width
    assert done.returncode == 0 and "140.40 GiB in all" in done.stdout


def test_an_encoding_without_blocks() -> None:
    text = shell("solve --tp-size 8 --gpu h200 --all", COLUMNS="80", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert text.isascii() and "#####" in text


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_dumb_terminal() -> None:
    """A terminal that calls itself dumb gets ASCII at its own width; in a pipe TERM means nothing."""
    main, other = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "52", "LINES": "99"}
    process = subprocess.Popen(
        [KVPLAN, "solve", "--gpu", "h200", "--tp-size", "8", "--all"], stdout=other, env=environment
    )
    os.close(other)
    parts = []
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # the other end has closed
            break
        if not part:
            break
        parts.append(part)
    os.close(main)
    assert process.wait(60) == 0
    lines = b"".join(parts).decode().split("\r\n")
    assert max(map(len, lines)) <= 52
    assert any("####" in line for line in lines)
    assert all(line.isascii() for line in lines)
    assert "█" in shell("solve --gpu h200 --tp-size 8 --all", TERM="dumb")
