"""How a document's positions stay bounded though updates by operators add to them.

An expression can count, and keeps :data:`MOST_LOGS`. An operator cannot: so of the statements that
add positions by operators a random one in :data:`ONE_IN` is preceded by a command that compacts the
documents it is about, if they have too many. At random, as any rhythm could go together with one
of the application's and spare the same documents for ever.
"""

from __future__ import annotations

from secrets import randbelow
from typing import TYPE_CHECKING, Any

from antipode_shims.mongodb._format.document import compacted, too_many
from antipode_shims.mongodb._position.reply import ASK

from .bson import Element, join

if TYPE_CHECKING:
    from collections.abc import Sequence

#: How many statements that add positions by operators there are to one that compacts.
ONE_IN = 16
#: For how long a compaction may stand in the way of the application's update.
_MOST_MS = 1_000
_COPIED = {b"collation", b"hint"}


def sampled() -> bool:
    """Whether a statement is one of those that compact."""
    return randbelow(ONE_IN) == 0


def statement(parts: Sequence[Element]) -> dict[str, Any] | None:
    """What compacts the documents that a statement of an update is about.

    Args:
        parts: its fields, or those of a ``findAndModify``.
    """
    from bson.raw_bson import RawBSONDocument

    made: dict[str, Any] = {"u": [compacted()], "multi": False}
    for each in parts:
        if each.name in (b"q", b"query"):
            made["q"] = {"$and": [RawBSONDocument(each.value), too_many()]}
        elif each.name == b"multi":
            made["multi"] = each.value != b"\0"
        elif each.name in _COPIED:
            alone = join([each])
            made[each.name.decode("ascii")] = RawBSONDocument(alone)[each.name.decode("ascii")]
    return made if "q" in made else None


def compact(collection: str, statements: list[dict[str, Any]]) -> dict[str, Any]:
    """The command of *statements*; it asks as Table 2 does, and so it is sent as it is."""
    return {
        "update": collection,
        "updates": statements,
        "ordered": False,
        "maxTimeMS": _MOST_MS,
        "writeConcern": {"w": 1},
        **ASK,
    }
