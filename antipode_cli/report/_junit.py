"""The report as JUnit XML: each finding a test case."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from ._model import Finding, LintFinding
from ._text import NOTHING_JUDGED, NOTHING_SEEN, finding_lines, lint_lines, plain

if TYPE_CHECKING:
    from ._model import Report


def junit_text(report: Report) -> str:
    """The report as a test suite.

    A finding is a failure where ``--fail-on`` asks for it, and skipped with its text otherwise.
    Without any finding there is one case, which passes: many readers refuse an empty suite.
    """
    found: list[Finding | LintFinding] = [*report.findings, *report.lints]
    cases = [_case(report, one) for one in found]
    cases += [
        _unjudged(f"{name} is judged", f"antipode.{name}", f"{name}: {NOTHING_JUDGED}")
        for name in report.missing
    ]
    if report.unseen:
        cases.append(_unjudged("a request is recorded", "antipode", NOTHING_SEEN))
    if not cases:
        cases = [ET.Element("testcase", classname="antipode", name="no missing barrier")]
    failures = sum(case.find("failure") is not None for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    suite = ET.Element(
        "testsuite",
        name="antipode",
        tests=str(len(cases)),
        failures=str(failures),
        errors="0",
        skipped=str(skipped),
    )
    suite.extend(cases)
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _unjudged(name: str, of: str, why: str) -> ET.Element:
    case = ET.Element("testcase", classname=of, name=name)
    ET.SubElement(case, "failure", message=why)
    return case


def _case(report: Report, one: Finding | LintFinding) -> ET.Element:
    if isinstance(one, Finding):
        place, text = one.read, plain(finding_lines(one))
        name = f"{one.id} {one.datastore}: {one.read}"
    else:
        place, text = one.place, plain(lint_lines(one))
        name = f"{one.id} {one.lint}: {one.place}"
    case = ET.Element("testcase", classname=f"antipode.{one.datastore or 'lint'}", name=name)
    if place.file:
        case.set("file", place.file)
        case.set("line", str(place.line))
    title = text.splitlines()[0]
    kind = "failure" if report.fails(one) else "skipped"
    message = f"known by the baseline: {title}" if one.known else title
    if one.accepted:
        message = f"accepted, {one.accepted}: {title}"
    ET.SubElement(case, kind, message=message).text = text
    return case
