"""`kvplan check --format json` (schema: docs/json.md)."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from glm_kvplan import __version__
from glm_kvplan.answers.check.checking import Checked
from glm_kvplan.answers.check.findings import Finding
from glm_kvplan.show.plan_json import plan_document


def document(checked: Sequence[Checked], exit_code: int) -> dict[str, Any]:
    """Every file with its findings; `exit_code` is the command's."""
    return {
        "schema": "glm-kvplan/check",
        "schema_version": 1,
        "kvplan": __version__,
        "exit_code": exit_code,
        "files": [_file(one) for one in checked],
    }


def _file(one: Checked) -> dict[str, Any]:
    found: dict[str, Any] = {
        "path": one.path,
        "verdict": one.verdict,
        "error": None if one.error is None else {"line": one.line, "message": one.error},
        "source": one.file.source if one.file is not None else None,
        "plan": None if one.plan is None else plan_document(one.plan),
        "sizes": None,
        "certainty": None,
        "findings": [_finding(finding) for finding in one.found],
        "notes": list(one.notes),
    }
    if one.answer is not None and one.answer.failure is None:
        answer = one.answer
        found["sizes"] = answer.solution.sizes._asdict()
        found["certainty"] = answer.budget.certainty
    return found


def _finding(finding: Finding) -> dict[str, Any]:
    changes = [
        {**change._asdict(), "flags": dict(change.flags), "then_short": list(change.then_short), "text": change.text}
        for change in finding.changes
    ]
    return {**asdict(finding), "changes": changes}
