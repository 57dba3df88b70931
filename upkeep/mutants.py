"""Draws random small mistakes in the package and sees whether the tests that are in charge notice.

    python upkeep/mutants.py resolve --count 40 --seed 1
    python upkeep/mutants.py resolve --file glm_kvplan/engines/sglang/resolve/attention.py --line 237

A mutant is one change of one expression: a comparison, a constant, a truth value, an operator, a call left out. No
file of the package is written. All tests are collected once and run once, to see which test calls which function; then
each mutant of a function is put in place in a fork, and the tests that call the function run, until the first failure.
A mutant outside of any function is judged in a fork that imports anew, first by the test files that call its file.
What survives is held against the types, as every push is. The survivors by kind are printed, and the score of each
part. A survivor is a missing test, or no mistake at all: docs/contributing/mutants.md says how to tell.
"""

import argparse
import gc
import importlib.machinery
import io
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import redirect_stderr, redirect_stdout
from functools import _lru_cache_wrapper, partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

from mutant_finder import ROOT, Mutant, drawn, mutants_of
from mutant_parts import OWN_CLASSES, PARTS

# Imported before the forks; nothing of the package is.
PRELOADED = ("_pytest.assertion.rewrite", "hypothesis", "pydantic", "rich.console", "yaml", "typer", "numpy")
OPTIONS = ["-q", "-n", "0", "-p", "no:cacheprovider", "--no-header"]
MEMORY = 6 << 30  # bytes that a mutant may take
TYPES = ".mypy_cache/mutants"

Function = tuple[str, int]  # file and first line


