"""The report as one HTML file that fetches nothing and runs no script."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, TypeVar

from ._html_style import STYLE
from ._html_timeline import timeline
from ._html_waits import waits
from ._model import Finding, LintFinding, ReadGroup
from ._text import AUTOMATIC, LINTS, choice, cost, few, not_judged, notes, plural, rules, summary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._model import Advice, Report

# Even a name that slipped through unescaped could load and run nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_OPENED = 3
_Either = TypeVar("_Either", Finding, LintFinding)
_HEAD = f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>Missing barriers</title>
<style>
{STYLE}</style>
</head>
<body>
"""


def html_text(report: Report) -> str:
    """The whole report, known findings at the end of their list."""
    sections = {
        "findings": ("Findings", _findings(report)),
        "automatic": ("Guarded by automatic barriers", "".join(map(_held, report.held))),
        "timeline": ("One request", timeline(report)),
        "waits": ("What barriers would have waited", waits(report)),
        "lints": ("Lints", "".join(_lint(report, one) for one in _known_last(report.lints))),
        "records": ("Records", _records(report)),
    }
    shown = {name: section for name, section in sections.items() if section[1]}
    links = "".join(f'<a href="#{name}">{title}</a>' for name, (title, _) in shown.items())
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-title">\n'
        f'<h2 id="{name}-title">{title}</h2>\n{content}</section>\n'
        for name, (title, content) in shown.items()
    )
    return (
        f"{_HEAD}<header>\n<h1>Missing barriers</h1>\n<p>{escape(summary(report))}</p>\n"
        f"{_choice(report)}"
        f'<nav aria-label="Sections">{links}</nav>\n</header>\n'
        f"<main>\n{_tally(report)}{body}</main>\n</body>\n</html>\n"
    )


def _choice(report: Report) -> str:
    said = [*rules(report)]
    if report.new or report.held:
        chosen = f"Choose: {choice(report)}" if report.new else ""
        said = [chosen, AUTOMATIC, not_judged(report), *said]
    told = "; ".join(filter(None, said))
    return f"<p>{escape(told)}.</p>\n" if told else ""


def badge(text: str, style: str = "") -> str:
    """A small label; *style* is one of the style sheet's colours."""
    return f'<span class="{f"badge {style}".rstrip()}">{escape(text)}</span>'


def _tally(report: Report) -> str:
    numbers = (
        (report.barriers, "missing barrier", "missing barriers"),
        (len(report.new), "finding", "findings"),
        (sum(one.confirmed > 0 for one in report.new), "of them confirmed", "of them confirmed"),
        (report.reads_held, "read guarded automatically", "reads guarded automatically"),
        (len(report.new_lints), "lint", "lints"),
        (report.known, "known by the baseline", "known by the baseline"),
        (len(report.accepted), "accepted by a comment", "accepted by comments"),
    )
    items = "".join(
        f"<li><b>{number}</b> {one if number == 1 else many}</li>\n"
        for number, one, many in numbers
    )
    return f'<ul class="tally">\n{items}</ul>\n'


def _findings(report: Report) -> str:
    if not report.findings:
        return "<p>Every read that needed a barrier had one.</p>\n"
    return "".join(
        _finding(report, one, opened=number < _OPENED)
        for number, one in enumerate(_known_last(report.findings))
    )


def _known_last(found: Iterable[_Either]) -> list[_Either]:
    return sorted(found, key=lambda one: not one.new)


def _finding(report: Report, one: Finding, *, opened: bool) -> str:
    labels = []
    if one.confirmed:
        labels.append(badge(f"{plural(one.confirmed, 'stale read')} confirmed", "bad"))
    labels.append(badge(plural(one.reads, "read")))
    labels += _labels(report, one)
    rows = _rows(
        ("Write", f"<code>{escape(str(one.write))}</code>"),
        ("Read", f"<code>{escape(str(one.read))}</code>"),
        ("Fix", _fix(one.advice)),
        ("Cost", escape(cost(one.cost)) or "not known: no evidence was followed"),
        ("Services", escape(", ".join(one.services))),
        ("Tests", few([f"<code>{escape(test)}</code>" for test in one.tests])),
    )
    return (
        f'<details id="{one.id}" class="finding{"" if one.new else " known"}"'
        f"{' open' if opened and one.new else ''}>\n"
        f'<summary><span class="id">{one.id}</span> <strong>{escape(one.datastore)}</strong> '
        f"in <code>{escape(str(one.read))}</code> {' '.join(labels)}</summary>\n{rows}</details>\n"
    )


def _held(held: ReadGroup) -> str:
    stale = f", {held.confirmed} stale without it" if held.confirmed else ""
    rows = _rows(
        ("Write", f"<code>{escape(str(held.write))}</code>"),
        ("Cost", escape(cost(held.cost)) or "not known: no evidence was followed"),
        ("Services", escape(", ".join(held.services))),
        ("Tests", few([f"<code>{escape(test)}</code>" for test in held.tests])),
    )
    return (
        f"<details><summary><strong>{escape(held.datastore)}</strong> in "
        f"<code>{escape(str(held.read))}</code> "
        f"{badge(plural(held.cost.reads, 'read') + stale)}</summary>\n{rows}</details>\n"
    )


def _labels(report: Report, one: Finding | LintFinding) -> list[str]:
    if one.accepted:
        return [badge(f"accepted: {one.accepted}")]
    if one.known:
        return [badge("known")]
    return [badge("fails", "bad")] if report.fails(one) else []


def _fix(advice: Advice) -> str:
    also = few([f'<a href="#{name}">{name}</a>' for name in advice.guards[1:]])
    return (
        f"<code>{escape(advice.call)}</code> before <code>{escape(str(advice.before))}</code>"
        + (f"; it guards {also} too" if also else "")
    )


def _lint(report: Report, one: LintFinding) -> str:
    about = f"<strong>{escape(one.datastore)}</strong>: " if one.datastore else ""
    said = "".join(f"<br>{escape(detail)}" for detail in one.details)
    labels = " ".join([badge(plural(one.count, "time")), *_labels(report, one)])
    return (
        f'<div id="{one.id}" class="lint{"" if one.new else " known"}">'
        f'<span class="id">{one.id}</span> {about}{escape(LINTS.get(one.lint, one.lint))} '
        f'{labels}<br><code>{escape(str(one.place))}</code><span class="soft">{said}</span></div>\n'
    )


def _records(report: Report) -> str:
    processes = sorted(report.records.processes.values(), key=lambda one: (one.name, one.id))
    names = "".join(
        f"<li>{escape(one.name)}, process {one.pid} <code>{escape(one.id)}</code></li>\n"
        for one in processes
    )
    said = "".join(f'<p class="warn">{escape(note)}</p>\n' for note in notes(report))
    gone = ", ".join(report.gone)
    stale = f"<p>In the baseline, and not found any more: <code>{gone}</code></p>\n" if gone else ""
    files = plural(report.records.files, "file")
    return f"{said}{stale}<p>{files}, written by:</p>\n<ul>\n{names}</ul>\n"


def _rows(*rows: tuple[str, str]) -> str:
    inside = "".join(f"<dt>{name}</dt><dd>{value}</dd>\n" for name, value in rows if value)
    return f"<dl>\n{inside}</dl>\n"
