"""Lineages as text: bounded on the way out, never empty by mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode._lineage.codec import (
    decode,
    encode,
    may_be_dependency,
)
from antipode._lineage.errors import LineageDecodeError, LineageTooLarge
from antipode._lineage.grammar import MAX_ITEMS, MAX_TEXT, MEMBER_OVERHEAD
from antipode._lineage.lineage import Lineage, with_unknown
from antipode._lineage.shortening import MOST_HELD, holdable, shortened
from antipode._runtime.clock import SYSTEM_CLOCK
from antipode._runtime.config import config
from antipode._runtime.metrics import count, log_once

if TYPE_CHECKING:
    from collections.abc import Collection

    from antipode._runtime.clock import Clock


def encode_bounded(
    lineage: Lineage,
    *,
    max_bytes: int,
    egress: Collection[str] | None = None,
    notes: frozenset[str] = frozenset(),
) -> str:
    """The text of *lineage* in at most *max_bytes*, ``antipode=`` included.

    Over the bound it keeps exact entries before covering ones, those of this process before
    those that came in texts, and newer before older; for each datastore that lost an entry the
    text says ``incomplete`` (datastore, ``size``), or (datastore, ``promise``) where it lost a
    promise, of the empty subject where there are many; that is counted and logged. Whatever is
    about datastores outside *egress*, or may be, becomes ``incomplete`` (empty subject,
    ``egress``) without naming the datastore. The text is never longer than what every version
    decodes. *notes* travel with it, where they fit.

    Raises:
        LineageTooLarge: *max_bytes* is too small for the mark itself.
    """
    if egress is not None:
        lineage = filtered(lineage, frozenset(egress))
    if notes:
        lineage = with_unknown(lineage, lineage.unknown | notes)
    text = encode(lineage)
    room = min(max_bytes - MEMBER_OVERHEAD, MAX_TEXT)
    if len(text) <= room and text.count("~") <= MAX_ITEMS:
        return text
    left, dropped = shortened(lineage, room, MAX_ITEMS)
    text = encode(left)
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


def filtered(lineage: Lineage, allowed: frozenset[str]) -> Lineage:
    """*lineage* without what is of other datastores than *allowed*, or may name them; marked."""
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


def received(source: str | Lineage, clock: Clock = SYSTEM_CLOCK) -> Lineage:
    """The lineage of *source*, a text that came from elsewhere, as it counts here and now.

    A lineage may have come so, too: decoding asks no clock.

    Raises:
        LineageDecodeError: it is a text and no lineage.
    """
    lineage, latest_s = decode(str(source)) if isinstance(source, str) else source, 0
    if lineage.promises:
        latest_s = int(clock.unix_s() + config().max_promise.total_seconds())
    return lineage.received(hour=clock.hour(), latest_s=latest_s)


def kept(lineage: Lineage) -> Lineage:
    """What a scope keeps of *lineage*; what it does not is counted, and marked in it."""
    if lineage.size <= MOST_HELD:
        return lineage
    left, dropped = holdable(lineage)
    for datastore in sorted(dropped):
        count("dropped_for_size", datastore)
    if dropped:
        message = "a request depends on more than %d items: what is not kept is marked incomplete"
        log_once("dropped_for_size", "", MOST_HELD, message, MOST_HELD)
    return left


def readable(subject: str, text: str | bytes) -> Lineage:
    """The lineage of *text*; ``incomplete`` (*subject*, ``unreadable``) where it is none.

    The latter is counted, and logged once for each subject and reason.

    Args:
        subject: whose writes are missing then: a datastore, a service, or ``baggage``.
        text: what came with a request, a message, a response or a value.
    """
    try:
        return received(text if isinstance(text, str) else text.decode("ascii"))
    except UnicodeDecodeError:
        return unreadable(subject, "lineage_alphabet")
    except LineageDecodeError as error:
        return unreadable(subject, error.code)


def unreadable(subject: str, why: str) -> Lineage:
    """The lineage that stands for one that cannot be read, for the reason *why*."""
    count("unreadable", subject)
    log_once("unreadable", subject, why, "a lineage of %r is unreadable (%s)", subject, why)
    return Lineage(incomplete=[(subject, "unreadable")])
