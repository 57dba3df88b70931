"""The fields of an answer's JSON, read from its type, and the tables of docs/json.md that name them.

`python tests/show/json_fields.py` writes the tables anew: a row a field, with its type; what it means stays as written.
"""

import re
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from paths import ROOT

DOCUMENT = ROOT / "docs" / "json.md"
MISSING = "(no meaning yet)"
_TABLE = re.compile(r"(?ms)^<!-- fields of (.+?) -->\n\n(.*?)(?=\n\n|\Z)")
_ROW = re.compile(r"(?m)^\| `([^`]+)` \| [^|]* \| (.*) \|$")


class Field(NamedTuple):
    """`path` is how one gets there: `stages[].ledgers[].name`; `kind` its type in JSON's words."""

    path: str
    kind: str


def sections() -> dict[str, Any]:
    """The types by the heading that documents them."""
    from glm_kvplan.answers.check.check_answer import CheckAnswer
    from glm_kvplan.answers.diff.base_answer import BaseAnswer
    from glm_kvplan.answers.diff.diff_answer import DiffAnswer
    from glm_kvplan.answers.engines_answer import EnginesAnswer
    from glm_kvplan.answers.sweep.sweep_answer import SweepAnswer
    from glm_kvplan.engines.answer_head import Head
    from glm_kvplan.engines.changes import Change
    from glm_kvplan.engines.explanation import ExplainAnswer, TopicsAnswer
    from glm_kvplan.engines.fleet_values import FleetAnswer, FleetShown
    from glm_kvplan.engines.resolved_flags import ResolveAnswer
    from glm_kvplan.engines.sglang.answers.advise_answer import AdviseAnswer
    from glm_kvplan.engines.sglang.answers.estimate_answer import EstimateAnswer
    from glm_kvplan.engines.sglang.answers.explain_answer import PlacesAnswer
    from glm_kvplan.engines.sglang.answers.host_shown import HostShown
    from glm_kvplan.engines.sglang.answers.map_shown import MapShown
    from glm_kvplan.engines.sglang.answers.model_answer import ModelAnswer
    from glm_kvplan.engines.sglang.answers.overrun_shown import OverrunShown
    from glm_kvplan.engines.sglang.answers.pools_answer import PoolsAnswer
    from glm_kvplan.engines.sglang.answers.reconcile_answer import ReconcileAnswer
    from glm_kvplan.engines.sglang.answers.release_comparison import EngineComparison
    from glm_kvplan.engines.sglang.answers.solve_answer import SolveAnswer
    from glm_kvplan.engines.sglang.answers.validate_answer import ValidateAnswer
    from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
    from glm_kvplan.engines.sglang.sizing.binding_limits import Limit
    from glm_kvplan.engines.tensors_shown import TensorShown
    from glm_kvplan.engines.vllm.answers.advise_answer import AdviseAnswer as VllmAdviseAnswer
    from glm_kvplan.engines.vllm.answers.estimate_answer import EstimateAnswer as VllmEstimateAnswer
    from glm_kvplan.engines.vllm.answers.pools_answer import PoolsAnswer as VllmPoolsAnswer
    from glm_kvplan.engines.vllm.answers.reconcile_answer import ReconcileAnswer as VllmReconcileAnswer
    from glm_kvplan.engines.vllm.answers.solve_answer import SolveAnswer as VllmSolveAnswer
    from glm_kvplan.engines.vllm.answers.validate_answer import ValidateAnswer as VllmValidateAnswer
    from glm_kvplan.memory.budget import MemoryBudget
    from glm_kvplan.memory.gpu_list import GpusAnswer

    return {
        "Common head": Head,
        "sizes": PoolSizes,
        "memory": MemoryBudget,
        "memory_map": MapShown,
        "limit": Limit,
        "tensor": TensorShown,
        "change": Change,
        "estimate": EstimateAnswer,
        "estimate of vLLM": VllmEstimateAnswer,
        "solve": SolveAnswer,
        "solve of vLLM": VllmSolveAnswer,
        "host": HostShown,
        "decode_overrun": OverrunShown,
        "advise": AdviseAnswer,
        "advise of vLLM": VllmAdviseAnswer,
        "advise --gpus": FleetAnswer,
        "a layout": FleetShown,
        "pools": PoolsAnswer,
        "pools of vLLM": VllmPoolsAnswer,
        "validate": ValidateAnswer,
        "validate of vLLM": VllmValidateAnswer,
        "resolve": ResolveAnswer,
        "info": TopicsAnswer,
        "info model": ModelAnswer,
        "info engines": EnginesAnswer,
        "info engines A B": EngineComparison,
        "info gpus": GpusAnswer,
        "check": CheckAnswer,
        "diff": DiffAnswer,
        "diff --base": BaseAnswer,
        "sweep": SweepAnswer,
        "reconcile": ReconcileAnswer,
        "reconcile of vLLM": VllmReconcileAnswer,
        "explain": ExplainAnswer,
        "explain, where": PlacesAnswer,
        "explain, topics": TopicsAnswer,
    }


