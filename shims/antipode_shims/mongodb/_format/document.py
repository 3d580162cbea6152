"""The one extra field of a document: its lineage, and how to know that it is still its own.

``_ap: {w: "<digest>|<lineage>"}`` belongs to the value with that digest. A native client knows no
one value: it writes ``w: "~|<lineage>"`` with a whole document, or a single position as below. A
partial update adds to that *on the server*, so that none overwrites another's:

- ``l.<log>: {v, h}``, the largest position of a log and the hour that goes with it, by ``$max``. So
  a thousand updates of one log are one entry.
- ``p: ["~|<lineage>", ...]``, texts, for what is no number: opaque versions, promises, marks of
  what is missing, items of later formats. The newest are kept; one more than :data:`MOST_PARTS`
  says that older ones went.
- ``b``, the insertion mark of a document that an update made: deletions before it left more.
- ``d``, that of more than :data:`MOST_LOGS` positions some were dropped.

A tombstone has ``l`` and ``p`` alone; in the first drafts it was a text, ``_ap: "-|<lineage>"``.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from enum import Enum
from hashlib import sha256
from typing import Any

from antipode import Lineage
from antipode.shim import stored_lineage, stored_text, unlabelled, unreadable

from .numbers import MOST_LOGS, lineage_of

#: The extra field.
FIELD = "_ap"
#: How many lineages of partial updates one document keeps as texts; over it, it says so.
MOST_PARTS = 16

#: What says that parts went. It names no datastore: they may have been about any, and no fence of
#: one stands for them.
SIZE = ("", "size")

_PART = "~"
_DIGEST_BYTES = 9
_WHOLE, _LOGS, _PARTS, _BIRTH, _DROPPED = "w", "l", "p", "b", "d"
_KEYS = {_WHOLE, _LOGS, _PARTS, _BIRTH, _DROPPED}


class Match(Enum):
    """How a value and its stored lineage go together; the values are metric names."""

    OWN = "own"
    ABSENT = "companion_absent"
    FOREIGN = "foreign"
    UNREADABLE = "unreadable"


def digest(value: Any, codec_options: Any) -> str:
    """Twelve characters that distinguish a value from an overwriting one."""
    import bson

    encoded: bytes = bson.encode({"v": value}, codec_options=codec_options)
    return urlsafe_b64encode(sha256(encoded).digest()[:_DIGEST_BYTES]).decode("ascii")


def whole(value: Any, lineage: Lineage, codec_options: Any) -> dict[str, str]:
    """What a write of the whole value stores with it."""
    return {_WHOLE: f"{digest(value, codec_options)}|{stored_text(lineage)}"}


def whole_document(lineage: Lineage, numbers: dict[str, dict[str, Any]] | None) -> dict[str, Any]:
    """What a write of a whole document of the application's own stores in it.

    One position is stored as updates would raise it, so that they add nothing to the document.
    """
    if numbers and len(numbers) == 1:
        return {_LOGS: numbers}
    return {_WHOLE: part(lineage)}


def part(lineage: Lineage) -> str:
    """A lineage that is nobody's alone. Who stores it says whether it is too early."""
    return f"{_PART}|{stored_text(lineage, tells=False)}"


def pushed(text: str) -> dict[str, Any]:
    """The update operator by which a server adds the part *text*.

    It cannot mark that it dropped one: a list with one more than it may have says so.
    """
    return {f"{FIELD}.{_PARTS}": {"$each": [text], "$slice": -1 - MOST_PARTS}}


