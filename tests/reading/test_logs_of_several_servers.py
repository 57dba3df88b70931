"""One log of several servers, as Docker Compose and `kubectl logs --prefix` print it: each has its own starts."""

from itertools import zip_longest
from pathlib import Path

import pytest
from paths import DATA

from glm_kvplan.engines.boot_logs import read_boots
from glm_kvplan.engines.by_name import engine_named

LOGS = DATA / "logs"
SGLANG = [engine_named("sglang")]
PREFIXES = [
    ("prefill-1  | ", "decode-1   | "),
    ("\x1b[36mprefill-1  | \x1b[0m", "\x1b[33mdecode-1   | \x1b[0m"),
    ("[pod/prefill-0/server] ", "[pod/decode-0/server] "),
]


def lines(name: str) -> list[str]:
    return (LOGS / name).read_text(encoding="utf-8").splitlines()


def arguments(path: Path) -> list[dict[str, object]]:
    return [dict(boot.arguments) for boot in read_boots(str(path), SGLANG).boots]


@pytest.mark.parametrize("prefixes", PREFIXES, ids=["compose", "coloured", "kubectl"])
@pytest.mark.parametrize("interleaved", [True, False], ids=["interleaved", "one after the other"])
def test_servers_of_other_arguments_are_read_apart(
    tmp_path: Path, prefixes: tuple[str, str], interleaved: bool
) -> None:
    one, other = lines("example-b-0.5.21.log"), lines("example-a-0.5.21.log")
    first = [prefixes[0] + line for line in one]
    second = [prefixes[1] + line for line in other]
    mixed = [line for pair in zip_longest(first, second) for line in pair if line is not None]
    path = tmp_path / "server.log"
    path.write_text("\n".join(mixed if interleaved else first + second) + "\n", encoding="utf-8")
    boots = read_boots(str(path), SGLANG).boots
    alone = [read_boots(str(LOGS / name), SGLANG).boots[0] for name in ("example-b-0.5.21.log", "example-a-0.5.21.log")]
    assert [boot.arguments for boot in boots] == [boot.arguments for boot in alone]
    assert [boot.ranks for boot in boots] == [boot.ranks for boot in alone]


def test_nodes_of_one_server_stay_together(tmp_path: Path) -> None:
    """Both nodes print the same arguments; each has half of the ranks."""
    whole = lines("example-b-0.5.21.log")
    nodes = [f"node{'TP2' in line or 'TP3' in line:d}-1  | {line}" for line in whole]
    nodes.insert(1, f"node1-1  | {whole[0]}")
    path = tmp_path / "server.log"
    path.write_text("\n".join(nodes) + "\n", encoding="utf-8")
    boots = read_boots(str(path), SGLANG).boots
    assert len(boots) == 1
    assert boots[0].ranks == read_boots(str(LOGS / "example-b-0.5.21.log"), SGLANG).boots[0].ranks
