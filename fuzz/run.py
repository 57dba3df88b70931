"""Coverage-guided fuzzing: `python fuzz/run.py TARGET [corpus folders] [libFuzzer options]`. Needs atheris."""

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent))

with atheris.instrument_imports(include=["glm_kvplan"]):
    import targets
    import watch


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in targets.TARGETS:
        raise SystemExit(f"usage: run.py {'|'.join(targets.TARGETS)} [corpus folders] [libFuzzer options]")
    atheris.Setup([sys.argv[0], *sys.argv[2:]], watch.Watch(name))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
