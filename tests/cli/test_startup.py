"""What the start of a short answer loads: not its page, no engine but its own, and none of the heavy libraries.

How long it takes is for `benchmarks/startup.py`: a busy machine says nothing of it. What it loads says most of it.
"""

import subprocess
import sys

import pytest

HEAVY = ("pydantic", "rich", "yaml", "torch", "huggingface_hub", "matplotlib", "pyarrow", "importlib.metadata")
# Of ours and of the standard library: what only a page, a file, a mix of contexts or another engine needs.
UNUSED = (
    *("glm_kvplan.show.page", "glm_kvplan.show.text", "glm_kvplan.show.terminal", "glm_kvplan.show.wrapping"),
    *("glm_kvplan.cli.help", "glm_kvplan.launch.shell", "glm_kvplan.launch.launch_file"),
    *("glm_kvplan.engines.vllm", "glm_kvplan.engines.servers", "glm_kvplan.engines.sglang.moves"),
    *("glm_kvplan.engines.sglang.answers.host_shown", "glm_kvplan.engines.sglang.sizing.host_sizes"),
    *("fractions", "decimal", "shlex", "csv", "http", "email", "xml", "asyncio", "logging", "unittest"),
)
PROBE = """
import sys
from glm_kvplan.cli import main
try:
    main(sys.argv[1:])
except SystemExit as left:
    assert not left.code, left.code
print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("command", "more"),
    [
        # weights are neither estimated nor read for it
        ("estimate --json", ("glm_kvplan.memory.budget", "glm_kvplan.memory.weights", "gzip", "glm_kvplan.contexts")),
        ("solve --gpu h200 --tp-size 8 --json", ()),
    ],
)
def test_an_answer_in_json_loads_nothing_that_it_does_not_need(command: str, more: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-c", PROBE, *command.split()], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "glm_kvplan.show.json" in loaded
    assert loaded.isdisjoint((*HEAVY, *UNUSED, *more))
