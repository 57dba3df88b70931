"""JUnit's XML: a test suite a file, a test case an expectation."""

from xml.etree import ElementTree

from glm_kvplan.show.judged import Judged, JudgedFile, JudgedFiles
from glm_kvplan.show.printable import xml


def junit(judged: JudgedFiles) -> str:
    """The document. Tolerated shortfalls are skipped cases; remarks stand in a suite's system-out."""
    root = ElementTree.Element("testsuites", name=judged.tool)
    for file in judged.files:
        _suite(root, file)
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def _suite(root: ElementTree.Element, file: JudgedFile) -> None:
    suite = ElementTree.SubElement(root, "testsuite", name=xml(file.path))
    for found in file.found:
        if found.expected or found.status == "unusable":
            _case(suite, file.path, found)
    remarks = [f"{found.rule}: {found.sentence}" for found in file.found if not found.expected]
    if remarks and all(found.status != "unusable" for found in file.found):
        ElementTree.SubElement(suite, "system-out").text = xml("\n".join(remarks))
    suite.set("tests", str(len(suite.findall("testcase"))))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f"testcase/{tag}"))))


def _case(suite: ElementTree.Element, path: str, found: Judged) -> None:
    name = "readable" if found.status == "unusable" else found.rule
    place = {"classname": xml(path), "name": xml(name), "file": xml(path), "line": str(found.line)}
    case = ElementTree.SubElement(suite, "testcase", place)
    if found.status == "tolerated":
        ElementTree.SubElement(case, "skipped", message=xml(found.reason))
    elif found.status == "unusable":
        ElementTree.SubElement(case, "error", message=xml(found.title)).text = xml(found.sentence)
    elif found.status == "fails":
        ElementTree.SubElement(case, "failure", message=xml(found.outcome)).text = xml("\n".join(found.details))
    elif found.status == "warns":
        ElementTree.SubElement(case, "system-out").text = xml("\n".join(found.details))
