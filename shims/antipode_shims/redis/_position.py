"""Redis positions, judged without I/O: ``INFO replication`` in, outcomes out.

A position is (replication id, offset). A replication id names one history; a server that is
promoted gets a new one and remembers, as ``master_replid2`` and ``second_repl_offset``, the one
it came from and the first offset that it does *not* share with it (Redis manual, "Replication").
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from antipode import ConfigurationError, Promise, Status, WriteId
from antipode.shim import PRIMARY_KEY, Observation

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

#: One poll: the cheapest command that carries ids and offsets, on every server since Redis 4.
INFO = ("INFO", "replication")
#: The replicated hash in which promoted servers' writers keep where earlier logs ended.
LOG_KEY = "antipode:log"

#: A replication id: random, so that no other store has a log of that name.
REPLID = re.compile(r"[0-9a-f]{40}")
_NO_ID = "0" * 40
_FIELDS = re.compile(
    r"^(role|master_replid2?|(?:master|slave|second)_repl_offset|master_link_status"
    r"|master_sync_in_progress|slave_read_only|repl_backlog_active):([^\r\n]*)",
    re.MULTILINE,
)
#: The same in one piece, as every server since Redis 4 writes it: several times as fast.
_PRIMARY = b"\r\nrole:master\r\n"
_PRIMARY_AT = re.compile(
    rb"\r\nmaster_replid:(\w+)\r\nmaster_replid2:(\w+)"
    rb"\r\nmaster_repl_offset:(\d+)\r\nsecond_repl_offset:(-?\d+)\r\nrepl_backlog_active:(\d)"
)
_REPLICA_AT = re.compile(
    rb"\r\nmaster_sync_in_progress:0\r\n(?:slave_read_repl_offset:\d+\r\n)?"
    rb"slave_repl_offset:(\d+)\r\n(?:[^:]+:[^\r]*\r\n)*?master_replid:(\w+)\r\n"
)
_MOST_HISTORIES = 64
#: How error replies begin that pass on their own.
PASSING = ("BUSY", "LOADING", "MASTERDOWN", "Redis is ")


class InfoError(RuntimeError):
    """The server's answer to ``INFO replication`` is an error, or cannot be understood."""

    @property
    def passing(self) -> bool:
        """Whether the server may answer when it is asked again."""
        return str(self.__cause__).startswith(PASSING)


@dataclass(frozen=True, slots=True)
class ReplicationState:
    """Where one server stands.

    Attributes:
        primary: whether it takes writes; a replica otherwise.
        replid: the history it is on.
        offset: bytes of that history that it has applied.
        replid2: the history it was on before, empty when it knows none.
        second_offset: the first offset of *replid2* that it does not share.
        link_up: for a replica, whether it is connected to its primary.
        syncing: for a replica, whether its whole data is being replaced.
        read_only: for a replica, whether it refuses writes.
        backlog: whether offsets advance; false on a primary that never had a replica.
    """

    primary: bool
    replid: str
    offset: int
    replid2: str = ""
    second_offset: int = -1
    link_up: bool = True
    syncing: bool = False
    read_only: bool = False
    backlog: bool = True

    @property
    def related(self) -> bool:
        """Whether an unknown log is unknown for good: not while a replica is cut off."""
        return self.primary or (self.link_up and not self.syncing)

    @property
    def ended_log(self) -> tuple[str, int] | None:
        """The log that ended when this server was promoted, and its last offset here."""
        if self.primary and self.replid2 and self.second_offset > 0:
            return self.replid2, self.second_offset - 1
        return None


def primary_place(reply: object) -> tuple[str, int] | None:
    """The replication id and offset of a primary that has replicas: all that a write needs.

    None where the answer is another one, which :func:`parse_info` has to read.
    """
    if not isinstance(reply, bytes) or _PRIMARY not in reply:
        return None
    found = _PRIMARY_AT.search(reply)
    if found is None:
        return None
    replid, offset, backlog = found.group(1, 3, 5)
    return None if backlog == b"0" else (replid.decode(), int(offset))


def replica_place(reply: object) -> tuple[str, int] | None:
    """The same of a replica whose data is not being replaced."""
    found = _REPLICA_AT.search(reply) if isinstance(reply, bytes) else None
    return None if found is None else (found[2].decode(), int(found[1]))


def parse_info(reply: object) -> ReplicationState:
    """What ``INFO replication`` says.

    Raises:
        InfoError: the reply is an error, or fields are missing.
    """
    if isinstance(reply, bytes) and _PRIMARY in reply and (found := _PRIMARY_AT.search(reply)):
        return _primary(*found.groups())
    if isinstance(reply, ConfigurationError):
        raise InfoError(str(reply)) from reply
    if isinstance(reply, Exception):
        msg = f"INFO replication was refused: {reply}"
        raise InfoError(msg) from reply
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else str(reply)
    fields = dict(_FIELDS.findall(text))
    try:
        primary = fields["role"] == "master"
        offset = fields["master_repl_offset" if primary else "slave_repl_offset"]
        replid2 = fields.get("master_replid2", _NO_ID)
        return ReplicationState(
            primary=primary,
            replid=fields["master_replid"],
            offset=int(offset),
            replid2="" if replid2 == _NO_ID else replid2,
            second_offset=int(fields.get("second_repl_offset", -1)),
            link_up=primary or fields.get("master_link_status") == "up",
            syncing=fields.get("master_sync_in_progress", "0") != "0",
            read_only=fields.get("slave_read_only", "0") != "0",
            backlog=fields.get("repl_backlog_active", "1") != "0",
        )
    except (KeyError, ValueError) as error:
        msg = f"INFO replication lacks what a position needs: {error}"
        raise InfoError(msg) from error


