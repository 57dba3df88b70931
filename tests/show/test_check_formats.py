"""The output formats of `kvplan check`, read back by parsers that are not ours."""

import json
import re
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from glm_kvplan.answers.check.check_answer import CheckAnswer, answer_check
from glm_kvplan.answers.check.check_page import check_page
from glm_kvplan.answers.check.checking import Checked, check_files
from glm_kvplan.answers.check.finding_words import judged
from glm_kvplan.show.github import github_lines
from glm_kvplan.show.json import document as json_document
from glm_kvplan.show.junit import junit
from glm_kvplan.show.markdown import markdown
from glm_kvplan.show.sarif import sarif

FILES = {
    "falls short, 100%.kvplan.yaml": (
        "gpu: B200\nflags: {tp_size: 4, speculative_algorithm: EAGLE, max_running_requests: 200}\n"
        "memory: {pre_gib: 177.0, available_gib: 126.0}\nexpect:\n  min_total_tokens: 9000000\n"
        "  max_running_requests: 200\n  tolerate: {max_running_requests: 'a | b <c>'}\n"
    ),
    "holds.kvplan.yaml": "gpu: B200\nflags: {tp_size: 4}\n",
    "unusable.kvplan.yaml": "gpu: B200\nflgs: 1\n",
}


@pytest.fixture
def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CheckAnswer:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return answer_check(check_files(list(FILES)))


_COMMAND = re.compile(r"::(error|warning) file=([^,:]*),line=(\d+),title=([^,:]*)::(.*)")


def test_github_annotations_parse_and_point_at_their_lines(checked: CheckAnswer) -> None:
    *commands, summary = github_lines(judged(checked))
    found = [match.groups() for line in commands if (match := _COMMAND.fullmatch(line))]
    assert len(found) == len(commands)
    places = {(level, unquote(path), int(line), title) for level, path, line, title, _ in found}
    assert ("error", "falls short, 100%.kvplan.yaml", 5, "min_total_tokens falls short") in places
    assert ("error", "unusable.kvplan.yaml", 2, "unusable deployment file") in places
    message = next(unquote(text) for _, _, _, title, text in found if title.startswith("min_total_tokens"))
    assert "wanted 9,000,000 tokens, comes out" in message and "; would hold with --" in message
    assert summary.startswith("3 files: 1 holds, 1 falls short, 1 unusable")


def test_junit_counts_add_up(checked: CheckAnswer) -> None:
    root = ElementTree.fromstring(junit(judged(checked)))
    assert root.tag == "testsuites"
    assert [suite.get("name") for suite in root] == list(FILES)
    cases = root.findall("testsuite/testcase")
    counted = {tag: len(root.findall(f"testsuite/testcase/{tag}")) for tag in ("failure", "error", "skipped")}
    assert counted == {"failure": 1, "error": 1, "skipped": 1}
    totals = [root.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert totals == [str(len(cases)), "1", "1", "1"]
    failed = next(case for case in cases if case.find("failure") is not None)
    assert (failed.get("name"), failed.get("line")) == ("min_total_tokens", "5")


def test_junit_survives_characters_that_xml_has_not() -> None:
    checked = answer_check([Checked(path="a\x1b[31m.yaml", error="bad \x00 \ufffe & < 'text'")])
    case = ElementTree.fromstring(junit(judged(checked))).find("testsuite/testcase/error")
    assert case is not None and case.text == r"bad \x00 \ufffe & < 'text'"


def test_sarif_names_rule_level_and_place_of_every_result(checked: CheckAnswer) -> None:
    document = json.loads(json.dumps(sarif(judged(checked))))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in run["results"]} == rules
    by_rule = {result["ruleId"]: result for result in run["results"]}
    assert by_rule["min_total_tokens"]["level"] == "error"
    assert by_rule["unusable"]["level"] == "error"
    assert by_rule["max_running_requests"]["suppressions"] == [{"kind": "inSource", "justification": "a | b <c>"}]
    place = by_rule["min_total_tokens"]["locations"][0]["physicalLocation"]
    assert unquote(place["artifactLocation"]["uri"]) == "falls short, 100%.kvplan.yaml"
    assert " " not in place["artifactLocation"]["uri"]
    assert place["region"] == {"startLine": 5}


def test_json_carries_every_finding(checked: CheckAnswer) -> None:
    document = json.loads(json.dumps(json_document("check", checked), allow_nan=False))
    assert (document["schema"], document["schema_version"], document["exit_code"]) == ("glm-kvplan/check", 2, 2)
    short, holds, unusable = document["files"]
    assert [file["verdict"] for file in document["files"]] == ["falls short", "holds", "unusable"]
    finding = next(finding for finding in short["findings"] if finding["name"] == "min_total_tokens")
    assert (finding["wanted"], finding["status"]) == (9_000_000, "fails")
    assert finding["found"] == short["sizes"]["tokens"]
    assert finding["changes"][0]["flags"]
    assert unusable["error"] == {"line": 2, "message": "unknown key 'flgs'; did you mean flags?", "cause": None}
    assert holds["certainty"] == "estimated" and short["certainty"] == "derived"


def test_markdown_tables_have_whole_rows(checked: CheckAnswer) -> None:
    lines = markdown(check_page(checked)).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 5 for row in rows)
    assert sum(line.startswith("### ") for line in lines) == 3
    text = "\n".join(lines)
    assert "a \\| b \\<c\\>" in text and "**FAILS**" in text and ": falls short" in text
