"""The records of promises: items of one table, and how a transaction writes them. No I/O.

A transaction writes a record together with its data, and regions copy its items one by one: a
record may come before the data. So it names what its transaction wrote, and counts once all of
that is there. That a promise is given up is not recorded: two regions could record the opposite.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from antipode import Lineage, Promise
from antipode.shim import decode, encode, record_seconds

from ._position import Item

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from antipode import WriteId

#: The table of records; its partition key is the string ``id``.
TABLE = "antipode_promises"
#: The attribute with the writes of a record's transaction.
WRITES = "writes"
#: What an instrumented client fills in; until then the record says nothing.
_OPEN = {"S": ""}


def fulfil(
    actions: Iterable[Mapping[str, Any]], promise: Promise | str, *, table: str = TABLE
) -> list[dict[str, Any]]:
    """The actions of ``TransactWriteItems`` with one more, by which they fulfil *promise*.

    For instrumented clients, which note in it what the transaction writes::

        client.transact_write_items(TransactItems=dynamodb.fulfil([{"Put": {...}}], promise))

    Args:
        actions: what the transaction writes.
        promise: the promise, or its ``token``.
        table: of records, in every region of the data; its partition key is the string ``id``, and
            its attribute for the time to live ``until``.

    Raises:
        LineageDecodeError: *promise* is a text and no token.
    """
    return [*map(dict, actions), {"Put": record(promise, table=table)}]


def record(promise: Promise | str, *, table: str) -> dict[str, Any]:
    """The put of a record that does not name yet what its transaction writes.

    Raises:
        LineageDecodeError: *promise* is a text and no token.
    """
    given = Promise.parse(promise) if isinstance(promise, str) else promise
    until = int(time.time()) + record_seconds(given)
    item = {"id": {"S": given.id}, "until": {"N": str(until)}, WRITES: _OPEN}
    return {"TableName": table, "Item": item}


def is_record(put: Mapping[str, Any]) -> bool:
    """Whether a put of a transaction is of :func:`fulfil`."""
    return put.get("Item", {}).get(WRITES) == _OPEN and set(put["Item"]) == {"id", "until", WRITES}


def naming(put: Mapping[str, Any], writes: Iterable[WriteId]) -> dict[str, Any]:
    """The put of a record, with what its transaction writes."""
    return {**put, "Item": {**put["Item"], WRITES: {"S": encode(Lineage(writes))}}}


def record_of(promise: Promise, table: str) -> Item:
    """The item that says what became of *promise*."""
    return Item(table, (("id", "S", promise.id),))


def writes_in(text: str) -> Lineage | None:
    """What a record says that its transaction wrote; None where it says nothing."""
    try:
        found = decode(text) if text else None
    except ValueError:
        return None
    return found if found is not None and len(found) else None
