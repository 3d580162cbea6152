"""The records of promises: a collection, and what is said to it. No I/O.

A branch that keeps a promise inserts its record in the transaction of its data, so that both are
committed, and applied at each member, together. Whichever record of a promise comes first stays:
an upsert that says the opposite finds no document that fits it, and cannot insert another of that
``_id``.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, Promise, Status
from antipode.shim import Unreachable, record_seconds

if TYPE_CHECKING:
    from collections.abc import Collection

    from antipode_shims.mongodb._look import Conversation, Question

#: The collection, in a database that all clients of a datastore agree on.
COLLECTION = "antipode_promises"
#: What stands for promises where positions of logs are kept: no log has such a name.
MARK = "\0promise "
#: Why a client that does not know where the collection is shows none.
NOWHERE = "this client does not know the database of promises: give it promise_database="

_UNAUTHORIZED = 13
_DUPLICATE = 11000


def promises_ddl() -> tuple[dict[str, Any], ...]:
    """The commands that prepare a database for promises, for whoever runs your migrations.

    They make the collection ``antipode_promises``, and the index by which the server deletes
    records whose time is over; without it they stay. Running them again changes nothing::

        for command in mongodb.promises_ddl():
            database.command(command)
    """
    index = {"key": {"until": 1}, "name": "until", "expireAfterSeconds": 0}
    return ({"createIndexes": COLLECTION, "indexes": [index]},)


def recorded(promise: Promise, *, fulfilled: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Filter and update of the upsert that records what became of *promise*."""
    until = datetime.now(timezone.utc) + timedelta(seconds=record_seconds(promise))
    return {"_id": promise.id, "fulfilled": fulfilled}, {"$setOnInsert": {"until": until}}


def abandoning(database: str, promise: Promise) -> Conversation[bool]:
    """Record that *promise* is abandoned; whether it is, or was fulfilled before.

    Raises:
        Unreachable: the server takes no writes now.
        ConfigurationError: this user may not write there.
    """
    found, change = recorded(promise, fulfilled=False)
    reply = yield (
        database,
        {
            "update": COLLECTION,
            "updates": [{"q": found, "u": change, "upsert": True}],
            "writeConcern": {"w": 1},
        },
    )
    if isinstance(reply, Exception):
        raise _refusal(reply, database, "update")
    errors = reply.get("writeErrors")
    if not errors:
        return True
    if errors[0].get("code") != _DUPLICATE:
        msg = str(errors[0].get("errmsg"))
        raise Unreachable(msg)
    return (yield from records(database, [promise])).get(promise) is Status.ABANDONED


def search(database: str, promises: Collection[Promise], *, majority: bool = False) -> Question:
    """What finds the records of *promises*."""
    return database, {
        "find": COLLECTION,
        "filter": {"_id": {"$in": [promise.id for promise in promises]}},
        "projection": {"fulfilled": 1},
        "batchSize": len(promises),
        "singleBatch": True,
        "readConcern": {"level": "majority" if majority else "local"},
    }


def records(
    database: str, promises: Collection[Promise], *, majority: bool = False
) -> Conversation[dict[Promise, Status]]:
    """Ask for the records of *promises*; those that have none are left out.

    Raises:
        ConfigurationError: this user may not read there.
        Exception: the server answered with another error.
    """
    reply = yield search(database, promises, majority=majority)
    return found_in(reply, database, promises)


def found_in(reply: Any, database: str, promises: Collection[Promise]) -> dict[Promise, Status]:
    """What the reply to :func:`search` says.

    Raises:
        ConfigurationError: this user may not read there.
        Exception: the server answered with another error.
    """
    if isinstance(reply, Exception):
        raise _refusal(reply, database, "find")
    found = {str(each["_id"]): each.get("fulfilled") for each in reply["cursor"]["firstBatch"]}
    return {
        each: Status.VISIBLE if found[each.id] is True else Status.ABANDONED
        for each in promises
        if each.id in found
    }


def _refusal(error: Exception, database: str, action: str) -> Exception:
    if getattr(error, "code", None) != _UNAUTHORIZED:
        return error
    return ConfigurationError(
        f"this user may not {action} the promises in {database}.{COLLECTION}: who fulfils or "
        f"abandons needs find, insert and update there, who waits find ({error})"
    )
