"""MongoDB: terms and timestamps, commands, the field beside a document's values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode_shims.mongodb._commands import Kind, kind_of
from antipode_shims.mongodb._format.document import found as found_beside
from antipode_shims.mongodb._format.document import held_in
from antipode_shims.mongodb._look import converse, shown_in
from antipode_shims.mongodb._position.history import LogHistory
from antipode_shims.mongodb._position.reply import ServerState, read_position, write_position
from antipode_shims.mongodb._position.timestamps import OpTime, timestamp_of, version_of
from tests.agent._values import of_lineage, write_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import WriteId
    from antipode_shims.mongodb._look import Question

    Given = Mapping[str, Any]

_UNAUTHORIZED = 13
_KINDS = {
    Kind.READ: "read",
    Kind.WRITE: "write",
    Kind.OTHER: "unknown",
    Kind.NEUTRAL: "neither",
}


def look_at(given: Given) -> dict[str, list[str]]:
    """What one look says of each write."""
    writes = [write_at(_only(write)) for write in given["writes"]]
    statuses = []
    for each in writes:
        history = LogHistory()
        if "before" in given:
            _status(given["before"], each, history)
        statuses.append(_status(given["server"], each, history))
    return {"statuses": statuses}


def _status(server: Given, write: WriteId, history: LogHistory) -> str:
    """What a server says of one write, after what *history* has of it."""
    state = ServerState(
        server["set"],
        _place(server["applied"]),
        _place(server["committed"]),
        primary=False,
        initiated_s=server["initiated_s"],
    )
    steps = shown_in(state, [write], history, majority=server["majority"])
    shown = converse(lambda question: _oplog(server.get("oplog", []), question), steps)
    return str(shown.statuses[write])


def _only(write: Given) -> dict[str, Any]:
    return {name: each for name, each in write.items() if name != "status"}


def _place(found: Given) -> OpTime:
    return OpTime(found["term"], int(found["version"]))


def _document(found: Given) -> dict[str, Any]:
    return {"t": found["term"], "ts": timestamp_of(int(found["version"]))}


def _oplog(entries: Any, question: Question) -> Any:
    """The first entry that a question finds."""
    from pymongo.errors import OperationFailure

    if entries == "denied":
        return OperationFailure("not authorized", code=_UNAUTHORIZED)
    where = question[1]["filter"]
    least = version_of(where["ts"]["$gte"]) if where else 0
    found = [each for each in entries if int(each["version"]) >= least]
    return {"cursor": {"firstBatch": [_document(each) for each in found[:1]]}}


def position(given: Given) -> dict[str, Any]:
    """What a reply names."""
    told: Given = given["reply"]
    reply: dict[str, Any] = {}
    if "opTime" in told:
        reply["opTime"] = _document(told["opTime"])
    if "operationTime" in told:
        reply["operationTime"] = timestamp_of(int(told["operationTime"]))
    if "clusterTime" in told:
        reply["$clusterTime"] = {"clusterTime": timestamp_of(int(told["clusterTime"]))}
        committed = _document(told["committed"])
        reply["$replData"] = {"isPrimary": told["primary"], "lastOpCommitted": committed}
        reply["$oplogQueryData"] = {"lastOpApplied": _document(told["applied"]), "rbid": 1}
    names = write_position if given["of"] == "write" else read_position
    found = names(reply, "rs", majority=given["majority"])
    return {"position": found and {"key": found[0], "version": str(found[1])}}


def command(given: Given) -> dict[str, str]:
    """What one command does."""
    found = given["command"]
    return {"does": _KINDS[kind_of(next(iter(found)), found)]}


def found(given: Given) -> dict[str, Any]:
    """What a reader makes of the field of a document: beside a value, or whatever that is."""
    if "value" in given:
        from bson.codec_options import DEFAULT_CODEC_OPTIONS

        lineage, match = found_beside(given["value"], given["ap"], "posts", DEFAULT_CODEC_OPTIONS)
    else:
        lineage, match = held_in(given["ap"], "posts")
    return {"lineage": of_lineage(lineage), "match": match.value}
