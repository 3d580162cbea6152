"""S3: versions and the buckets that have them, operations, metadata of objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import Lineage, WriteId
from antipode_shims._aws.call import Kind
from antipode_shims._aws.homes import Homes
from antipode_shims.s3._commands import kind_of
from antipode_shims.s3._format import labelled, lineage_in
from antipode_shims.s3._look import Shown, look
from antipode_shims.s3._position import Place
from tests.agent._values import of_lineage, write_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_shims.s3._look import Answer, Question
    from antipode_shims.s3._position import Version

    Given = Mapping[str, Any]

_KINDS = {
    Kind.READ: "read",
    Kind.WRITE: "write",
    Kind.OTHER: "unknown",
    Kind.NEUTRAL: "neither",
}


def look_at(given: Given) -> dict[str, list[str]]:
    """What the last of so many polls says of each write."""
    server = given["server"]
    writes = [
        write_at({k: v for k, v in each.items() if k != "status"}) for each in given["writes"]
    ]
    homes: Homes[Shown] = Homes()
    shown: Any = None
    for _ in range(given.get("looks", 1)):
        steps = look(writes, server["region"], server.get("buckets", {}), homes)
        try:
            question = next(steps)
            while True:
                question = steps.send(_answer(server, question))
        except StopIteration as end:
            shown = end.value
    return {"statuses": [str(shown.statuses[each]) for each in writes]}


def _answer(server: Given, question: Question) -> Answer | Exception:
    buckets = server["regions"].get(question.region or server["region"])
    if buckets is None:
        return OSError("away")
    return {each: _shown(buckets, each, whole=question.whole) for each in question.versions}


def _shown(buckets: Given, version: Version, *, whole: bool) -> Shown | None:
    """A version of a bucket, whose keys have theirs from the oldest on."""
    if version.bucket not in buckets:
        return None
    held = buckets[version.bucket].get(version.key, [])
    for each in held:
        if each["version"] == version.version:
            return Shown(present=True, replication=each.get("replication", ""))
    newest = held[-1]["version"] if held and whole else ""
    return Shown(present=False, newest=newest)


def keys(given: Given) -> dict[str, list[str] | None]:
    """How an object is named as something that was written in a region."""
    place = Place.of(given["bucket"], given["key"], given["region"])
    if place is None:
        return {"keys": None}
    assert Place.parse(place.named) == place, "a reader finds the same object"
    return {"keys": [place.named]}


def command(given: Given) -> dict[str, str]:
    """What one operation does."""
    ((operation, params),) = given["command"].items()
    return {"does": _KINDS[kind_of(operation, params)]}


def found(given: Given) -> dict[str, Any]:
    """What a reader makes of an object's metadata."""
    return {"lineage": of_lineage(lineage_in(given["metadata"], "posts"))}


def label(given: Given) -> dict[str, Any]:
    """The metadata with which an object is put; null where there is no room for ours."""
    lineage = Lineage([WriteId("else", "log", 7, 500_000)])
    sent = labelled({"m": "x" * given["others"]}, lineage)
    return {"sent": None if sent is None else sorted(sent)}
