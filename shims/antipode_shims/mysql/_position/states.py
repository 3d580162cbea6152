"""What one server of either flavour has, and where it gets the rest from. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .flavor import Ask, Facts, Flavor, text
from .gtid import GtidSet, MariaDBState, MySQLLog, mariadb_log

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import WriteId

    from .flavor import Asking, Rows

#: One poll.
STATE = {
    Flavor.MYSQL: "SELECT @@GLOBAL.gtid_executed AS executed, @@GLOBAL.read_only AS read_only",
    Flavor.MARIADB: (
        "SELECT @@GLOBAL.gtid_slave_pos AS applied, @@GLOBAL.gtid_binlog_state AS logged,"
        " @@GLOBAL.read_only AS read_only"
    ),
}
#: ``SHOW REPLICA STATUS`` came with this release (MySQL manual, "SHOW REPLICA STATUS").
_REPLICA_STATUS = (8, 0, 22)


@dataclass(frozen=True)
class MySQLState:
    """A MySQL server.

    Attributes:
        executed: its ``gtid_executed``, purged ones included.
        writable: whether it takes writes.
    """

    executed: GtidSet
    writable: bool

    @classmethod
    def parse(cls, rows: Rows) -> MySQLState:
        """From the answer to :data:`STATE`."""
        row = rows[0]
        return cls(GtidSet.parse(text(row["executed"])), not is_on(row["read_only"]))

    def has(self, write: WriteId, *, replica: bool) -> bool:
        """Whether *write* and the run before it are executed: the same on every server."""
        del replica
        log = MySQLLog.of(write.key)
        if log is None or not isinstance(write.version, int):
            return False
        return self.executed.contains(log.log, log.first, write.version)

    def knows(self, write: WriteId) -> bool:
        """Whether anything of the write's log was ever executed here."""
        log = MySQLLog.of(write.key)
        return log is not None and log.log in self.executed.logs

    def at(self, write: WriteId) -> int:
        """How far it is in the run of *write*'s log; 0 where it has nothing of it."""
        log = MySQLLog.of(write.key)
        found = self.executed.logs.get(log.log, ()) if log is not None else ()
        return max((last for first, last in found if log and first <= log.first <= last), default=0)

    def excludes(self, write: WriteId) -> bool:
        """Whether the history went on without *write* for good: it never shows that here."""
        del write
        return False

    def covers(self, other: MySQLState) -> bool:
        """Whether nothing that *other* had is gone."""
        return self.executed.covers(other.executed)

    def wait(self, write: WriteId, seconds: float) -> str | None:
        """What blocks on the server until *write* may be visible."""
        log = MySQLLog.of(write.key)
        if log is None:
            return None
        gtids = log.gtids(_number(write))
        return f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtids}', {seconds:.3f}) AS waited"


@dataclass(frozen=True)
class OneMariaDBState:
    """A MariaDB server.

    Attributes:
        applied: its ``gtid_slave_pos``: committed here, one number for each domain.
        logged: its ``gtid_binlog_state``: in its history, perhaps not yet committed here.
        writable: whether it takes writes.
        server_id: its own.
        strict: whether the numbers of a domain only rise in its history.
    """

    applied: MariaDBState
    logged: MariaDBState
    writable: bool
    server_id: int
    strict: bool

    @classmethod
    def parse(cls, rows: Rows, facts: Facts) -> OneMariaDBState:
        """From the answer to :data:`STATE`."""
        row = rows[0]
        return cls(
            MariaDBState.parse(text(row["applied"])),
            MariaDBState.parse(text(row["logged"])),
            not is_on(row["read_only"]),
            facts.server_id,
            facts.strict,
        )

    def has(self, write: WriteId, *, replica: bool) -> bool:
        """Whether *write* is visible here.

        A replica writes its binary log before the engine commits, so there the position has to be
        past the number as well; that alone passes for another server's number after a fail-over.
        """
        log = mariadb_log(write.key)
        if log is None or not isinstance(write.version, int):
            return False
        domain, server = log
        number = write.version
        if self.applied.reaches(domain, server, number):
            return True
        if not self.logged.reaches(domain, server, number):
            return False
        own = not replica or server == self.server_id
        return own or self.applied.domain_max(domain) >= number

    def knows(self, write: WriteId) -> bool:
        """Whether anything of that server in that domain is in the history."""
        log = mariadb_log(write.key)
        return log is not None and (self.logged.knows(*log) or self.applied.knows(*log))

    def at(self, write: WriteId) -> int:
        """How far it is in the domain of *write*; 0 where it has nothing of it."""
        log = mariadb_log(write.key)
        return 0 if log is None else max(self.applied.domain_max(log[0]), 0)

    def excludes(self, write: WriteId) -> bool:
        """Whether the history went on without *write* for good.

        In strict mode the numbers of a domain rise, so one that was passed over never comes.
        """
        log = mariadb_log(write.key)
        if log is None or not self.strict or not self.knows(write):
            return False
        has = self.logged.reaches(*log, _number(write)) or self.applied.reaches(
            *log, _number(write)
        )
        return not has and self.logged.domain_max(log[0]) >= _number(write)

    def covers(self, other: OneMariaDBState) -> bool:
        """Whether nothing that *other* had is gone."""
        domains = {domain for domain, _ in other.applied.last}
        return self.logged.covers(other.logged) and all(
            self.applied.domain_max(d) >= other.applied.domain_max(d) for d in domains
        )

    def wait(self, write: WriteId, seconds: float) -> str | None:
        """What blocks on the server until *write* may be visible.

        None where it would return at once, being past that number already.
        """
        log = mariadb_log(write.key)
        if log is None or self.applied.domain_max(log[0]) >= _number(write):
            return None
        gtid = f"{log[0]}-{log[1]}-{write.version}"
        return f"SELECT MASTER_GTID_WAIT('{gtid}', {seconds:.3f}) AS waited"


