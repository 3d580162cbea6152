"""An explanation for a person: a drawing and sentences for a terminal, and a picture as SVG."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ._evidence import Rule
from ._history import WRITE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ._evidence import Edge, Evidence
    from ._history import Operation

#: Longest name of an operation or a process in a drawing.
_WIDTH = 36
_COLUMN, _ROW, _TOP, _LEFT = 280, 56, 60, 60


def text(headline: str, found: Evidence | None) -> str:
    """A headline, and why."""
    lines = [headline]
    if found:
        lines += ["", *_drawing(found), "", *_sentences(found), "", *_places(found)]
    return "\n".join(lines) + "\n"


def _drawing(found: Evidence) -> Iterator[str]:
    """A column for each process, a row for each operation."""
    columns = _columns(found)
    widths = {
        name: max(len(_short(text)) for text in (name, *(str(o) for o in done))) + 2
        for name, done in columns.items()
    }
    yield "     " + "".join(_short(name).ljust(widths[name]) for name in columns).rstrip()
    for number, one in enumerate(found.operations, start=1):
        cells = (_short(str(one)) if name == one.process else "" for name in columns)
        row = "".join(cell.ljust(widths[name]) for cell, name in zip(cells, columns, strict=True))
        yield f"{number:>3}  {row.rstrip()}"


def _columns(found: Evidence) -> dict[str, list[Operation]]:
    columns: dict[str, list[Operation]] = {}
    for one in found.operations:
        columns.setdefault(one.process, []).append(one)
    return columns


def _sentences(found: Evidence) -> Iterator[str]:
    """Each edge with its rule, and what follows from all of them."""
    if not found.cycle:
        yield "1 returned a version that nobody wrote"
        return
    yield from _edges(found, found.cycle, "")
    yield f"so {found.cycle[0].earlier + 1} comes before itself"


def _edges(found: Evidence, edges: Sequence[Edge], margin: str) -> Iterator[str]:
    for edge in edges:
        yield f"{margin}{edge.earlier + 1} before {edge.later + 1}: {rule(found, edge)}"
        yield from _edges(found, edge.because, f"{margin}    ")


def rule(found: Evidence, edge: Edge) -> str:
    """Why one operation of an explanation comes before another, in words."""
    a, b = edge.earlier + 1, edge.later + 1
    earlier, later = found.operations[edge.earlier], found.operations[edge.later]
    if edge.rule is Rule.SEEN:
        read = edge.because[-1].later + 1
        return f"{shown(found.process)} read {b} at {read}, and saw {a} before that:"
    if edge.rule is Rule.LINEAGE:
        lineage = shown(earlier.lineage or "")
        return f"{b} reads what {_written(found, later)} wrote in lineage {lineage}, which has {a}"
    return {
        Rule.ORDER: f"{shown(earlier.process)} did them in this order",
        Rule.MESSAGE: f"{b} receives what {a} sent",
        Rule.READS: f"{b} reads what {a} wrote",
        Rule.INITIAL: f"{a} found what was there before any write of {_subject(later)}",
        Rule.OVERWRITTEN: f"{a} returned a version that {b} overwrites, as it was written before:",
    }[edge.rule]


def _written(found: Evidence, read: Operation) -> int:
    """The number of the write that *read* returned."""
    of = (WRITE, read.subject, read.version)
    kinds = [(one.kind, one.subject, one.version) for one in found.operations]
    return kinds.index(of) + 1


def _places(found: Evidence) -> Iterator[str]:
    """Where each operation was called, and where the history has it."""
    for number, one in enumerate(found.operations, start=1):
        lineage = f"lineage {shown(one.lineage)}" if one.lineage is not None else ""
        parts = [part for part in (shown(one.site), lineage, shown(one.where)) if part]
        if parts:
            yield f"{number:>3}  {', '.join(parts)}"


def _subject(one: Operation) -> str:
    return shown(f"{one.datastore}:{one.key}")


def shown(name: str) -> str:
    """*name* as any terminal can show it."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)


def _short(name: str) -> str:
    name = shown(name)
    return name if len(name) <= _WIDTH else f"{name[: _WIDTH - 2]}.."


def svg(found: Evidence) -> str:
    """A picture: a line for each process, the time downwards, an arrow for each edge.

    What the process must have seen, or has read too late, is dashed.
    """
    columns = {name: number for number, name in enumerate(_columns(found))}
    width = _LEFT * 2 + _COLUMN * len(columns)
    height = _TOP + _ROW * (len(found.operations) + 1)
    places = [
        (_LEFT + _COLUMN * columns[one.process], _TOP + _ROW * (number + 1))
        for number, one in enumerate(found.operations)
    ]
    body = [_lifeline(name, _LEFT + _COLUMN * n, height) for name, n in columns.items()]
    body += [_arrow(found, edge, places) for edge in _all(found.cycle)]
    body += [_point(found, number, place) for number, place in enumerate(places)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">\n'
        f"<style>{_STYLE}</style>\n{_MARKER}\n" + "\n".join(body) + "\n</svg>\n"
    )


_STYLE = (
    "svg{background:#fff;color:#222}.life{stroke:#bbb}.edge{fill:none;stroke:#36c;stroke-width:1.6}"
    ".against{stroke:#c22;stroke-dasharray:6 4}.reason{stroke:#888}"
    "text{fill:#222;stroke:#fff;stroke-width:3px;paint-order:stroke}"
)
_MARKER = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="12" refY="4" markerWidth="8" markerHeight="8" '
    'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>'
)


def _all(edges: Sequence[Edge], *, reason: bool = False) -> Iterator[tuple[Edge, bool]]:
    for edge in edges:
        yield edge, reason
        yield from _all(edge.because, reason=True)


def _lifeline(name: str, x: int, height: int) -> str:
    return (
        f'<line class="life" x1="{x}" y1="{_TOP}" x2="{x}" y2="{height - 20}"/>'
        f'<text x="{x}" y="{_TOP - 20}" font-weight="bold">{escape(_short(name))}</text>'
    )


def _arrow(found: Evidence, of: tuple[Edge, bool], places: Sequence[tuple[int, int]]) -> str:
    edge, reason = of
    (x1, y1), (x2, y2) = places[edge.earlier], places[edge.later]
    kinds = ["edge"]
    if edge.rule in (Rule.SEEN, Rule.OVERWRITTEN, Rule.INITIAL):
        kinds.append("against")
    if reason:
        kinds.append("reason")
    # Beside the line of one process, and clear of other points on a straight way.
    bend = -46 if x1 == x2 else 0
    middle = f"{(x1 + x2) / 2 + bend:g},{(y1 + y2) / 2 - (0 if bend else 18):g}"
    title = f"{edge.earlier + 1} before {edge.later + 1}: {rule(found, edge)}"
    return (
        f'<path class="{" ".join(kinds)}" d="M{x1},{y1} Q{middle} {x2},{y2}" '
        f'marker-end="url(#tip)"><title>{escape(title)}</title></path>'
    )


def _point(found: Evidence, number: int, place: tuple[int, int]) -> str:
    one = found.operations[number]
    x, y = place
    label = escape(f"{number + 1}  {_short(str(one))}")
    title = escape(shown(", ".join(part for part in (str(one), one.site, one.where) if part)))
    return (
        f'<g><title>{title}</title><circle cx="{x}" cy="{y}" r="5"/>'
        f'<text x="{x + 12}" y="{y + 4}">{label}</text></g>'
    )