def _imported_anew(mutant: Mutant) -> None:
    """Let the import of the mutant's file give the mutant."""
    usual = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: importlib.machinery.SourceFileLoader, name: str) -> CodeType | None:
        if Path(self.path) == mutant.path:
            return compile(mutant.text, self.path, "exec")
        return usual(self, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


def _codes(code: CodeType) -> list[CodeType]:
    return [code, *(inner for one in code.co_consts if isinstance(one, CodeType) for inner in _codes(one))]


def _put_in_place(mutant: Mutant) -> None:
    """Give the functions of the mutant's file the mutant's code: those imported already, and a later import's."""
    _imported_anew(mutant)
    path = str(mutant.path)
    new = {(one.co_qualname, one.co_firstlineno): one for one in _codes(compile(mutant.text, path, "exec"))}
    gc.unfreeze()  # the command line and the tests freeze what was imported, and frozen objects are not listed
    for function in [one for one in gc.get_objects() if isinstance(one, FunctionType)]:
        code = function.__code__
        if code.co_filename == path and (found := new.get((code.co_qualname, code.co_firstlineno))) is not None:
            function.__code__ = found


def _limits(seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def _verdict(child: int) -> str:
    return {0: "survived", 1: "killed", 3: "broken"}.get(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "endless")


def _forget(*folders: str) -> None:
    """Empty every cache of these folders: what a file's tests ask for, one of them is seen to call."""
    for module in list(sys.modules.values()):
        if (getattr(module, "__file__", None) or "").startswith(tuple(str(ROOT / folder) for folder in folders)):
            for one in list(vars(module).values()):
                if isinstance(one, _lru_cache_wrapper):
                    one.cache_clear()


class Survey:
    """Which tests call which function, and how long each test takes."""

    def __init__(self) -> None:
        self.callers: dict[Function, set[str]] = defaultdict(set)
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.last = ""  # the file of the last test

    def files(self, budget: float = float("inf")) -> list[str]:
        """The test files, the quickest first; the slowest go beyond the budget."""
        totals: dict[str, float] = defaultdict(float)
        for name, seconds in self.seconds.items():
            totals[name.split("::")[0]] += seconds
        order = sorted(totals, key=totals.__getitem__)
        while len(order) > 1 and sum(totals[name] for name in order) > budget:
            order.pop()
        return order

    def near(self, path: Path) -> set[str]:
        """The test files that call any function of this file."""
        callers = [tests for (file, _), tests in self.callers.items() if file == str(path)]
        return {name.split("::")[0] for tests in callers for name in tests}

    def chosen(self, path: Path, callers: set[str], budget: float) -> dict[str, int]:
        """The tests in the order they run in: the callers, then what may have their answers from a cache, the other
        tests of their files. Of the callers, those of the same part of the house first, and three times as many. Those
        of the quickest file first; the slowest go beyond the budget.
        """
        parts = path.relative_to(ROOT / "glm_kvplan").parts
        own = f"tests/{'/'.join(parts[: 2 if parts[0] == 'engines' else 1])}/"
        close = {name for name in callers if name.startswith(own)}
        files = {file: place for place, file in enumerate(self.files())}
        calling = {name.split("::")[0] for name in callers}
        others = {name for name in self.seconds if name.split("::")[0] in calling}.difference(callers, self.failed)
        order: list[str] = []
        for names, most in ((close, 3 * budget), (callers - close, budget), (others, budget)):
            within, kept = 0.0, set()
            for name in sorted(names, key=lambda name: self.seconds[name]):
                within += self.seconds[name]
                if within > most and kept:
                    break
                kept.add(name)
            order += sorted(kept, key=lambda name: (files[name.split("::")[0]], self.seconds[name], name))
        return {name: place for place, name in enumerate(order)}

    def watch(self, name: str, run: Any) -> None:
        """Run `run` and keep what it calls under this name."""
        seen: set[CodeType] = set()
        package = str(ROOT / "glm_kvplan")

        def called(frame: FrameType, event: str, argument: object) -> None:
            code = frame.f_code
            if code not in seen:
                seen.add(code)
                if code.co_filename.startswith(package):
                    self.callers[(code.co_filename, code.co_firstlineno)].add(name)

        if name.split("::")[0] != self.last:
            self.last = name.split("::")[0]
            _forget("glm_kvplan", "tests")
        began = time.process_time()
        sys.settrace(called)
        try:
            run()
        finally:
            sys.settrace(None)
        self.seconds[name] = time.process_time() - began


class Judge:
    """Pytest's loop over the tests, replaced: the survey, then each mutant in a fork. Verdicts go into a pipe."""

    def __init__(self, mutants: list[Mutant], survey: Survey | None, seconds: int, budget: float, out: Any) -> None:
        self.mutants, self.survey, self.seconds, self.budget, self.out = mutants, survey, seconds, budget, out

    def pytest_collection(self) -> None:
        from hypothesis import HealthCheck, settings

        settings.register_profile(  # a verdict must not depend on luck
            "mutants", database=None, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
        )
        settings.load_profile("mutants")

    def _run(self, session: Any, items: list[Any]) -> None:
        for item, after in zip(items, [*items[1:], None], strict=True):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if session.testsfailed:
                break

    def _survey(self, session: Any) -> Survey:
        read, write = os.pipe()
        if not os.fork():
            os.close(read)
            survey = Survey()
            for item, after in zip(session.items, [*session.items[1:], None], strict=True):
                before = session.testsfailed
                survey.watch(
                    item.nodeid,
                    partial(session.config.hook.pytest_runtest_protocol, item=item, nextitem=after),
                )
                survey.failed += [item.nodeid] if session.testsfailed > before else []
            with os.fdopen(write, "wb") as pipe:
                pickle.dump(survey, pipe)
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            survey = pickle.load(pipe)
        os.wait()
        return survey

    def pytest_runtestloop(self, session: Any) -> bool:
        """Judge every mutant of a function."""
        survey = self.survey or self._survey(session)
        pickle.dump(survey, self.out)
        self.out.flush()
        for mutant in self.mutants:
            callers = survey.callers.get((str(mutant.path), mutant.function), set()).difference(survey.failed)
            chosen = survey.chosen(mutant.path, callers, self.budget)
            items = sorted((one for one in session.items if one.nodeid in chosen), key=lambda one: chosen[one.nodeid])
            if not items:  # only the import calls it: judged anew
                continue
            child = os.fork()
            if not child:
                code = 1
                try:
                    _limits(self.seconds)
                    _put_in_place(mutant)
                    _forget("glm_kvplan")  # the collection of the tests has asked for some of it
                    self._run(session, items)
                    code = 1 if session.testsfailed else 0
                except SyntaxError:
                    code = 3
                finally:
                    os._exit(code)
            pickle.dump((mutant, _verdict(child), len(items)), self.out)
            self.out.flush()
        return True


def _pytest(arguments: list[str], plugins: list[Any]) -> int:
    import pytest

    with redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
        status = pytest.main([*OPTIONS, *arguments], plugins=plugins)
    return int(status)


def _judged_anew(mutant: Mutant, tests: list[str], seconds: int) -> str:
    """The verdict of all these tests in a fork that imports the mutant."""
    child = os.fork()
    if not child:
        code = 1
        try:
            _limits(seconds)
            _imported_anew(mutant)
            code = 0 if _pytest(["-x", *tests], []) == 0 else 1
        except SyntaxError:
            code = 3
        finally:
            os._exit(code)
    return _verdict(child)


def _mistyped(mutant: Mutant) -> bool:
    """Whether mypy, as CI runs it, sees the mutant; it is shown the mutant's text in the file's place."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as shadow:
        shadow.write(mutant.text)
        shadow.flush()
        command = [sys.executable, "-m", "mypy", "--shadow-file", str(mutant.path), shadow.name, "-p", "glm_kvplan"]
        return subprocess.run([*command, "--cache-dir", TYPES], capture_output=True).returncode == 1


def judge(
    mutants: list[Mutant], tests: list[str], survey: Survey | None, seconds: int, budget: float, kept_in: Path | None
) -> tuple[Survey, list[tuple[Mutant, str]]]:
    """Each mutant with its verdict, printed as it falls. The survey is kept before the first of them. A test that fails
    in it (one that measures time, for it is traced) judges no mutant of a function.
    """
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        with os.fdopen(write, "wb") as pipe:
            _pytest(tests, [Judge([one for one in mutants if one.function], survey, seconds, budget, pipe)])
        os._exit(0)
    os.close(write)
    verdicts: list[tuple[Mutant, str]] = []

    def keep(mutant: Mutant, verdict: str, of: str) -> None:
        if verdict == "survived" and _mistyped(mutant):
            verdict = "mistyped"
        verdicts.append((mutant, verdict))
        print(f"  {verdict:8} {mutant.shown} ({of})", flush=True)

    with os.fdopen(read, "rb") as pipe:
        survey = pickle.load(pipe)
        assert isinstance(survey, Survey)
        if kept_in is not None:
            kept_in.write_bytes(pickle.dumps(survey))
        print(f"{len(survey.seconds)} tests, {sum(survey.seconds.values()):.0f} s", flush=True)
        if survey.failed:
            print(f"left out, for they fail without any mutant: {' '.join(survey.failed)}", flush=True)
        while True:
            try:
                mutant, verdict, count = pickle.load(pipe)
            except EOFError:
                break
            keep(mutant, verdict, f"{count} tests")
    os.waitpid(child, 0)
    for mutant in mutants:
        if mutant not in {one for one, _ in verdicts}:  # outside of a function, or in one that only the import calls
            files, near = survey.files(8 * budget), survey.near(mutant.path)
            verdict = "survived"
            for some in ([one for one in files if one in near], [one for one in files if one not in near]):
                if some and verdict == "survived":
                    verdict = _judged_anew(mutant, some, 8 * seconds)
            keep(mutant, verdict, f"{len(files)} files")
    return survey, verdicts


def main() -> int:
    """Exit code 0; the score is what is printed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"any of {', '.join(PARTS)}; all without any")
    parser.add_argument("--count", type=int, default=40, help="mutants a part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=120, help="of CPU for one mutant's tests")
    parser.add_argument("--budget", type=float, default=30, help="seconds of tests a mutant gets, the quickest first")
    parser.add_argument("--survey", type=Path, help="which test calls what: read from this file, or kept in it")
    parser.add_argument("--file", type=Path, help="mutants of this file only, all of them")
    parser.add_argument("--line", type=int, help="with --file: of this line only")
    parser.add_argument("--tests", nargs="*", default=[], help="these tests judge, instead of all")
    asked = parser.parse_args()
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT)]
    sys.dont_write_bytecode = True
    for name in PRELOADED:
        try:
            __import__(name)
        except ImportError:
            continue
    verdicts: dict[str, list[tuple[Mutant, str]]] = {}
    survey: Survey | None = None
    if asked.survey is not None and asked.survey.exists():
        survey = pickle.loads(asked.survey.read_bytes())
    for part in asked.parts or PARTS:
        others = () if part == "own_classes" else OWN_CLASSES
        mutants = drawn(PARTS[part], others, asked.count, asked.seed)
        if asked.file is not None:
            mutants = [one for one in mutants_of(asked.file.resolve()) if asked.line in (None, one.line)]
        print(part, flush=True)
        survey, verdicts[part] = judge(mutants, asked.tests, survey, asked.seconds, asked.budget, asked.survey)
    for part, judged in verdicts.items():
        counts = Counter(verdict for _, verdict in judged)
        total = len(judged) - counts["broken"]
        print(f"{part}: {total - counts['survived']} of {total} noticed, {counts['mistyped']} of them by types alone")
    left = Counter(one.kind for judged in verdicts.values() for one, verdict in judged if verdict == "survived")
    for kind, number in left.most_common():
        print(f"survivors, {kind}: {number}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
