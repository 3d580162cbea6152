"""What an SQL database knows of calls: to show one, and to remove those that nobody repeats."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import func, select, tuple_

from ._conversation import DONE
from ._table import CALLS

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

#: What stands before a key or an id of a message in a name.
_KINDS = ("", "key:", "message:", "call:")


@dataclass(frozen=True, slots=True)
class KnownCall:
    """One effect of a call.

    Attributes:
        caller: whose call it is; empty where nobody said.
        name: of the call.
        effect: which of its effects.
        digest: of the declared arguments.
        state: ``done``, or ``running`` for a name that was committed without a reply: in doubt.
        status: of the reply: 200, or 400 for a decline; None without a reply.
        lineage: the text of what the first one's request depended on before its commit.
        age_s: seconds since its transaction began, by the database's clock.
    """

    caller: str
    name: str
    effect: str
    digest: str
    state: str
    status: int | None
    lineage: str
    age_s: float


def known(engine: Engine, name: str) -> list[KnownCall]:
    """What is known of the calls *name*, of any caller: a name, a key or a message's id.

    A call whose transaction is open is not seen.
    """
    columns = CALLS.c
    found = (
        select(
            columns.caller,
            columns.name,
            columns.effect,
            columns.digest,
            columns.state,
            columns.status,
            columns.lineage,
            columns.began_at,
        )
        .where(columns.name.in_([kind + name for kind in _KINDS]))
        .order_by(columns.began_at, columns.caller, columns.effect)
    )
    with engine.connect() as connection:
        now = _now(connection)
        return [
            KnownCall(*row[:6], row.lineage or "", (now - row.began_at).total_seconds())
            for row in connection.execute(found)
        ]


def sweep(engine: Engine, *, older_than_s: float, batch: int = 500) -> int:
    """Remove replies of calls that nobody repeats any more; how many they were.

    Rows are removed in transactions of *batch* each, by their keys, so that no writer waits longer
    than for one of them. A name without a reply stays: it is in doubt.

    Args:
        engine: of the database.
        older_than_s: seconds since the call began; longer than any caller tries again.
        batch: rows of a transaction.

    Raises:
        ValueError: *older_than_s* is negative, or *batch* is less than one.
    """
    if older_than_s < 0 or batch < 1:
        msg = f"older_than_s={older_than_s} and batch={batch}: none of them may be negative"
        raise ValueError(msg)
    columns = CALLS.c
    keys = (columns.caller, columns.name, columns.effect)
    removed = 0
    with engine.connect() as connection:
        before = _now(connection) - timedelta(seconds=older_than_s)
        old = (columns.began_at < before) & (columns.state == DONE)
        while True:
            some = connection.execute(select(*keys).where(old).limit(batch)).all()
            connection.rollback()  # Nothing is held while it is decided what goes.
            if not some:
                return removed
            here = tuple_(*keys).in_([tuple(row) for row in some])
            removed += connection.execute(CALLS.delete().where(here, old)).rowcount
            connection.commit()


def _now(connection: Connection) -> datetime:
    """The time of the database, as it has times of rows."""
    now: datetime = connection.execute(select(func.now())).scalar_one()
    return now
