"""The lineage of an event that the store emits: a record of a table's stream."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from antipode import Lineage, WriteId
from antipode.shim import SYSTEM_CLOCK, of_an_event

from ._format import STAMP, stamp_of
from ._position import STAMPER, Place, deletes, item_of

_MOST_STAMP = 2**64 - 1
_REMOVED = "REMOVE"
_EVENTS = frozenset({"INSERT", "MODIFY", _REMOVED})


@of_an_event
def lineage(datastore: str, stream_record: Mapping[str, Any], *, table: str = "") -> Lineage:
    """What a record of a table's stream depends on: the write that it reports. Nobody is asked.

    A write of an instrumented client has a stamp, which the record shows where the stream has new
    images, and for a change old ones, too. What has none is waited for as of now: until the region
    of the reader shows of that item what the region of the stream shows.

    Args:
        datastore: the name that every service spells alike, of the table's items.
        stream_record: as Lambda gets it or ``GetRecords`` returns it; or an event with ``Records``.
        table: its table, where the record does not name it: ``GetRecords`` does not.

    Returns:
        The write; as of now, it is a covering one.

    Raises:
        ValueError: it is no such record, or names no item.
    """
    found = Lineage()
    for each in _records_of(stream_record):
        found = found.append(_write(datastore, each, table))
    return found


def _records_of(event: object) -> Iterator[Mapping[str, Any]]:
    """The records in what Lambda gets, or the one that it is.

    Raises:
        ValueError: it is none.
    """
    held: Any = event.get("Records", [event]) if isinstance(event, Mapping) else None
    if not isinstance(held, list) or not held or not all(map(_is_record, held)):
        raise ValueError(f"it is no record of a stream of DynamoDB: {str(event)[:80]!r}")
    yield from held


def _is_record(each: object) -> bool:
    if not isinstance(each, Mapping):
        return False
    return each.get("eventName") in _EVENTS and isinstance(each.get("dynamodb"), Mapping)


def _write(datastore: str, record: Mapping[str, Any], table: str) -> WriteId:
    """What one record reports.

    Raises:
        ValueError: it names no item.
    """
    told: Any = record["dynamodb"]
    named = table or str(record.get("eventSourceARN") or record.get("tableName") or "")
    keys: Any = told.get("Keys")
    item = item_of(named, _plain(keys), None) if isinstance(keys, Mapping) and named else None
    key = "" if item is None else item.named(str(record.get("awsRegion")))
    if Place.parse(key) is None:
        msg = f"a record of a stream of DynamoDB that names no item: {keys!r} of table {named!r}"
        raise ValueError(f"{msg}; table='...' says which table it is of")
    removed = record["eventName"] == _REMOVED
    stamp = None if removed else _stamp(told, changed=record["eventName"] == "MODIFY")
    version = STAMPER.next(deleted=removed) if stamp is None else stamp
    return WriteId(datastore, key, version, SYSTEM_CLOCK.hour(), covering=stamp is None)


def _stamp(told: Mapping[str, Any], *, changed: bool) -> int | None:
    """The stamp of the write itself; None where it has none, or may have left that of another."""
    new, old = told.get("NewImage"), told.get("OldImage")
    stamp = stamp_of(new.get(STAMP)) if isinstance(new, Mapping) else None
    if stamp is None or not 0 < stamp <= _MOST_STAMP or deletes(stamp):
        return None
    if changed and not (isinstance(old, Mapping) and stamp_of(old.get(STAMP)) != stamp):
        return None
    return stamp


def _plain(keys: Mapping[str, Any]) -> dict[str, Any]:
    """The key's attributes as a client has them: Lambda gets bytes in Base64."""
    found: dict[str, Any] = {}
    for name, held in keys.items():
        value = held.get("B") if isinstance(held, Mapping) else None
        found[name] = dict(held) if isinstance(held, Mapping) else held
        if isinstance(value, str):
            try:
                found[name] = {"B": base64.b64decode(value, validate=True)}
            except binascii.Error:
                found[name] = None
    return found
