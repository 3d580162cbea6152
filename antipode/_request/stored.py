"""Lineages that are stored with values, and found there."""

from __future__ import annotations

from antipode._lineage.grammar import MAX_TEXT, MEMBER_OVERHEAD
from antipode._lineage.lineage import Lineage, without_notes
from antipode._runtime import observers
from antipode._runtime.config import config

from .context import scope_in
from .lineage_text import encode_bounded, readable
from .open_writes import OPEN, tell_of_unsent
from .scope import BRANCHED


def tell_of_stored(*, within: object = None) -> None:
    """Count, and log, a lineage that is stored while its request has writes nobody sees yet.

    Args:
        within: the identity of the connection, or the datastore, whose transaction stores it.
    """
    if not OPEN or (scope := scope_in()) is None or not scope.attached:
        return
    told = tell_of_unsent(scope, within=within)
    if told and (observer := observers.dry_run) is not None:
        observer.unsent(scope, told)


@observers.own_time
def stored_text(
    lineage: Lineage, *, room: int = MAX_TEXT, within: object = None, tells: bool = True
) -> str:
    """What to store with a value, or to put into a message, for *lineage*.

    Within ``max_lineage_bytes`` and ``egress``, as every lineage that leaves the process: what
    does not fit, or may not leave, is marked as missing in the text. It says how many
    branches of the current request still run.

    Args:
        lineage: what the value depends on.
        room: bytes that the text may have at most, where the store has less for it.
        within: the identity (``id``) of the connection, or the name of the datastore, whose open
            transaction stores it: of the others' transactions it is counted that it is too early.
        tells: whether that is counted here; a client that says so itself uses
            :func:`tell_of_stored`.

    Raises:
        LineageTooLarge: *room* is too small for the mark itself.
    """
    if tells and OPEN:
        tell_of_stored(within=within)
    if lineage.unknown:
        lineage = without_notes(lineage)
    if BRANCHED[0] and (held := scope_in()) is not None:
        lineage = lineage.branching(held.open_branches)
    settings, recorder = config(), observers.history
    text = encode_bounded(
        lineage,
        max_bytes=min(settings.max_lineage_bytes, room + MEMBER_OVERHEAD),
        egress=settings.egress,
        notes=frozenset() if recorder is None else recorder.label(),
    )
    observers.telemetry.left("stored", text, lineage)
    return text


@observers.own_time
def stored_lineage(datastore: str, text: str | bytes | None) -> Lineage:
    """The lineage that was stored with a value of *datastore*.

    None, nothing stored, is the empty lineage. A text that cannot be read is never taken for
    it: it becomes ``incomplete`` (*datastore*, ``unreadable``), counted and logged.
    """
    if text is None:
        return Lineage()
    return unlabelled(readable(datastore, text))


def unlabelled(found: Lineage) -> Lineage:
    """The lineage *found* stored with a value, without the notes in it, which say who wrote it."""
    if (recorder := observers.history) is not None:
        recorder.found(found.unknown)
    return without_notes(found) if found.unknown else found
