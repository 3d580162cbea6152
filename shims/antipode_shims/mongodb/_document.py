"""The one extra field of a document: its lineage, and how to tell that it is still its own.

``_ap: "<digest>|<lineage>"`` belongs to the value with that digest, ``-|<lineage>`` to a deletion.
A partial update cannot know the whole value: it turns the field into an array, to which each adds
its own lineage as ``~|<lineage>`` *on the server*, so that none overwrites another's. Lineages are
kept as texts rather than as one number for each log, because a text also holds what is no number:
opaque versions, promises, marks of what is missing, and items of later formats.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from enum import Enum
from hashlib import blake2b
from typing import Any

from antipode import Lineage
from antipode.shim import stored_lineage, stored_text, unreadable

#: The extra field.
FIELD = "_ap"
#: How many different lineages of partial updates one document keeps; over it, it says so.
MOST_PARTS = 16

_DELETED = "-"
_PART = "~"
_DIGEST_BYTES = 9


class Match(Enum):
    """How a value and the lineage beside it go together; the values are metric names."""

    OWN = "own"
    ABSENT = "companion_absent"
    FOREIGN = "foreign"
    UNREADABLE = "unreadable"


def digest(value: Any, codec_options: Any) -> str:
    """Twelve characters that tell a value from an overwriting one."""
    import bson

    encoded: bytes = bson.encode({"v": value}, codec_options=codec_options)
    return urlsafe_b64encode(blake2b(encoded, digest_size=_DIGEST_BYTES).digest()).decode("ascii")


def whole(value: Any, lineage: Lineage, codec_options: Any) -> str:
    """What a write of the whole value stores beside it."""
    return f"{digest(value, codec_options)}|{stored_text(lineage)}"


def deleted(lineage: Lineage) -> str:
    """What a deletion leaves behind."""
    return f"{_DELETED}|{stored_text(lineage)}"


def merged(lineage: Lineage) -> dict[str, Any]:
    """The aggregation expression by which a server adds *lineage* to what is stored.

    Over :data:`MOST_PARTS` different ones the oldest go, and a mark says that they did. It names no
    datastore, because they may have been about any: no fence of one stands for them.
    """
    part = [f"{_PART}|{stored_text(lineage)}"]
    full = [f"{_PART}|{stored_text(Lineage(incomplete=[('', 'size')]))}"]
    held: dict[str, Any] = {
        "$switch": {
            "branches": [
                {"case": {"$isArray": [f"${FIELD}"]}, "then": f"${FIELD}"},
                {"case": {"$eq": [{"$type": f"${FIELD}"}, "missing"]}, "then": []},
            ],
            "default": [f"${FIELD}"],
        }
    }
    others = {"$filter": {"input": held, "cond": {"$not": {"$in": ["$$this", [*part, *full]]}}}}
    kept = {"$slice": ["$$others", 1 - MOST_PARTS]}
    marked = {"$or": [{"$gte": [{"$size": "$$others"}, MOST_PARTS]}, {"$in": [full[0], held]}]}
    added = {"$concatArrays": [{"$cond": [marked, full, []]}, kept, part]}
    return {"$let": {"vars": {"others": others}, "in": added}}


def found(value: Any, beside: Any, datastore: str, codec_options: Any) -> tuple[Lineage, Match]:
    """The lineage beside *value*, and whether it is its own.

    Foreign and absent ones give an empty lineage: nothing is known about who wrote the value.
    What cannot be read gives a lineage that says so.
    """
    if beside is None:
        return Lineage(), Match.ABSENT
    if isinstance(beside, list):
        parts = [_part(each, datastore) for each in beside]
        return Lineage().merge(*parts), Match.OWN
    mark, bar, text = beside.partition("|") if isinstance(beside, str) else ("", "", "")
    if not bar:
        return unreadable(datastore, "document_field"), Match.UNREADABLE
    if mark != digest(value, codec_options):
        return Lineage(), Match.FOREIGN
    return stored_lineage(datastore, text), Match.OWN


def tombstone(beside: Any, datastore: str) -> Lineage:
    """The lineage that a deletion left behind."""
    return Lineage() if beside is None else _part(beside, datastore)


def _part(beside: Any, datastore: str) -> Lineage:
    _, bar, text = beside.partition("|") if isinstance(beside, str) else ("", "", "")
    return stored_lineage(datastore, text) if bar else unreadable(datastore, "document_field")
