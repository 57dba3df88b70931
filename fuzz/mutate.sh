#!/bin/sh
# Mutation testing of ledgers/ and sizing/ on a copy of the tree: sh fuzz/mutate.sh FOLDER [PATTERN ...]
# FOLDER is made anew; PATTERN is a file pattern such as glm_kvplan/engines/sglang/sizing/solver.py. Needs `pip install mutmut`.
# TESTS="tests/test_a.py tests/test_b.py" are the tests that judge; the fewer and faster, the sooner it ends.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
copy=$1
shift
[ $# -gt 0 ] || set -- "glm_kvplan/ledgers/*" glm_kvplan/engines/sglang/sizing/solver.py glm_kvplan/engines/sglang/sizing/rank_costs.py \
    glm_kvplan/engines/sglang/sizing/binding_limits.py glm_kvplan/engines/sglang/sizing/workload_cost.py
[ ! -e "$copy" ] || { echo "$copy exists; name a new folder" >&2; exit 2; }
mkdir -p "$copy"
cd "$root"
cp -R glm_kvplan tests fuzz examples docs benchmarks README.md LICENSE pyproject.toml "$copy"
cd "$copy"
find . -name __pycache__ -prune -exec rm -rf {} +

# Few examples, always the same ones, and none remembered: a mutant's verdict must not depend on luck.
cat > tests/conftest.py <<'END'
from hypothesis import HealthCheck, settings

settings.register_profile(
    "mutants",
    database=None,
    deadline=None,
    max_examples=20,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("mutants")
END

only=$(printf '"%s", ' "$@")
tests=$(printf '"%s", ' ${TESTS:-tests/engines/sglang/test_ledgers.py tests/engines/sglang/test_locations.py tests/engines/sglang/test_costs.py tests/engines/sglang/test_limits.py \
    tests/engines/sglang/test_sizing_edges.py tests/engines/sglang/test_article.py tests/engines/sglang/test_attribution.py tests/engines/sglang/test_sizing.py \
    tests/engines/sglang/test_memory_map.py tests/engines/sglang/test_properties.py tests/engines/sglang/test_host.py tests/engines/sglang/test_host_fit.py})
cat >> pyproject.toml <<END

[tool.mutmut]
source_paths = ["glm_kvplan"]
only_mutate = [$only]
also_copy = ["examples", "docs", "benchmarks", "fuzz", "README.md"]
pytest_add_cli_args = ["-p", "no:cacheprovider", "-n", "0"]
pytest_add_cli_args_test_selection = [$tests]
use_git_change_detection = false
timeout_multiplier = 4
END
mutmut run --max-children "${JOBS:-1}"
mutmut results --all true | sed 's/.*: //' | sort | uniq -c
