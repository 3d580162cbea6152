"""The report as annotations of GitHub Actions (workflow commands)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._text import LINTS, NOTHING_JUDGED, NOTHING_SEEN, cost, fix, summary

if TYPE_CHECKING:
    from ._model import Finding, LintFinding, Place, Report


def github_text(report: Report) -> str:
    """One command for each new finding, at the read's line, and the summary for the log."""
    commands = [_finding(report, one) for one in report.new]
    commands += [_lint(report, one) for one in report.new_lints]
    commands += [
        f"::error title=Nothing judged of {_property(name)}::{_data(NOTHING_JUDGED)}"
        for name in report.missing
    ]
    if report.unseen:
        commands.append(f"::error title=Nothing recorded::{_data(NOTHING_SEEN)}")
    return "".join(f"{line}\n" for line in [*commands, summary(report)])


def _finding(report: Report, one: Finding) -> str:
    title = f"Missing barrier {one.id}"
    message = (
        f"{one.datastore}: read from a replica without waiting for the write at {one.write}\n"
        f"fix: {fix(one)}"
    )
    if one.cost.known:
        message += f"\ncost: {cost(one.cost)}"
    return _command(one.read, title, message, fails=report.fails(one))


def _lint(report: Report, one: LintFinding) -> str:
    message = "\n".join((LINTS.get(one.lint, one.lint), *one.details))
    return _command(one.place, f"{one.lint} {one.id}", message, fails=report.fails(one))


def _command(place: Place, title: str, message: str, *, fails: bool) -> str:
    where = f"file={_property(place.file)},line={place.line}," if place.file else ""
    level = "error" if fails else "warning"
    return f"::{level} {where}title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