def writes_nothing(reply: object) -> bool:
    """Whether a server that answers ``INFO replication`` so refuses what writes: a replica."""
    try:
        return parse_info(reply).read_only
    except InfoError:
        return False


def _primary(
    replid: bytes, replid2: bytes, offset: bytes, second: bytes, backlog: bytes
) -> ReplicationState:
    former = replid2.decode()
    return ReplicationState(
        primary=True,
        replid=replid.decode(),
        offset=int(offset),
        replid2="" if former == _NO_ID else former,
        second_offset=int(second),
        backlog=backlog != b"0",
    )


@dataclass
class LogHistory:
    """Where earlier logs ended, as read from :data:`LOG_KEY`; facts never change. Thread-safe."""

    _ends: dict[str, dict[str, int]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, replid: str) -> Mapping[str, int]:
        """The last shared offset of each earlier log, for servers that are on *replid*."""
        return self._ends.get(replid, {})

    def learn(self, replid: str, logs: Collection[str], values: object) -> None:
        """Adopt what ``HMGET`` of *logs* answered on a server that is on *replid*."""
        if not isinstance(values, (list, tuple)):
            return  # An error reply: the key is of another type, or may not be read.
        with self._lock:
            if len(self._ends) > _MOST_HISTORIES:
                self._ends.clear()
            held = dict(self._ends.get(replid, {}))
            for log, value in zip(logs, values, strict=False):
                digits = value.decode("ascii", "replace") if isinstance(value, bytes) else value
                if isinstance(digits, str) and digits.isdecimal():
                    held[log] = int(digits)
            self._ends[replid] = held


def judge(  # noqa: PLR0911 - one for each proof, in order of strength
    state: ReplicationState, log: str, offset: int, ends: Mapping[str, int]
) -> tuple[Status, str]:
    """The outcome of one position at one server, and why.

    Args:
        state: of the server, from the same poll.
        log: the replication id of the position.
        offset: its offset.
        ends: what the log history says about *state.replid*.
    """
    if not state.primary and state.syncing:
        return Status.NOT_YET, "the replica's data is being replaced by a full resync"
    if log == state.replid:
        reached = state.offset >= offset
        return (Status.VISIBLE, "") if reached else (Status.NOT_YET, f"at offset {state.offset}")
    if log == state.replid2 and offset < state.second_offset:
        return Status.VISIBLE, ""
    if (end := ends.get(log)) is not None:
        if offset > end:
            return Status.LOST, f"{log} ended at {end} when a replica was promoted"
        # Offsets go on where the earlier log ended, so the present offset decides.
        return (Status.VISIBLE if state.offset >= offset else Status.NOT_YET), "by log history"
    if state.primary and log == state.replid2:
        last = state.second_offset - 1
        return Status.LOST, f"this server was promoted when it had {log} up to {last}"
    if not state.related:
        return Status.NOT_YET, "the replica has lost its primary and may still learn of this log"
    return Status.UNKNOWN_LOG, f"the server is on {state.replid}"


def judge_primary(state: ReplicationState, log: str) -> tuple[Status, str]:
    """Whether a server follows the primary of the history *log* now, or is that primary.

    Args:
        state: of the server.
        log: the replication id that a primary had when it was asked for its position.
    """
    if not state.related:
        return Status.NOT_YET, "the replica is not connected to its primary"
    if log == state.replid:
        return Status.VISIBLE, ""
    return Status.UNKNOWN_LOG, (
        f"the server is on {state.replid}: it does not follow the primary of {log}, which was asked"
        " for its position and may have been replaced"
    )


def plainly_shows(replid: str, offset: int, writes: Collection[WriteId]) -> bool:
    """Whether *writes* are all of the log that a server is on, and visible: the usual case."""
    for write in writes:
        version = write.version
        if write.key != replid or not isinstance(version, int) or version > offset:
            return False
    return True


def observation(
    state: ReplicationState,
    writes: Collection[WriteId],
    history: LogHistory,
    *,
    run_id: str = "",
    promises: Mapping[Promise, Status] | None = None,
) -> Observation:
    """What a server in *state*, with these records of *promises*, shows of *writes*."""
    ends = history.of(state.replid)
    statuses: dict[WriteId, Status] = {}
    causes: dict[WriteId, str] = {}
    for write in writes:
        if isinstance(write.version, int):
            statuses[write], cause = judge(state, write.key, write.version, ends)
        elif write.key == PRIMARY_KEY:
            statuses[write], cause = judge_primary(state, write.version)
        else:
            statuses[write], cause = Status.UNDECIDABLE, "it is no position of a Redis log"
        if cause:
            causes[write] = cause
    server = incarnation(state, run_id)
    return Observation(server, statuses, causes=causes, promises=promises or {})


def refused(
    writes: Collection[WriteId], error: Exception, promises: Collection[Promise] = ()
) -> Observation:
    """What a server shows that does not let this user ask."""
    return Observation(
        "",
        dict.fromkeys(writes, Status.UNDECIDABLE),
        causes=dict.fromkeys(writes, str(error)),
        promises=dict.fromkeys(promises, Status.UNDECIDABLE),
        promise_causes=dict.fromkeys(promises, str(error)),
    )


def incarnation(state: ReplicationState, run_id: str) -> str:
    """The server as it is now: its process, where known, and its history."""
    return f"{run_id}/{state.replid}" if run_id else state.replid


def unknown_logs(shown: Observation) -> list[str]:
    """The logs that the log history should be asked about."""
    unknown = {write.key for write, found in shown.statuses.items() if found is Status.UNKNOWN_LOG}
    return sorted(unknown - {PRIMARY_KEY})
