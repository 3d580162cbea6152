"""The lineage of an event that the store emits: a notification of a bucket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote_plus

from antipode import Lineage, WriteId
from antipode.shim import SYSTEM_CLOCK, of_an_event

from ._position import NO_VERSION, Place

#: Events of a write that has a version, by how their names begin.
_WRITTEN = (
    "ObjectCreated:",
    "ObjectRemoved:DeleteMarkerCreated",
    "LifecycleExpiration:DeleteMarkerCreated",
)
#: Events that change nothing that is read of an object.
_NEITHER = ("IntelligentTiering", "LifecycleTransition", "ObjectRestore:", "Replication:")
#: How EventBridge calls these.
_CREATED, _DELETED = "Object Created", "Object Deleted"
_MARKED = "Delete Marker Created"
_TIERED = frozenset(
    {
        "Object Access Tier Changed",
        "Object Restore Completed",
        "Object Restore Expired",
        "Object Restore Initiated",
        "Object Storage Class Changed",
    }
)


@of_an_event
def lineage(datastore: str, event: Mapping[str, Any]) -> Lineage:
    """What an event of a bucket depends on: the version that it reports. Nobody is asked.

    Args:
        datastore: the name that every service spells alike, of the bucket's objects.
        event: what S3 sends to Lambda, SQS or SNS, with its ``Records`` or one of these; or what
            EventBridge delivers.

    Returns:
        The versions; empty for the event that S3 sends as a test. Incomplete (``unsampled``) for
        what has none: a bucket without versioning, a version that was deleted for good, a tag. A
        version that was never in such a bucket has an entry that barriers refuse.

    Raises:
        ValueError: it is no event of S3, or names no object.
    """
    found = Lineage()
    for each in records_of(event):
        found = found.merge(_of(datastore, each))
    return found


def records_of(event: object) -> Iterator[Mapping[str, Any]]:
    """The records in an event of S3, however it is delivered.

    Raises:
        ValueError: it is none.
    """
    if not is_event(event):
        raise ValueError(f"it is no event of S3: {str(event)[:80]!r}")
    held: Any = event
    yield from held["Records"] if "Records" in held else () if _is_test(held) else (held,)


def is_event(event: object) -> bool:
    """Whether *event* is one of S3, or one of its records."""
    if not isinstance(event, Mapping):
        return False
    if isinstance(records := event.get("Records"), list):
        return bool(records) and all(_is_record(each) for each in records)
    return _is_record(event) or _is_test(event)


def _is_record(each: object) -> bool:
    if not isinstance(each, Mapping):
        return False
    if each.get("source") == "aws.s3":
        return isinstance(each.get("detail"), Mapping)
    return str(each.get("eventSource")).endswith(":s3") and isinstance(each.get("s3"), Mapping)


def _is_test(event: Mapping[str, Any]) -> bool:
    return event.get("Event") == "s3:TestEvent"


def _of(datastore: str, record: Mapping[str, Any]) -> Lineage:
    """What one record says.

    Raises:
        ValueError: it names no object.
    """
    bridged = "detail" in record
    held: Any = record["detail"] if bridged else record["s3"]
    bucket, made = (_mapping(held.get(name)) for name in ("bucket", "object"))
    key = made.get("key") if bridged else unquote_plus(str(made.get("key", "")))
    region = str(record.get("region" if bridged else "awsRegion"))
    place = Place.of(bucket.get("name"), key, region)
    if place is None or Place.parse(place.named) != place:
        raise ValueError(f"an event of S3 that names no object: {key!r} of {bucket.get('name')!r}")
    if (writes := _writes(record, held)) is None:
        return Lineage()
    version = made.get("version-id" if bridged else "versionId", NO_VERSION)
    if not writes or not (isinstance(version, str) and version) or version == NO_VERSION:
        return Lineage(incomplete=[(datastore, "unsampled")])
    return Lineage([WriteId(datastore, place.named, version, SYSTEM_CLOCK.hour())])


def _mapping(held: object) -> Mapping[str, Any]:
    return held if isinstance(held, Mapping) else {}


def _writes(record: Mapping[str, Any], held: Mapping[str, Any]) -> bool | None:
    """Whether it is of a write that has a version; None where nothing that is read changed."""
    if "detail" in record:
        kind = record.get("detail-type")
        if kind in _TIERED:
            return None
        return kind == _CREATED or (kind == _DELETED and held.get("deletion-type") == _MARKED)
    name = str(record.get("eventName")).removeprefix("s3:")
    return None if name.startswith(_NEITHER) else name.startswith(_WRITTEN)
