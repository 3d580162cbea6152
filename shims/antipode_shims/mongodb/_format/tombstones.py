"""Tombstones: where deletions leave their lineage, and who asks for them.

They lie in ``<collection>.antipode``, one for each deleted ``_id``, and a few for all deletions of
a collection, for who knows no ``_id``. They are written before the deletion, so that whoever has
that has them. A document that an update makes has an *insertion mark*: what was deleted before it
lies there, too. Only the reader can ask: the update cannot read another collection.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any

from antipode import Lineage

from .document import FIELD, tombstone

if TYPE_CHECKING:
    from collections.abc import Iterable

    from antipode_shims.mongodb._position.reply import Reply

#: Tombstones that a collection has for documents whose ids are not known. Several, so that
#: concurrent deletes do not wait for each other.
SLOTS = 8
#: Of deletes whose ids were not known, and of all others.
_UNKNOWN, _KNOWN = "unknown", "known"
_MOST_CACHED = 1_000
_BYTES = 6


def tombstones_of(collection: str) -> str:
    """The collection of the tombstones."""
    return f"{collection}.antipode"


def bury(
    collection: str, ids: list[Any] | None, slot: int, expression: dict[str, Any]
) -> dict[str, Any]:
    """The command that leaves tombstones.

    It merges: a deletion that deletes nothing must not hide the lineage of the one that did.

    Args:
        collection: of the documents.
        ids: of the documents; None where they are not known.
        slot: which of the collection's own tombstones to add to.
        expression: what they hold then.
    """
    stage = {"$set": {FIELD: expression, "at": "$$NOW"}}
    tombstones = [
        *(ids or ()),
        {"antipode": _UNKNOWN if ids is None else _KNOWN, "n": slot % SLOTS},
    ]
    updates = [{"q": {"_id": each}, "u": [stage], "upsert": True} for each in tombstones]
    return {"update": tombstones_of(collection), "updates": updates, "ordered": False}


def search(collection: str, ids: list[Any] | None) -> dict[str, Any]:
    """The command that finds what deletions of *ids*, or of whatever documents, left."""
    kinds = (_UNKNOWN,) if ids is not None else (_UNKNOWN, _KNOWN)
    slots = [{"antipode": kind, "n": number} for kind in kinds for number in range(SLOTS)]
    tombstones = [*(ids or ()), *slots]
    return {
        "find": tombstones_of(collection),
        "filter": {"_id": {"$in": tombstones}},
        "projection": {FIELD: 1},
        "batchSize": len(tombstones),
        "singleBatch": True,
    }


def buried(reply: Reply, datastore: str) -> Lineage:
    """What the tombstones of a reply say."""
    tombstones = reply["cursor"]["firstBatch"]
    return Lineage().merge(*(tombstone(each.get(FIELD), datastore) for each in tombstones))


def birth_mark(collection: str) -> str:
    """What the document that one update may make is marked with: no two have the same."""
    return f"{token_urlsafe(_BYTES)}.{collection}"


def born_in(mark: str) -> str:
    """The collection of the document with that insertion mark; a view has another name."""
    return mark.partition(".")[2]


class Births:
    """What was deleted before documents with an insertion mark, where this client has asked.

    Asking once will do: later deletions end the document. Thread-safe.
    """

    def __init__(self) -> None:
        """Know none."""
        self._known: OrderedDict[str, Lineage] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, mark: str) -> Lineage | None:
        """What is known of one."""
        with self._lock:
            return self._known.get(mark)

    def learn(self, marks: Iterable[str], lineage: Lineage) -> None:
        """Remember what tombstones said after documents with *marks* were seen."""
        with self._lock:
            self._known.update(dict.fromkeys(marks, lineage))
            while len(self._known) > _MOST_CACHED:
                self._known.popitem(last=False)