def inner_values() -> tuple[Any, ...]:
    """The engine's own numbers, of which the page speaks as a whole."""
    from glm_kvplan.engines.sglang.profile import EngineProfile
    from glm_kvplan.engines.sglang.sizing.rank_costs import Costs

    return (Costs, EngineProfile)


def fields_of(kind: Any) -> list[Field]:
    """Every field of a type, those of the objects in it too; what has a section of its own is named once."""
    apart = {id(each) for each in (*sections().values(), *inner_values()) if each is not kind}
    return list(_fields(kind, "", apart))


def _fields(kind: Any, path: str, apart: set[int]) -> Iterator[Field]:
    for name, hint in _members(kind):
        if name == "head":
            if hint is not sections()["Common head"]:
                yield from _fields(hint, path, set())
            continue
        here = f"{path}{'bytes' if name == 'nbytes' else name}"
        yield Field(here, _kind(hint))
        inner, suffix = _inner(hint, "")
        if inner is not None and id(inner) not in apart:
            yield from _fields(inner, f"{here}{suffix}.", apart)


def _members(kind: Any) -> Iterator[tuple[str, Any]]:
    from glm_kvplan.contexts import Contexts
    from glm_kvplan.engines.sglang.answers.host_shown import HostShown

    later = {"Contexts": Contexts, "HostShown": HostShown}  # loaded by those answers alone that hold one
    hints = get_type_hints(kind, {**later, **vars(sys.modules[kind.__module__])})
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else kind._fields
    return ((name, hints[name]) for name in names)


def _inner(hint: Any, suffix: str) -> tuple[Any, str]:
    """The object within, and `[]` for every list around it."""
    if _is_object(hint):
        return hint, suffix
    if get_origin(hint) in (Union, types.UnionType):
        for part in get_args(hint):
            found, again = _inner(part, suffix)
            if found is not None:
                return found, again
    if get_origin(hint) in (tuple, list):
        return _inner(get_args(hint)[0], f"{suffix}[]")
    return None, suffix


def _is_object(hint: Any) -> bool:
    if not isinstance(hint, type) or hint.__name__ == "Said":
        return False
    return is_dataclass(hint) or (issubclass(hint, tuple) and hasattr(hint, "_fields"))


def _kind(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return "string"
    if origin in (Union, types.UnionType):
        found = list(dict.fromkeys(_kind(part) for part in parts))
        return " or ".join(sorted(found, key="null".__eq__))
    if origin in (tuple, list):
        return "list"
    if _is_object(hint) or origin is Mapping or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return "object"
    if getattr(hint, "_is_protocol", False):  # an engine's own values
        return "object"
    known = {int: "int", float: "number", bool: "bool", str: "string", range: "list", type(None): "null"}
    return known.get(hint, "string" if getattr(hint, "__name__", "") == "Said" else "any")


def documented(text: str) -> dict[str, dict[str, str]]:
    """The meaning of every field by section and path."""
    return {title: dict(_ROW.findall(table)) for title, table in _TABLE.findall(text)}


def rewritten(text: str) -> str:
    """The text with its tables made anew."""
    known = documented(text)

    def table(found: re.Match[str]) -> str:
        title = found[1]
        lines = [f"<!-- fields of {title} -->", "", "| field | type | meaning |", "| --- | --- | --- |"]
        for field in fields_of(sections()[title]):
            lines.append(f"| `{field.path}` | {field.kind} | {known[title].get(field.path, MISSING)} |")
        return "\n".join(lines)

    return _TABLE.sub(table, text)


if __name__ == "__main__":
    DOCUMENT.write_text(rewritten(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
