"""Which commands read, write, or do neither.

Static tables, so that results never depend on a question to the server; taken from ``listCommands``
of MongoDB 6.0 and the manual of MongoDB 8.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class Kind(Enum):
    """What a command means for a lineage."""

    READ = "read"
    WRITE = "write"
    OTHER = "other"
    NEUTRAL = "neutral"


#: Writes that enter the lineage of an instrumented client. ``aggregate`` is one if it ends in
#: ``$out`` or ``$merge``, ``mapReduce`` unless its output is inline, ``commitTransaction`` if
#: something was written in the transaction.
COVERED_WRITES = frozenset(
    """
    bulkWrite cloneCollectionAsCapped collMod commitTransaction convertToCapped create
    createIndexes delete deleteIndexes drop dropDatabase dropIndexes findAndModify findandmodify
    insert renameCollection update
    """.split()  # noqa: SIM905 - a table that is read by eye
)

#: Reads that a floor holds back. ``findAndModify`` is one, too.
COVERED_READS = frozenset(
    """
    aggregate collStats count dataSize dbHash dbStats distinct explain find geoSearch getMore
    listCollections listDatabases listIndexes mapReduce validate
    """.split()  # noqa: SIM905 - a table that is read by eye
)

#: Neither reads nor writes data. What is in no table at all may write, and is taken for a write.
_NEUTRAL = frozenset(
    """
    abortTransaction authenticate buildInfo buildinfo configureFailPoint connPoolStats
    connectionStatus currentOp endSessions features getCmdLineOpts getDefaultRWConcern getLog
    getParameter getnonce hello hostInfo isMaster ismaster killAllSessions killCursors killOp
    killSessions listCommands lockInfo logRotate logout ping planCacheListFilters profile
    refreshSessions replSetGetConfig replSetGetRBID replSetGetStatus replSetStepDown
    replSetSyncFrom rolesInfo saslContinue saslStart serverStatus setParameter startSession top
    usersInfo waitForFailPoint whatsmyuri
    """.split()  # noqa: SIM905 - a table that is read by eye
)

#: Covered writes whose reply has the position's term anyway (``opTime``).
TELLING = frozenset({"delete", "insert", "update"})

#: Reads of data besides being writes: a floor holds them back.
READING_WRITES = frozenset({"findAndModify", "findandmodify"})

_KINDS: dict[str, Kind] = {
    name: kind
    for names, kind in (
        (_NEUTRAL, Kind.NEUTRAL),
        (COVERED_READS, Kind.READ),
        (COVERED_WRITES, Kind.WRITE),
    )
    for name in names
}


def kind_of(name: str, command: Mapping[str, Any]) -> Kind:
    """What *command*, whose first key is *name*, means for a lineage."""
    kind = _KINDS.get(name, Kind.OTHER)
    if kind is Kind.READ and (
        (name == "aggregate" and _stores(command.get("pipeline")))
        or (name == "mapReduce" and _maps_out(command.get("out")))
    ):
        return Kind.WRITE
    return kind


def _stores(pipeline: Any) -> bool:
    """Whether an aggregation writes its result: only the last stage may."""
    if not isinstance(pipeline, (list, tuple)) or not pipeline:
        return False
    last: Any = pipeline[-1]  # pyright: ignore[reportUnknownVariableType]
    return "$out" in last or "$merge" in last


def _maps_out(out: Any) -> bool:
    """Whether a map-reduce writes its result to a collection."""
    return out is not None and not (hasattr(out, "keys") and "inline" in out)
