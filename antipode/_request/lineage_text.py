"""Lineages as text: bounded on the way out, never empty by mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from antipode._lineage.codec import (
    decode,
    encode,
    encode_items,
    encode_mark,
    encode_promise,
    encode_write,
    join,
    may_be_dependency,
    newest_hour,
)
from antipode._lineage.errors import LineageDecodeError, LineageTooLarge
from antipode._lineage.grammar import MAX_ITEMS, MAX_TEXT, MEMBER_OVERHEAD
from antipode._lineage.lineage import Lineage, with_unknown, without_notes
from antipode._lineage.write_id import Incomplete, Promise, WriteId
from antipode._runtime import observers
from antipode._runtime.config import config
from antipode._runtime.metrics import count, log_once

if TYPE_CHECKING:
    from collections.abc import Collection

_SOMETHING = Incomplete("", "size")


def encode_bounded(
    lineage: Lineage,
    *,
    max_bytes: int,
    egress: Collection[str] | None = None,
    notes: frozenset[str] = frozenset(),
) -> str:
    """The text of *lineage* in at most *max_bytes*, ``antipode=`` included.

    Over the bound it keeps exact entries before covering ones and newer before older; for
    each datastore that lost an entry the text says ``incomplete`` (datastore, ``size``), or
    (datastore, ``promise``) where it lost a promise; that is counted and logged. Whatever is
    about datastores outside *egress*, or may be, becomes ``incomplete`` (empty subject,
    ``egress``) without naming the datastore. The text is never longer than what every version
    decodes. *notes* travel with it, where they fit.

    Raises:
        LineageTooLarge: *max_bytes* is too small for the mark itself.
    """
    if egress is not None:
        lineage = _filtered(lineage, frozenset(egress))
    if notes:
        lineage = with_unknown(lineage, lineage.unknown | notes)
    text = encode(lineage)
    room = min(max_bytes - MEMBER_OVERHEAD, MAX_TEXT)
    if len(text) <= room and text.count("~") <= MAX_ITEMS:
        return text
    text, dropped = _shortened(lineage, room)
    if len(text) > room:
        msg = f"{max_bytes} bytes cannot hold a lineage that says it is incomplete"
        raise LineageTooLarge(msg)
    if not dropped:
        return text  # Nothing but what is no dependency.
    for datastore in sorted(dropped):
        count("dropped_for_size", datastore)
    names = ", ".join(sorted(map(repr, dropped)))
    log_once(
        "dropped_for_size",
        names,
        max_bytes,
        "a lineage exceeds %d bytes: dependencies on %s were dropped and marked incomplete",
        max_bytes,
        names or "unknown items",
    )
    return text


def _filtered(lineage: Lineage, allowed: frozenset[str]) -> Lineage:
    """*lineage* without the datastores that may not leave, nor anything that may name them."""
    hidden = lineage.datastores - allowed
    subjects = {mark.subject for mark in lineage.incomplete if mark.subject} - allowed
    if not hidden and not subjects and not lineage.unknown:
        return lineage
    for datastore in hidden:
        count("dropped_for_egress", datastore)
    shown = lineage.only("", *allowed).without_unknown()
    if hidden or subjects or any(map(may_be_dependency, lineage.unknown)):
        return shown.marked(("", "egress"))
    return shown


class _Part(NamedTuple):
    """Something that may be dropped, and the mark it leaves then; None where it needs none."""

    mark: Incomplete | None
    item: str
    what: WriteId | Promise | str


def _shortened(lineage: Lineage, room: int) -> tuple[str, set[str]]:
    """A text of at most *room* bytes where marks alone fit, and which datastores lost entries."""
    newest_h = newest_hour(lineage)
    parts = _ranked(lineage, newest_h)
    items = encode_items(lineage, newest_h)
    length, number = len(join(newest_h, items)), len(items)
    marks = set(lineage.incomplete)
    dropped: set[str] = set()
    while parts and (length > room or number > MAX_ITEMS):
        mark, item, _ = parts.pop()
        length, number = length - len(item) - 1, number - 1
        if mark is None:
            continue
        dropped.add(mark.subject)
        if mark not in marks:
            marks.add(mark)
            length, number = length + len(encode_mark(mark)) + 1, number + 1
    if length > room or number > MAX_ITEMS:
        dropped |= {mark.subject for mark in marks}
        return encode(Lineage(incomplete=[_SOMETHING])), dropped
    return encode(_rest(lineage, parts, marks)), dropped


def _rest(lineage: Lineage, parts: list[_Part], marks: set[Incomplete]) -> Lineage:
    """What is left of *lineage*. Its header may be older: its text is no longer for that."""
    return Lineage(
        (part.what for part in parts if isinstance(part.what, WriteId)),
        incomplete=marks,
        promises=(part.what for part in parts if isinstance(part.what, Promise)),
        open_branches=lineage.open_branches,
        unknown=(part.what for part in parts if isinstance(part.what, str)),
    )


def _ranked(lineage: Lineage, newest_h: int) -> list[_Part]:
    """What may be dropped, last first: the order is the same in every language."""
    promises = [
        _Part(Incomplete(p.datastore, "promise"), encode_promise(p), p) for p in lineage.promises
    ]
    promises.sort(key=lambda part: part.item)
    writes = [
        (write.covering, -write.minted_h, encode_write(write, newest_h), write) for write in lineage
    ]
    writes.sort(key=lambda ranked: ranked[:3])
    others = sorted(lineage.unknown)
    unknown = [_Part(_SOMETHING, item, item) for item in others if may_be_dependency(item)]
    harmless = [_Part(None, item, item) for item in others if not may_be_dependency(item)]
    return [
        *promises,
        *(_Part(Incomplete(w.datastore, "size"), item, w) for _, _, item, w in writes),
        *unknown,
        *harmless,
    ]


def readable(subject: str, text: str | bytes) -> Lineage:
    """The lineage of *text*; ``incomplete`` (*subject*, ``unreadable``) where it is none.

    The latter is counted, and logged once for each subject and reason.

    Args:
        subject: whose writes are missing then: a datastore, a service, or ``baggage``.
        text: what came with a request, a message, a response or a value.
    """
    try:
        return decode(text if isinstance(text, str) else text.decode("ascii"))
    except UnicodeDecodeError:
        return unreadable(subject, "lineage_alphabet")
    except LineageDecodeError as error:
        return unreadable(subject, error.code)


def unreadable(subject: str, why: str) -> Lineage:
    """The lineage that stands for one that cannot be read, for the reason *why*."""
    count("unreadable", subject)
    log_once("unreadable", subject, why, "a lineage of %r is unreadable (%s)", subject, why)
    return Lineage(incomplete=[(subject, "unreadable")])


def stored_text(lineage: Lineage, *, egress: Collection[str] | None = None) -> str:
    """What to store beside a value, or to put into a message, for *lineage*.

    Within ``max_lineage_bytes``, as every lineage that leaves the process: what does not fit is
    marked as missing in the text.

    Args:
        lineage: what the write depends on.
        egress: the datastores that may be named in it; None for all.
    """
    if lineage.unknown:
        lineage = without_notes(lineage)
    text = encode_bounded(lineage, max_bytes=config().max_lineage_bytes, egress=egress)
    observers.telemetry.left("stored", text, lineage)
    return text


def stored_lineage(datastore: str, text: str | bytes | None) -> Lineage:
    """The lineage that was found beside a value of *datastore*.

    None, nothing stored, is the empty lineage. A text that cannot be read is never taken for
    it: it becomes ``incomplete`` (*datastore*, ``unreadable``), counted and logged.
    """
    if text is None:
        return Lineage()
    found = readable(datastore, text)
    return without_notes(found) if found.unknown else found
