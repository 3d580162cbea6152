"""The records of promises in one region's file: columns of the rows of its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode import PromiseAbandoned, Status

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection

    from antipode import Promise

_RECORD = "SELECT record FROM log WHERE promise = ?"
_JUDGED = {None: Status.NOT_YET, "fulfilled": Status.VISIBLE, "abandoned": Status.ABANDONED}


def judged(connection: sqlite3.Connection, promises: Collection[Promise]) -> dict[Promise, Status]:
    """What the file of *connection* shows of *promises*."""
    return {each: _JUDGED[record_of(connection, each)] for each in promises}


def record_of(connection: sqlite3.Connection, promise: Promise) -> str | None:
    """``fulfilled`` or ``abandoned``; None where *promise* has no record."""
    row = connection.execute(_RECORD, (promise.id,)).fetchone()
    return None if row is None else row[0]


def fulfilment(
    connection: sqlite3.Connection, promise: Promise | None
) -> tuple[str, str] | tuple[None, None]:
    """What a row holds that fulfils *promise*: nothing, where another did already.

    Raises:
        PromiseAbandoned: it was abandoned.
    """
    record = None if promise is None else record_of(connection, promise)
    if promise is None or record == "fulfilled":
        return None, None
    if record == "abandoned":
        raise PromiseAbandoned(f"{promise} was abandoned: nothing was written")
    return promise.id, "fulfilled"
