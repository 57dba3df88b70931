"""`kvplan check --format sarif`: SARIF 2.1.0, for code scanning and editors."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from glm_kvplan import __version__
from glm_kvplan.answers.check.checking import Checked
from glm_kvplan.show.check_words import meaning, sentence

UNUSABLE = "unusable"
_LEVEL = {"fails": "error", "warns": "warning", "tolerated": "note"}


def document(checked: Sequence[Checked]) -> dict[str, Any]:
    """One run with a result for everything that does not simply hold; tolerated ones are suppressed results."""
    results = []
    for one in checked:
        if one.error is not None:
            results.append(_result(UNUSABLE, "error", one.error, one.path, one.line))
        for finding in one.of(*_LEVEL):
            result = _result(finding.name, _LEVEL[finding.status], sentence(finding), one.path, finding.line)
            if finding.status == "tolerated":
                result["suppressions"] = [{"kind": "inSource", "justification": finding.note}]
            results.append(result)
    rules = sorted({result["ruleId"] for result in results})
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "kvplan",
                        "version": __version__,
                        "rules": [{"id": rule, "shortDescription": {"text": _rule(rule)}} for rule in rules],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }


def _rule(name: str) -> str:
    return "the deployment file can be read and planned" if name == UNUSABLE else meaning(name)


def _result(rule: str, level: str, message: str, path: str, line: int) -> dict[str, Any]:
    place = PurePath(path)
    uri = place.as_uri() if place.is_absolute() else quote(place.as_posix())
    location = {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}}
    return {"ruleId": rule, "level": level, "message": {"text": message}, "locations": [location]}
