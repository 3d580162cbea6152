"""What is in a lineage, in lines for a person."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from antipode.diagnostics import foreign_of, guard_of, may_be_dependency, request_of

from .report import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from antipode import Lineage, WriteId

    from .report import Line

REASONS = {
    "in_doubt": "a write whose outcome was never learned, or that no position covers",
    "size": "writes that did not fit in the text's limit, the oldest first",
    "promise": "promises that did not fit in the text's limit",
    "unreadable": "a lineage that arrived or was stored, and could not be decoded",
    "unsampled": "a position that could not be sampled",
    "egress": "entries that were not allowed to leave a process",
    "out_of_order": "what a block in C++ wrote while another one was current in its place",
    "snapshot": "what came after somebody copied the member's characters instead of injecting it",
    "unknown_item": "an item of an unknown kind, which may be a dependency",
}


def explanation(lineage: Lineage, characters: int) -> Iterator[Line]:
    """*lineage*, which came as a text of so many *characters*."""
    yield (Span(_summary(lineage, characters), "bold"),)
    yield from _section("writes", map(_write, sorted(lineage, key=_order)))
    yield from _section("missing", _missing(lineage))
    yield from _section(
        "promised",
        (
            f"{promise.datastore}  promise {promise.id}, abandoned after "
            f"{_time(promise.expires_s, '%Y-%m-%d %H:%M:%S')}"
            for promise in sorted(lineage.promises, key=lambda one: (one.datastore, one.id))
        ),
    )
    if lineage.open_branches:
        yield from _section("branches", [f"{lineage.open_branches} still open when it was made"])
    unknown = sorted(lineage.unknown)
    notes = [note for item in unknown if (note := _note(item))]
    yield from _section("dry run", notes)
    yield from _section("unknown", (_unknown(item) for item in unknown if not _note(item)))


def _summary(lineage: Lineage, characters: int) -> str:
    covering = sum(write.covering for write in lineage)
    parts = [_count(len(lineage) - covering, "write")]
    if covering:
        parts.append(_count(covering, "covering position"))
    state = "incomplete" if _missing(lineage) else "complete as far as it knows"
    if lineage.empty:
        state = "empty: nothing was written or seen"
    return f"lineage of {' and '.join(parts)} in {_count(characters, 'character')}; {state}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _section(title: str, rows: Iterable[str]) -> Iterator[Line]:
    for number, row in enumerate(rows):
        yield Span(f"  {'' if number else title:9} ", "dim"), Span(row)


def _order(write: WriteId) -> tuple[str, str, bool, bool, int | str]:
    opaque = isinstance(write.version, str)
    return write.datastore, write.key, write.covering, opaque, write.version


def _write(write: WriteId) -> str:
    kind = "covering " if write.covering else ""
    version = f"{write.version!r}" if isinstance(write.version, str) else str(write.version)
    when = _hour(write.written_hour) if write.written_hour else "hour not known"
    return f"{_quoted(write.datastore)}  {_quoted(write.key)} @ {kind}{version}, {when}"


def _missing(lineage: Lineage) -> list[str]:
    return [
        f"{_quoted(mark.subject) if mark.subject else 'unknown source'}  {mark.reason}: "
        + REASONS.get(mark.reason, "a reason of a shim or application")
        for mark in sorted(lineage.incomplete)
    ]


def _note(item: str) -> str:
    """What a dry run's note says; empty for any other item."""
    if request := request_of(item):
        return f"request {request}"
    if found := guard_of(item):
        region, write = found
        where = f"region {_quoted(region)}" if region else "processes without a region"
        return f"guarded in {where}: {write}"
    return ""


def _unknown(item: str) -> str:
    if foreign := foreign_of(item):
        return f"{_short(foreign)}  a lineage of version {foreign[0]}: a barrier cannot judge it"
    if may_be_dependency(item):
        return f"{_short(item)}  of a later version, and may be a dependency: barriers say so"
    return f"{_short(item)}  of a later version, and no dependency: carried along"


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


def _quoted(text: str) -> str:
    """A name from outside: as it is where it is plain, else with its characters escaped."""
    return text if text.isprintable() and text and not text.startswith(("'", '"')) else repr(text)


def _hour(hour: int) -> str:
    return f"written in the hour from {_time(hour * 3600, '%Y-%m-%d %H:%M')}"


def _time(seconds: int, style: str) -> str:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime(f"{style} UTC")
    except (OverflowError, OSError, ValueError):
        return f"at Unix second {seconds}"
