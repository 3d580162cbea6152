"""What the replies of a replica set's member say about positions.

Every reply carries ``$clusterTime`` and ``operationTime``, that of a write ``opTime``. A command
that asks with :data:`ASK` also gets what members of a set report to each other: where the answering
server stood after it, its rollback id, and the set's id. So no reply needs a second question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError

from .timestamps import OpTime, log_key, version_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    Reply = Mapping[str, Any]

#: Fields that make any command's reply say where the server stands.
ASK = {"$replData": 1, "$oplogQueryData": 1}
#: Codes of errors by which a write is in doubt: the server was interrupted, maybe in the middle of
#: it. The specification has the same (`stores.md`, MongoDB).
INTERRUPTED = frozenset({24, 50, 64, 89, 91, 189, 262, 10058, 11600, 11601, 11602, 46841})


@dataclass(frozen=True, slots=True)
class ServerState:
    """Where one member of a replica set stands.

    Attributes:
        set_name: of the replica set.
        applied: the last entry that it applied: what reads with concern ``local`` show.
        committed: the last entry that it knows a majority to have, never beyond *applied*.
        primary: whether it takes writes.
        readable: whether it is a primary or a secondary, rather than recovering or an arbiter.
        initiated_s: Unix second in which the set was initiated; 0 when not reported.
        incarnation: the server's process, as far as reported, and its rollback id.
        heard: the latest version that it has heard of; it refuses to wait for a later one.
    """

    set_name: str
    applied: OpTime
    committed: OpTime
    primary: bool
    readable: bool = True
    initiated_s: int = 0
    incarnation: str = ""
    heard: int = -1

    def shown(self, *, majority: bool) -> OpTime:
        """The last entry that reads show, with read concern ``majority`` or ``local``."""
        return self.committed if majority else self.applied


def state_of_hello(reply: Reply) -> ServerState | None:
    """What the reply to ``hello`` says; None when its server has no data to read now.

    Raises:
        ConfigurationError: it is a mongos or no member of a replica set.
    """
    set_name = check_member(reply)
    last = reply.get("lastWrite", {})
    applied, committed = OpTime.of(last.get("opTime")), OpTime.of(last.get("majorityOpTime"))
    primary = bool(reply.get("isWritablePrimary") or reply.get("ismaster"))
    readable = (primary or bool(reply.get("secondary"))) and not reply.get("arbiterOnly")
    if not set_name or applied is None or not readable:
        return None
    process = reply.get("topologyVersion", {}).get("processId", "")
    return ServerState(
        set_name,
        applied,
        min(applied, committed or OpTime(-1, 0)),
        primary=primary,
        initiated_s=_initiated_s(reply),
        incarnation=f"{process}/{reply.get('$oplogQueryData', {}).get('rbid', '')}",
        heard=_heard(reply),
    )


def check_member(hello: Reply) -> str:
    """The name of the replica set; empty while the server has not joined it.

    Raises:
        ConfigurationError: the server is a mongos or no member of a replica set.
    """
    if hello.get("msg") == "isdbgrid":
        raise ConfigurationError(MONGOS)
    if not hello.get("setName") and not hello.get("isreplicaset"):
        raise ConfigurationError(STANDALONE)
    return str(hello.get("setName", ""))


MONGOS = (
    "the server is a mongos, and sharded clusters are not supported: the position of one shard's "
    "log says nothing about the shard that is read; connect to one replica set"
)
STANDALONE = (
    "the server is no member of a replica set, so that its writes have no positions; start it "
    "with --replSet (one member will do)"
)


def state_of_reply(reply: Reply, set_name: str) -> ServerState | None:
    """Where the server stood after a command that asked with :data:`ASK`; None when unknown."""
    query, data = reply.get("$oplogQueryData"), reply.get("$replData")
    if not query or not data:
        return None
    applied, committed = OpTime.of(query.get("lastOpApplied")), OpTime.of(data["lastOpCommitted"])
    if applied is None or committed is None:
        return None
    return ServerState(
        set_name,
        applied,
        min(applied, committed),
        primary=bool(data.get("isPrimary")),
        initiated_s=_initiated_s(reply),
        incarnation=f"/{query.get('rbid', '')}",
        heard=_heard(reply),
    )


def _initiated_s(reply: Reply) -> int:
    """The set's id is an ObjectId that its first primary made, its time of creation in front."""
    found = reply.get("$replData", {}).get("replicaSetId")
    return int(found.binary[:4].hex(), 16) if found is not None else 0


def _heard(reply: Reply) -> int:
    gossip = reply.get("$clusterTime")
    return version_of(gossip["clusterTime"]) if gossip else -1


def write_position(reply: Reply, set_name: str, *, majority: bool) -> tuple[str, int] | None:
    """Log and version of the write that *reply* acknowledges; None when it has no position.

    Args:
        reply: of a write; ``findAndModify`` and ``commitTransaction`` report the term only when
            asked with :data:`ASK`.
        set_name: of the replica set.
        majority: whether the write concern was ``majority`` and was met.
    """
    state = state_of_reply(reply, set_name)
    written = OpTime.of(reply.get("opTime"))
    if written is None and (operation := reply.get("operationTime")) is not None:
        # After a write this is the write's own timestamp (server, ``computeOperationTime``).
        if majority:
            return log_key(set_name, None), version_of(operation)
        if state is not None and state.primary:
            written = OpTime(state.applied.term, version_of(operation))
    if written is None:
        return None
    majority = majority or (state is not None and written <= state.committed)
    return log_key(set_name, None if majority else written.term), written.version


def read_position(reply: Reply, set_name: str, *, majority: bool) -> tuple[str, int] | None:
    """Log and version that cover what a read showed; None when the reply does not show it.

    ``operationTime`` falls short on a primary with read concern ``local``: there entries become
    visible before they count as applied, and only ``$clusterTime`` is at or after all of them.

    Args:
        reply: of a read that asked with :data:`ASK`.
        set_name: of the replica set.
        majority: whether the read concern was ``majority`` or stronger.
    """
    operation = reply.get("operationTime")
    if operation is None:
        return None
    if majority:
        return log_key(set_name, None), version_of(operation)
    state = state_of_reply(reply, set_name)
    return None if state is None else local_position(state, version_of(operation))


def local_position(state: ServerState, operation: int = -1) -> tuple[str, int]:
    """Log and version that cover what reads with concern ``local`` show in *state*.

    Args:
        state: of the server, at the read or after it.
        operation: the ``operationTime`` of the read, enough on a secondary.
    """
    covering = operation
    if state.primary or operation < 0:
        covering = max(state.heard, state.applied.version)
    if covering <= state.committed.version:
        return log_key(state.set_name, None), covering
    return log_key(state.set_name, state.applied.term), covering
