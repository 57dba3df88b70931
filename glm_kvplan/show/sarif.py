"""SARIF 2.1.0, for code scanning and editors."""

from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from glm_kvplan.show.judged import Judged, JudgedFiles, Place
from glm_kvplan.show.printable import sarif as plain

_LEVELS = {"unusable": "error", "fails": "error", "warns": "warning", "tolerated": "note"}


def sarif(judged: JudgedFiles) -> dict[str, Any]:
    """One run with a result for everything that does not simply hold; tolerated ones are suppressed results."""
    results = [_result(file.path, found) for file in judged.files for found in file.found if found.status in _LEVELS]
    rules = sorted({result["ruleId"] for result in results})
    meanings = [{"id": rule, "shortDescription": {"text": judged.meanings[rule]}} for rule in rules]
    driver = {"name": judged.tool.partition(" ")[0], "version": judged.version, "rules": meanings}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }


def _result(path: str, found: Judged) -> dict[str, Any]:
    own = Place(path, found.line)
    result: dict[str, Any] = {
        "ruleId": found.rule,
        "level": _LEVELS[found.status],
        "message": {"text": plain(found.sentence)},
        "locations": [_location(found.cause or own)],
    }
    if found.cause is not None:
        result["relatedLocations"] = [{**_location(own), "message": {"text": "the deployment file"}}]
    if found.status == "tolerated":
        result["suppressions"] = [{"kind": "inSource", "justification": found.reason}]
    return result


def _location(at: Place) -> dict[str, Any]:
    path = PurePath(at.path)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": at.line}}}
