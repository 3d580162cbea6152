"""The records of promises: a key each, written in the transaction of the data. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import Promise, PromiseAbandoned, Status
from antipode.shim import record_seconds
from antipode_shims.redis._position import INFO, InfoError

if TYPE_CHECKING:
    from collections.abc import Collection

    from antipode_shims.redis._commands import Command
    from antipode_shims.redis._position import ReplicationState

FULFILLED = "fulfilled"
ABANDONED = "abandoned"


def record_key(promise: Promise, prefix: str) -> str:
    """The key of a record; its prefix is that of companions, whose changes servers push."""
    return f"{prefix}promise:{promise.id}"


def set_record(promise: Promise, prefix: str, record: str) -> Command:
    """What writes a record, unless there is one: the first stays."""
    seconds = record_seconds(promise)
    return "SET", record_key(promise, prefix), record, "EX", seconds, "NX"


def watch_record(promise: Promise, prefix: str) -> list[Command]:
    """What makes the transaction that follows fail if another record comes first."""
    key = record_key(promise, prefix)
    return [("WATCH", key), ("GET", key)]


def look_up(promises: Collection[Promise], prefix: str) -> Command:
    """What reads the records of *promises*, in their order."""
    return "MGET", *(record_key(promise, prefix) for promise in promises)


def asking(promises: Collection[Promise], prefix: str, *more: Command) -> list[Command]:
    """The packet that asks for the position and for records, all at one moment."""
    return [("MULTI",), INFO, look_up(promises, prefix), *more, ("EXEC",)]


def answered(replies: list[Any]) -> list[Any]:
    """What was answered within a transaction that only asked.

    Raises:
        InfoError: the server refused it.
    """
    answers = replies[-1]
    refusals = [reply for reply in (*replies, *_items(answers)) if isinstance(reply, Exception)]
    if refusals or not isinstance(answers, (list, tuple)):
        why = refusals[0] if refusals else None
        msg = f"the records of promises cannot be read: {why or answers!r}"
        raise InfoError(msg) from why
    return list(answers)


def _items(answers: Any) -> Collection[Any]:
    return answers if isinstance(answers, (list, tuple)) else ()


def shown(
    promises: Collection[Promise], records: Any, state: ReplicationState
) -> dict[Promise, Status]:
    """What *records*, the reply to :func:`look_up`, show of *promises*.

    Nothing, as if nobody had asked, while a replica's data is being replaced.
    """
    if not state.primary and state.syncing:
        return {}
    return {
        promise: _STATUSES.get(_text(record), Status.NOT_YET)
        for promise, record in zip(promises, records, strict=True)
    }


_STATUSES = {FULFILLED: Status.VISIBLE, ABANDONED: Status.ABANDONED}


def refuse_abandoned(promise: Promise, record: Any) -> None:
    """Refuse to fulfil what was given up.

    Raises:
        PromiseAbandoned: *record* says so.
    """
    if _text(record) == ABANDONED:
        msg = f"{promise} was abandoned: nothing was written"
        raise PromiseAbandoned(msg)


def is_abandoned(record: Any) -> bool:
    """Whether a record says that its promise was given up."""
    return _text(record) == ABANDONED


def _text(record: Any) -> str:
    return record.decode("utf-8", "replace") if isinstance(record, bytes) else str(record)