State = MySQLState | OneMariaDBState


def covers(now: State, before: State) -> bool:
    """Whether a server still has all that it had."""
    if isinstance(now, MySQLState):
        return isinstance(before, MySQLState) and now.covers(before)
    return isinstance(before, OneMariaDBState) and now.covers(before)


def parse_state(facts: Facts, rows: Rows) -> State:
    """The state of a server."""
    if facts.flavor is Flavor.MARIADB:
        return OneMariaDBState.parse(rows, facts)
    return MySQLState.parse(rows)


@dataclass(frozen=True)
class Source:
    """Where a replica gets its writes from.

    Attributes:
        host: as the replica reaches it.
        port: likewise.
        uuid: MySQL's ``Source_UUID``; empty before the first connection.
        server_id: of the source, 0 before the first connection.
        received: what is in the relay log, in MySQL's or MariaDB's form.
        trouble: what replication says is wrong.
        connected: whether the replica is connected to it.
    """

    host: str
    port: int
    uuid: str
    server_id: int
    received: GtidSet | MariaDBState
    trouble: str
    connected: bool

    @property
    def name(self) -> str:
        """What a primary's fence calls it; as :func:`primaries`."""
        return self.uuid if isinstance(self.received, GtidSet) else str(self.server_id)

    def brings(self, write: WriteId) -> bool:
        """Whether *write* is on its way: its own server is the source, or it has arrived."""
        if isinstance(self.received, GtidSet):
            log = MySQLLog.of(write.key)
            if log is None:
                return False
            here = self.received.contains(log.log, _number(write), _number(write))
            return here or log.log.partition(":")[0] == self.uuid
        parts = mariadb_log(write.key)
        if parts is None:
            return False
        return parts[1] == self.server_id or self.received.reaches(*parts, _number(write))


#: Who a server is, and which group it is in; needs no privilege.
_IDENTITY = {
    Flavor.MYSQL: (
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN"
        " ('server_uuid', 'group_replication_group_name')"
    ),
    Flavor.MARIADB: (
        "SHOW GLOBAL STATUS WHERE Variable_name IN"
        " ('wsrep_cluster_status', 'wsrep_cluster_state_uuid', 'wsrep_cluster_conf_id')"
    ),
}
_SERVER_ID = "SELECT @@GLOBAL.server_id AS server_id"
#: Whom a member of a group is in touch with; needs SELECT on that table.
_MEMBERS = (
    "SELECT MEMBER_ID AS member FROM performance_schema.replication_group_members"
    " WHERE MEMBER_STATE = 'ONLINE'"
)


def primaries(facts: Facts, where: tuple[str, int] | None = None) -> Asking[frozenset[str]]:
    """The primaries that a server shows all of, following nobody: itself, and its group.

    MySQL's have their ``server_uuid``, and MariaDB's their ``server_id``. All of a Galera cluster
    are the one primary that its cluster and its present view name; a node that was cut off from
    the cluster is none.

    Args:
        facts: about the server at hand, or one that follows it.
        where: of a server above; None for the one at hand.
    """
    rows = yield Ask(_IDENTITY[facts.flavor], where)
    said = {text(row["Variable_name"]): text(row["Value"]) for row in rows}
    if facts.flavor is Flavor.MYSQL:
        itself = frozenset([said.get("server_uuid", "").lower()])
        if not said.get("group_replication_group_name"):
            return itself
        members = yield Ask(_MEMBERS, where)
        return itself | {text(row["member"]).lower() for row in members}
    status = said.get("wsrep_cluster_status", "")
    if status == "Primary":
        view = (said.get(f"wsrep_cluster_{name}", "") for name in ("state_uuid", "conf_id"))
        return frozenset([":".join(view)])
    if status not in ("", "Disconnected"):
        return frozenset()
    rows = yield Ask(_SERVER_ID, where)
    return frozenset([text(rows[0]["server_id"])])


def sources_sql(facts: Facts) -> str:
    """What shows the sources of a server; needs ``REPLICATION CLIENT`` or its successors."""
    if facts.flavor is Flavor.MARIADB:
        return "SHOW ALL SLAVES STATUS"
    return "SHOW REPLICA STATUS" if facts.version >= _REPLICA_STATUS else "SHOW SLAVE STATUS"


def parse_sources(facts: Facts, rows: Rows) -> tuple[Source, ...]:
    """The sources of a server."""
    return tuple(_source(facts, row) for row in rows)


def _source(facts: Facts, row: Mapping[str, Any]) -> Source:
    def column(name: str) -> str:
        return text(row.get(f"Source_{name}", row.get(f"Master_{name}", "")))

    received: GtidSet | MariaDBState
    if facts.flavor is Flavor.MARIADB:
        received = MariaDBState.parse(text(row.get("Gtid_IO_Pos")))
    else:
        received = GtidSet.parse(text(row.get("Retrieved_Gtid_Set")))
    errors = (text(row.get(f"Last_{which}_Error")) for which in ("IO", "SQL"))
    return Source(
        column("Host"),
        int(column("Port") or 3306),
        column("UUID").lower(),
        int(column("Server_Id") or 0),
        received,
        "; ".join(filter(None, errors)),
        (text(row.get("Replica_IO_Running", row.get("Slave_IO_Running"))) == "Yes"),
    )


def _number(write: WriteId) -> int:
    return write.version if isinstance(write.version, int) else -1


def is_on(value: object) -> bool:
    """Whether a variable that is a switch is on, however the server spells it."""
    return text(value) in ("1", "ON")
