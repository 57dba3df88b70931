"""`kvplan check --format junit`: a test suite a file, a test case an expectation."""

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from glm_kvplan.answers.check.checking import Checked
from glm_kvplan.answers.check.findings import Finding
from glm_kvplan.show.check_words import advice, binding, outcome, sentence

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text(checked: Sequence[Checked]) -> str:
    """The XML document. Tolerated shortfalls are skipped cases; warnings stand in a suite's system-out."""
    root = ElementTree.Element("testsuites", name="kvplan check")
    for one in checked:
        suite = ElementTree.SubElement(root, "testsuite", name=_clean(one.path))
        if one.error is not None:
            case = _case(suite, one.path, "readable", one.line)
            _child(case, "error", "unusable deployment file", one.error)
        for finding in one.found:
            if finding.wanted is not None:
                _result(_case(suite, one.path, finding.name, finding.line), finding)
        remarks = [f"{finding.name}: {sentence(finding)}" for finding in one.found if finding.wanted is None]
        if remarks:
            ElementTree.SubElement(suite, "system-out").text = _clean("\n".join(remarks))
        _count(suite)
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def _case(suite: ElementTree.Element, path: str, name: str, line: int) -> ElementTree.Element:
    return ElementTree.SubElement(
        suite, "testcase", classname=_clean(path), name=name, file=_clean(path), line=str(line)
    )


def _result(case: ElementTree.Element, finding: Finding) -> None:
    if finding.status == "tolerated":
        ElementTree.SubElement(case, "skipped", message=_clean(finding.note))
    elif finding.status in ("fails", "warns"):
        body = "\n".join((binding(finding), *advice(finding)))
        _child(case, "failure" if finding.status == "fails" else "system-out", outcome(finding), body)


def _child(case: ElementTree.Element, tag: str, message: str, body: str) -> None:
    child = ElementTree.SubElement(case, tag)
    if tag != "system-out":
        child.set("message", _clean(message))
    child.text = _clean(body)


def _count(suite: ElementTree.Element) -> None:
    suite.set("tests", str(len(suite.findall("testcase"))))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f"testcase/{tag}"))))


def _clean(value: str) -> str:
    return _NOT_XML.sub("?", value)