def raised(numbers: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The update operator by which a server keeps the larger positions."""
    return {f"{FIELD}.{_LOGS}.{log}": each for log, each in numbers.items()}


def born(birth: str) -> dict[str, Any]:
    """What an upsert by operators sets on insert."""
    return {f"{FIELD}.{_BIRTH}": birth}


def added(
    lineage: Lineage, numbers: dict[str, dict[str, Any]] | None, birth: str | None = None
) -> dict[str, Any]:
    """The aggregation expression by which a server adds *lineage* to what is stored.

    Args:
        lineage: what is added.
        numbers: the same as positions, where those say all of it.
        birth: the insertion mark of a document that is made.
    """
    made = _with_part(lineage) if not numbers else _with_larger(numbers)
    if birth is None:
        return made
    missing = {"$eq": [{"$type": f"${FIELD}"}, "missing"]}
    return {"$mergeObjects": [made, {"$cond": [missing, {_BIRTH: {"$literal": birth}}, {}]}]}


def _with_part(lineage: Lineage) -> dict[str, Any]:
    """Over :data:`MOST_PARTS` different texts the oldest go, and :data:`SIZE` says so."""
    text = [part(lineage)]
    full = [part(Lineage(incomplete=[SIZE]))]
    others = {"$filter": {"input": "$$held", "cond": {"$not": {"$in": ["$$this", text + full]}}}}
    kept = {"$slice": ["$$others", 1 - MOST_PARTS]}
    marked = {"$or": [{"$gte": [{"$size": "$$others"}, MOST_PARTS]}, {"$in": [full[0], "$$held"]}]}
    texts = {"$concatArrays": [{"$cond": [marked, full, []]}, kept, text]}
    parts = {"$let": {"vars": {"others": others}, "in": texts}}
    held = {"$ifNull": [f"$$whole.{_PARTS}", []]}
    merged = {_PARTS: {"$let": {"vars": {"held": held}, "in": parts}}}
    return {"$let": {"vars": {"whole": _held()}, "in": {"$mergeObjects": ["$$whole", merged]}}}


def _with_larger(numbers: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Over :data:`MOST_LOGS` positions those go that no expression raised for the longest."""
    raised_logs = {
        log: {"$max": [{"$literal": each}, f"${FIELD}.{_LOGS}.{log}"]}
        for log, each in numbers.items()
    }
    held = {"$objectToArray": {"$ifNull": [f"${FIELD}.{_LOGS}", {}]}}
    others = {"$filter": {"input": held, "cond": {"$not": {"$in": ["$$this.k", [*numbers]]}}}}
    most = MOST_LOGS - len(numbers)
    kept = {"$arrayToObject": {"$slice": ["$$others", -most]}}
    logs = {_LOGS: {"$mergeObjects": [kept, raised_logs]}}
    mark = {"$cond": [{"$gt": [{"$size": "$$others"}, most]}, {_DROPPED: True}, {}]}
    return {"$let": {"vars": {"others": others}, "in": {"$mergeObjects": [_held(), logs, mark]}}}


def too_many() -> dict[str, Any]:
    """The filter of documents that have more than :data:`MOST_LOGS` positions."""
    logs = f"${FIELD}.{_LOGS}"
    counted = {"$cond": [{"$eq": [{"$type": logs}, "object"]}, logs, {}]}
    return {"$expr": {"$gt": [{"$size": {"$objectToArray": counted}}, MOST_LOGS]}}


def compacted() -> dict[str, Any]:
    """The stage that drops what such documents have too many of, and says so."""
    kept = {"$slice": [{"$objectToArray": f"${FIELD}.{_LOGS}"}, -MOST_LOGS]}
    return {"$set": {FIELD: {_LOGS: {"$arrayToObject": kept}, _DROPPED: True}}}


def _held() -> dict[str, Any]:
    """What is stored; a deletion's text, or what a plain client put there, becomes a part."""
    return {
        "$switch": {
            "branches": [
                {"case": {"$eq": [{"$type": f"${FIELD}"}, "object"]}, "then": f"${FIELD}"},
                {"case": {"$eq": [{"$type": f"${FIELD}"}, "missing"]}, "then": {}},
            ],
            "default": {_PARTS: [f"${FIELD}"]},
        }
    }


def found(value: Any, beside: Any, datastore: str, codec_options: Any) -> tuple[Lineage, Match]:
    """The lineage stored with *value*, and whether it is its own.

    Foreign and absent ones give an empty lineage: nothing is known about who wrote the value.
    What cannot be read gives a lineage that says so.
    """
    if beside is None:
        return Lineage(), Match.ABSENT
    if isinstance(beside, Mapping) and set(beside) == {_WHOLE}:
        mark, bar, _ = str(beside[_WHOLE]).partition("|")
        if bar and mark not in (_PART, digest(value, codec_options)):
            return Lineage(), Match.FOREIGN
    return held_in(beside, datastore)


def held_in(beside: Any, datastore: str) -> tuple[Lineage, Match]:
    """The lineage in a document, whatever its values are."""
    if beside is None:
        return Lineage(), Match.ABSENT
    if isinstance(beside, (str, list)):  # As the first drafts of the format had it.
        beside = {_PARTS: beside if isinstance(beside, list) else [beside]}
    if not isinstance(beside, Mapping) or not beside or not _KEYS.issuperset(beside):
        return unreadable(datastore, "document_field"), Match.UNREADABLE
    if not isinstance(beside.get(_BIRTH, ""), str):
        return unreadable(datastore, "document_field"), Match.UNREADABLE
    parts: Any = beside.get(_PARTS, [])
    texts = [*parts] if isinstance(parts, list) else [None]
    lineage = Lineage()
    if len(texts) > MOST_PARTS or _DROPPED in beside:
        lineage = lineage.marked(SIZE)
    if _WHOLE in beside:
        texts.append(beside[_WHOLE])
    lineage = lineage.merge(*(_part(each, datastore) for each in texts))
    if _LOGS in beside:
        logs = lineage_of(beside[_LOGS])
        lineage = lineage.merge(
            unlabelled(logs) if logs else unreadable(datastore, "document_field")
        )
    return lineage, Match.OWN


def birth_of(beside: Any) -> str | None:
    """The insertion mark of a document, by which more is found; see :mod:`.tombstones`."""
    mark = beside.get(_BIRTH) if isinstance(beside, Mapping) else None
    return mark if isinstance(mark, str) else None


def tombstone(beside: Any, datastore: str) -> Lineage:
    """The lineage that a deletion left."""
    if isinstance(beside, Mapping):
        return held_in(beside, datastore)[0]
    return Lineage() if beside is None else _part(beside, datastore)


def _part(beside: Any, datastore: str) -> Lineage:
    _, bar, text = beside.partition("|") if isinstance(beside, str) else ("", "", "")
    return stored_lineage(datastore, text) if bar else unreadable(datastore, "document_field")
