"""An explanation for a person: a drawing and sentences for a terminal, and a picture as SVG."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

from ._evidence import Rule
from ._history import READ, WRITE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ._evidence import Edge, Evidence
    from ._history import Operation

#: Longest name of an operation or a process in a drawing.
_WIDTH = 36


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
    """A picture: a column for each process, the time downwards, an arrow for each edge.

    What the process must have seen, or has read too late, is dashed. The sentences are below.
    """
    columns = {name: number for number, name in enumerate(_columns(found))}
    texts = [_numbered(found, number) for number in range(len(found.operations))]
    half = _half(max(map(len, (*texts, *map(_short, columns)))))
    step = 2 * half + _GAP
    boxes = [
        _Box(
            _LEFT + half + step * columns[one.process], _TOP + _ROW * (number + 1), _half(len(text))
        )
        for number, (one, text) in enumerate(zip(found.operations, texts, strict=True))
    ]
    bottom = _TOP + _ROW * (len(boxes) + 1) - _ROW // 4
    sentences = [*_LEGEND, *_sentences(found)]
    width = max(
        2 * _LEFT + step * len(columns) - _GAP, 2 * _LEFT + _CHAR * max(map(len, sentences))
    )
    height = bottom + _LINE * (len(sentences) + 2)
    body = [_lifeline(name, _LEFT + half + step * n, bottom) for name, n in columns.items()]
    body += [_arrow(found, edge, boxes) for edge in _all(found.cycle)]
    body += [
        _card(found, number, *pair) for number, pair in enumerate(zip(boxes, texts, strict=True))
    ]
    body += [
        f'<text class="said" x="{_LEFT}" y="{bottom + _LINE * (n + 1)}" xml:space="preserve">'
        f"{escape(sentence)}</text>"
        for n, sentence in enumerate(sentences, start=1)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height}" '
        f'viewBox="0 0 {width:g} {height}" font-family="sans-serif" font-size="13">\n'
        f"<style>{_STYLE}</style>\n{_MARKERS}\n" + "\n".join(body) + "\n</svg>\n"
    )


class _Box(NamedTuple):
    """Where an operation is drawn: the middle of its box, and half of its width."""

    x: float
    y: int
    half: float


#: Pixels: what a row takes, a line of text, a character, half of a box; what is around.
_ROW, _LINE, _CHAR, _TALL, _GAP, _TOP, _LEFT = 58, 19, 7.4, 14, 56, 30, 30
_LEGEND = ("Solid: comes before. Dashed: contradicts that. Grey: why.", "")
_COLOURS = {"edge": "#1f5fae", "against": "#c8321f", "reason": "#8a8f98"}
_STYLE = (
    "svg{background:#fff;max-width:100%;height:auto}text{fill:#1d2129}.life{stroke:#d5d9e0;stroke-width:2}"
    ".edge{fill:none;stroke:#1f5fae;stroke-width:1.8}"
    ".reason{stroke:#8a8f98}.against{stroke:#c8321f;stroke-dasharray:7 4}"
    ".card rect{fill:#f3f6fb;stroke:#9db4d3}.read rect{fill:#fff8ec;stroke:#dcb777}"
    ".message rect{fill:#f6f6f7;stroke:#c9ccd2}.said{font-size:12.5px;fill:#444b57}"
)
_MARKERS = "<defs>{}</defs>".format(
    "".join(
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" '
        'markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path d="M0,0 L10,5 L0,10 z" fill="{colour}"/></marker>'
        for name, colour in _COLOURS.items()
    )
)


def _half(characters: int) -> float:
    return characters * _CHAR / 2 + 12


def _numbered(found: Evidence, number: int) -> str:
    return f"{number + 1}  {_short(str(found.operations[number]))}"


def _all(edges: Sequence[Edge], *, reason: bool = False) -> Iterator[tuple[Edge, bool]]:
    for edge in edges:
        yield edge, reason
        yield from _all(edge.because, reason=True)


def _lifeline(name: str, x: float, bottom: int) -> str:
    return (
        f'<line class="life" x1="{x:g}" y1="{_TOP + 10}" x2="{x:g}" y2="{bottom}"/>'
        f'<text x="{x:g}" y="{_TOP}" text-anchor="middle" font-weight="bold">'
        f"{escape(_short(name))}</text>"
    )


def _arrow(found: Evidence, of: tuple[Edge, bool], boxes: Sequence[_Box]) -> str:
    edge, reason = of
    one, other = boxes[edge.earlier], boxes[edge.later]
    kinds = ["edge"]
    if reason:
        kinds.append("reason")
    if edge.rule in (Rule.SEEN, Rule.OVERWRITTEN, Rule.INITIAL):
        kinds.append("against")
    title = f"{edge.earlier + 1} before {edge.later + 1}: {rule(found, edge)}"
    return (
        f'<path class="{" ".join(kinds)}" d="{_way(one, other)}" '
        f'marker-end="url(#{kinds[-1]})"><title>{escape(title)}</title></path>'
    )


def _way(one: _Box, other: _Box) -> str:
    """From box to box: straight to the next one below, else out at the sides and around."""
    down = 1 if one.y < other.y else -1
    if one.x == other.x:
        if other.y - one.y == _ROW:
            return f"M{one.x:g},{one.y + _TALL} L{other.x:g},{other.y - _TALL}"
        # Around what lies between, on the left downwards and on the right upwards.
        side = -down * max(one.half, other.half)
        x1, x2 = one.x - down * one.half, other.x - down * other.half
        bent = one.x + 1.25 * side
        return f"M{x1:g},{one.y} C{bent:g},{one.y} {bent:g},{other.y} {x2:g},{other.y}"
    right = 1 if one.x < other.x else -1
    x1, x2 = one.x + right * one.half, other.x - right * other.half
    bend = right * _GAP / 2
    # What goes up leaves above the middle, so that it is apart from what comes the same way.
    y1, y2 = one.y + down * 4, other.y - down * 4
    return f"M{x1:g},{y1} C{x1 + bend:g},{y1} {x2 - bend:g},{y2} {x2:g},{y2}"


def _card(found: Evidence, number: int, box: _Box, label: str) -> str:
    one = found.operations[number]
    title = escape(shown(", ".join(part for part in (str(one), one.site, one.where) if part)))
    kind = one.kind if one.kind in (WRITE, READ) else "message"
    return (
        f'<g class="card {kind}"><title>{title}</title><rect x="{box.x - box.half:g}" '
        f'y="{box.y - _TALL}" width="{2 * box.half:g}" height="{2 * _TALL}" rx="6"/>'
        f'<text x="{box.x:g}" y="{box.y + 5}" text-anchor="middle">{escape(label)}</text></g>'
    )
