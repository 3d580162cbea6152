"""One offending request across its services, in the order of time."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING

from ._text import LINTS, duration, few, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._model import Report
    from ._records import Record, Records

#: Most of a request's lines that are shown.
_MOST = 200


def timeline(report: Report) -> str:
    """A table with a column for each process; empty where there is no offending request."""
    request = _request(report)
    if request is None:
        return ""
    lines = _lines(report.records, request)
    columns = _columns(report.records, lines)
    shown = _Shown(report, lines[:_MOST])
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns.values())
    rows = "".join(_row(line, columns, shown) for line in shown.lines)
    writes = "".join(f"<li><code>{escape(str(entry))}</code></li>\n" for entry in shown.numbers)
    rest = len(lines) - len(shown.lines)
    more = f'<p class="soft">{plural(rest, "later line")} left out.</p>\n' if rest else ""
    return (
        f"<p>Request <code>{escape(request)}</code>, by each process's own clock.</p>\n"
        '<div class="scroll" role="region" aria-label="Timeline" tabindex="0">\n<table>\n'
        f'<thead><tr><th scope="col">after</th>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n'
        f"</table>\n</div>\n{more}<p>The numbers stand for these writes:</p>\n<ol>\n{writes}</ol>\n"
    )


class _Shown:
    """The lines of the table, and what ties them to each other and to the findings.

    Attributes:
        numbers: a number for each write that an unguarded read is about.
        places: the findings that a barrier before a read of this place guards.
    """

    def __init__(self, report: Report, lines: Sequence[Record]) -> None:
        self.lines = lines
        self._read = {(line.process, line.n): line for line in lines if line.kind == "read"}
        wanted = [entry for line in lines if line.verdict == "unguarded" for entry in line.writes]
        self.numbers = {entry: number for number, entry in enumerate(dict.fromkeys(wanted), 1)}
        self.places = {one.advice.before: one.advice.guards for one in report.findings}

    def after(self, line: Record) -> str:
        """When *line* was written, from the first on."""
        return duration(max(0.0, line.t - self.lines[0].t))

    def tied(self, line: Record) -> str:
        """The numbers of the writes that *line*, or the read that it is evidence of, is about."""
        about = self._read.get((line.process, line.of)) if line.kind == "evidence" else line
        found = [
            self.numbers[one] for one in (about.writes if about else ()) if one in self.numbers
        ]
        return "".join(f' <span class="badge mark">{number}</span>' for number in found)

    def advised(self, line: Record) -> str:
        """That a barrier belongs before *line*, where one does."""
        guards = self.places.get(line.site) if line.verdict == "unguarded" else None
        if not guards:
            return ""
        links = few([f'<a href="#{name}">{name}</a>' for name in sorted(guards)])
        return f'<div class="event advice">a barrier here would guard {links}</div>'


def _request(report: Report) -> str | None:
    """The request that shows most: confirmed findings first, then many, then many services."""
    found: Counter[str] = Counter()
    confirmed: Counter[str] = Counter()
    for finding in report.new or report.findings:
        for one in finding.occurrences:
            if one.read.request is not None:
                found[one.read.request] += 1
                confirmed[one.read.request] += one.confirmed
    return min(found, key=lambda name: (-confirmed[name], -found[name], name), default=None)


def _lines(records: Records, request: str) -> list[Record]:
    """The lines of *request*, and the evidence about its reads."""
    own = [line for line in records.lines if line.request == request]
    reads = {(line.process, line.n) for line in own if line.kind == "read"}
    own += [
        line
        for line in records.lines
        if line.kind == "evidence" and (line.process, line.of) in reads
    ]
    return sorted(own, key=lambda line: line.order)


def _columns(records: Records, lines: Sequence[Record]) -> dict[str, str]:
    """The name of each process, in the order in which they come up."""
    processes = {line.process: records.process(line) for line in lines}
    names = Counter(process.name for process in processes.values())
    return {
        key: process.name if names[process.name] == 1 else f"{process.name}, {process.pid}"
        for key, process in processes.items()
    }


def _row(line: Record, columns: dict[str, str], shown: _Shown) -> str:
    cells = "".join(
        f'<td data-service="{escape(name)}">'
        f"{_event(line, shown) if key == line.process else ''}</td>"
        for key, name in columns.items()
    )
    return f'<tr><th scope="row">{shown.after(line)}</th>{cells}</tr>\n'


def _event(line: Record, shown: _Shown) -> str:
    style = {"read": line.verdict, "lint": "lint-event"}.get(line.kind, line.kind)
    place = f"<small><code>{escape(str(line.site))}</code></small>" if line.site.file else ""
    words = f"{_words(line)}{shown.tied(line)}"
    return f'{shown.advised(line)}<div class="event {style}">{words}{place}</div>'


def _words(line: Record) -> str:
    if line.kind == "evidence":
        return _evidence(line)
    said = {
        "scope": "the request comes in" if line.opened == "incoming" else "the request starts",
        "read": f"reads {_strong(line.datastore)}{_times(line)}, {_verdict(line)}",
        "write": f"writes {_strong(*(entry.datastore for entry in line.writes))}",
        "barrier": f"barrier (at {escape(line.at)}), "
        f"{'would wait' if line.dry else 'waited'} for {plural(len(line.writes), 'write')}",
        "lint": escape(LINTS.get(line.lint, line.lint)),
    }
    return said.get(line.kind) or escape(line.kind)


def _strong(*names: str) -> str:
    return f"<strong>{escape(', '.join(names))}</strong>"


def _times(line: Record) -> str:
    return f", {plural(line.reads, 'time')} in a row" if line.reads > 1 else ""


def _verdict(line: Record) -> str:
    style = "bad" if line.verdict == "unguarded" else "good"
    return f'<b class="{style}">{line.verdict}</b>'


def _evidence(line: Record) -> str:
    stale = "the read was stale" if line.confirmed else "nobody knows whether the read was stale"
    if line.waited_s is None:
        return f"{stale}; when its write became visible is not known"
    return f"{stale}; its write was visible {duration(line.waited_s)} after it"
