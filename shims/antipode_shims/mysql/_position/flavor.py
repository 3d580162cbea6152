"""MySQL and MariaDB: distinguished, checked, and asked for positions. No I/O.

What has to be asked of a server is a conversation: a generator that yields an :class:`Ask`, is sent
the rows of its answer, and returns its result. :func:`converse` and :func:`converse_async` hold it
over whatever a client offers to execute SQL.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from antipode import ConfigurationError, WriteId

from .gtid import (
    GtidError,
    GtidSet,
    MariaDBGtid,
    MySQLLog,
    Runs,
    mariadb_gtid,
    mariadb_gtids,
    mysql_gtid,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

#: Rows as name and value; values as the client decodes them, ``str`` or ``bytes``.
Rows = Sequence[Mapping[str, Any]]


class Ask(NamedTuple):
    """One statement, for the server at hand or, where *server* is given, for its upstream."""

    sql: str
    server: tuple[str, int] | None = None


Asking = Generator[Ask, Rows, T]


class Refused(Exception):  # noqa: N818 - an answer, like Unreachable
    """A server answered with an error, or an upstream could not be asked.

    Attributes:
        passing: whether it may go away on its own.
        number: of the server's error; 0 where it has none.
    """

    def __init__(self, cause: str, *, passing: bool = False, number: int = 0) -> None:
        super().__init__(cause)
        self.passing = passing
        self.number = number


class Flavor(Enum):
    """Which of the two families a server belongs to."""

    MYSQL = "MySQL"
    MARIADB = "MariaDB"

    @property
    def system(self) -> str:
        """Its ``db.system.name`` in OpenTelemetry's conventions."""
        return self.value.lower()


#: Python 3.11 looks an enumeration's members up slowly; this one is wanted for every write.
_MARIADB = Flavor.MARIADB

#: Asked first of each connection. A proxy that routes statement by statement keeps a session that
#: names a variable of its server on that server (ProxySQL); what follows is of one server then.
#: It also asks by which number the server knows the connection, and never by that function alone:
#: ProxySQL answers ``SELECT CONNECTION_ID()`` itself.
FIRST = (
    "SELECT @@server_id AS server_id, @@SESSION.session_track_system_variables AS tracked,"
    " CONNECTION_ID() AS session"
)
#: What a server is. Needs no privilege, and unknown names are no error.
DETECT = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name REGEXP '^replicate_(wild_)?(do|ignore)_(db|table)$'"
    " OR Variable_name IN ('version', 'server_uuid', 'server_id',"
    " 'server_uid', 'gtid_mode', 'log_bin', 'log_slave_updates', 'gtid_executed',"
    " 'gtid_strict_mode', 'read_only',"
    " 'group_replication_group_name', 'group_replication_gtid_assignment_block_size')"
)
#: When the server's process started, in Unix seconds: both terms come from the statement's clock.
_STARTED = {
    Flavor.MYSQL: (
        "SELECT CAST(UNIX_TIMESTAMP() - VARIABLE_VALUE AS SIGNED) AS started,"
        " @@server_id AS server_id FROM performance_schema.global_status"
        " WHERE VARIABLE_NAME = 'Uptime'"
    ),
    Flavor.MARIADB: (
        "SELECT CAST(UNIX_TIMESTAMP() - VARIABLE_VALUE AS SIGNED) AS started,"
        " @@server_id AS server_id FROM information_schema.GLOBAL_STATUS"
        " WHERE VARIABLE_NAME = 'UPTIME'"
    ),
}
_LOG_ON = "set log_bin (the binary log is off)"
_GTIDS_ON = "set gtid_mode=ON and enforce_gtid_consistency=ON"
_LEAST = {Flavor.MYSQL: (8, 0), Flavor.MARIADB: (10, 6)}
_VERSION = re.compile(r"(?:5\.5\.5-)?(\d+)\.(\d+)")

#: What is said of a connection whose statements reach several servers.
SEVERAL_SERVERS = (
    "a proxy sends statements of one connection to several servers, so that what one of them shows"
    " says nothing of where the next statement goes: give each group of servers a user of its own,"
    " register each with one_server=True (one_server=False states that nobody knows), and use"
    " barrier(at='read')"
)
#: The handshake's number of a connection has so many bits.
_NUMBER_BITS = 32
#: Why there are no positions although the server had them when the connection was made.
UNNUMBERED = "gtid_mode was changed, and the server gives new writes no GTIDs"
#: A read's covering position (the order of the two is what makes it cover).
COVER = {
    Flavor.MYSQL: (
        "SELECT @@GLOBAL.gtid_owned AS owned, @@GLOBAL.gtid_executed AS executed,"
        " @@GLOBAL.gtid_mode AS mode"
    ),
    Flavor.MARIADB: "SELECT @@GLOBAL.gtid_binlog_pos AS position",
}


@dataclass(frozen=True)
class Facts:
    """What is known of one server, as long as its process lives.

    Attributes:
        flavor: MySQL or MariaDB.
        server: its incarnation.
        uuid: MySQL's ``server_uuid``; empty for MariaDB.
        server_id: as configured.
        version: major and minor.
        strict: MariaDB's ``gtid_strict_mode``: numbers of a domain only rise.
        group: MySQL's Group Replication group, empty where there is none.
        group_block: how many numbers a member of the group is given at once; 0 without a group.
        executed: MySQL's ``gtid_executed`` at that moment.
        problems: what has to be configured before anybody can wait for positions there.
        unminted: what has to be configured before its own writes have positions.
        filters: what its replication leaves out, as far as its variables say.
        session: the number by which the server that answered knows the connection, as the
            handshake has it; None where it did not say.
        track: the statement that turns on what the session's writes are recorded from, in the OK
            packets; empty where it is on.
    """

    flavor: Flavor
    server: str
    uuid: str = ""
    server_id: int = 0
    version: tuple[int, int] = (0, 0)
    strict: bool = False
    group: str = ""
    group_block: int = 0
    executed: GtidSet = field(default_factory=GtidSet)
    problems: tuple[str, ...] = ()
    unminted: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    session: int | None = None
    track: str = ""

    def owns(self, key: str) -> bool:
        """Whether a write of *key* was committed by this server, or its group."""
        if self.flavor is _MARIADB:
            return key.endswith(f".{self.server_id}")
        return key.startswith(self.uuid) or (bool(self.group) and key.startswith(self.group))

    def with_problem(self, problem: str) -> Facts:
        """These, and one thing more that has to be configured."""
        return replace(self, problems=(*self.problems, problem))

    @property
    def lacking(self) -> tuple[str, ...]:
        """Why its writes have no positions; nothing where they have."""
        return tuple(dict.fromkeys(self.problems + self.unminted))

    def proxied(self, accepted: int) -> str:
        """Why the server that answers is not the one that accepted the connection; else empty.

        Args:
            accepted: the connection's number in its handshake. A server says its own there, and a
                proxy that accepts connections itself one of its own.
        """
        if self.session is None or self.session == accepted % (1 << _NUMBER_BITS):
            return ""
        return (
            f"a proxy accepted this connection (as number {accepted}; the server that answers knows"
            f" it as {self.session}), so that the server that is read need not be the one that is"
            " asked: where all statements of a connection reach one server, as with a user of its"
            " own for each group of servers, state that by one_server=True"
        )

    def require(self, datastore: str, *, writes: bool = False) -> None:
        """Refuse a server where nobody can wait for positions.

        Args:
            datastore: its logical name.
            writes: whether its own writes have to have positions, too.

        Raises:
            ConfigurationError: names what to change. The library never changes it on its own.
        """
        if changes := "; ".join(self.lacking if writes else self.problems):
            raise ConfigurationError(
                f"{datastore!r} is on a {self.flavor.value} server without positions to wait for:"
                f" {changes}"
            )


def is_server(facts: Facts) -> str:
    """An expression in SQL that is true on the server of *facts* and on no other."""
    if facts.flavor is Flavor.MARIADB:
        return f"@@server_id = {facts.server_id}"
    return f"(@@server_id = {facts.server_id} AND @@server_uuid = '{facts.uuid}')"


def detect() -> Asking[Facts]:
    """Find out what the server of a connection is, and whether it is one; three statements.

    Raises:
        Refused: it does not answer now; asked again it may.
    """
    try:
        first = yield Ask(FIRST)
        rows = yield Ask(DETECT)
        variables = {str(text(row["Variable_name"])): text(row["Value"]) for row in rows}
        flavor = flavor_of(variables.get("version", ""))
        started = yield Ask(_STARTED[flavor])
    except Refused as error:
        if error.passing:
            raise
        return Facts(Flavor.MYSQL, "", problems=(f"it refuses to say what it is: {error}",))
    track = _tracking(flavor, text(first[0]["tracked"]))
    session = text(first[0].get("session"))
    facts = _facts(flavor, variables, text(started[0]["started"]))
    known = int(session) % (1 << _NUMBER_BITS) if session else None
    facts = replace(facts, track=track, session=known)
    ids = {text(first[0]["server_id"]), variables.get("server_id"), text(started[0]["server_id"])}
    return facts if len(ids) == 1 else facts.with_problem(SEVERAL_SERVERS)


def _tracking(flavor: Flavor, tracked: str) -> str:
    """What makes a session's replies have positions; a literal, which proxies understand."""
    if flavor is Flavor.MYSQL:
        return "SET SESSION session_track_gtids = OWN_GTID"
    names = [name for part in tracked.split(",") if (name := part.strip())]
    if "last_gtid" in names or "*" in names:
        return ""
    names.append("last_gtid")
    return f"SET SESSION session_track_system_variables = '{','.join(names)}'"


def flavor_of(version: str) -> Flavor:
    """The family of a server by its version, as the handshake has it, too."""
    return Flavor.MARIADB if "mariadb" in version.lower() else Flavor.MYSQL


def _facts(flavor: Flavor, variables: Mapping[str, str], started: str) -> Facts:
    match = _VERSION.match(variables.get("version", ""))
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    server_id = variables.get("server_id", "0")
    if flavor is Flavor.MARIADB:
        name = variables.get("server_uid") or server_id
        return Facts(
            flavor,
            f"{name}@{started}",
            server_id=int(server_id),
            version=version,
            strict=variables.get("gtid_strict_mode") == "ON",
            filters=filters_in(variables),
            problems=tuple(_problems(flavor, version, variables)),
            unminted=tuple(_unminted(variables)),
        )
    uuid = variables.get("server_uuid", "").lower()
    group = variables.get("group_replication_group_name", "").lower()
    block = variables.get("group_replication_gtid_assignment_block_size", "0")
    return Facts(
        flavor,
        f"{uuid}@{started}",
        uuid=uuid,
        server_id=int(server_id),
        version=version,
        group=group,
        group_block=int(block) if group else 0,
        executed=GtidSet.parse(variables.get("gtid_executed", "")),
        problems=tuple(_problems(flavor, version, variables)),
        unminted=tuple(_unminted(variables)),
    )


def _problems(
    flavor: Flavor, version: tuple[int, int], variables: Mapping[str, str]
) -> Generator[str]:
    """What a server lacks to be waited at."""
    least = _LEAST[flavor]
    if version < least:
        yield f"it is version {variables.get('version')}: {least[0]}.{least[1]} or later is needed"
    if flavor is Flavor.MYSQL:
        if variables.get("gtid_mode") == "OFF":
            yield _GTIDS_ON
        return
    # What a MariaDB server has executed is known by its binary log.
    if variables.get("log_bin") not in ("ON", "1"):
        yield _LOG_ON
    if variables.get("log_slave_updates") != "ON":
        yield "set log_slave_updates=ON"


def _unminted(variables: Mapping[str, str]) -> Generator[str]:
    """What a server lacks so that its own writes have positions."""
    if variables.get("log_bin") not in ("ON", "1"):
        yield _LOG_ON
    if variables.get("gtid_mode") in ("OFF_PERMISSIVE", "OFF"):
        yield _GTIDS_ON


def filters_in(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The filters among a replica's variables, or the columns of its replication's status."""
    found = ((name, text(value)) for name, value in settings.items())
    return tuple(f"{name.lower()}={value}" for name, value in found if value and _is_filter(name))


def _is_filter(name: str) -> bool:
    # Servers that are ignored are those of a ring: their writes have come round.
    return name.lower().startswith("replicate_") and not name.lower().endswith("server_ids")


def text(value: object) -> str:
    """A value as a string, whatever the client decodes: variables are ASCII."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    return "" if value is None else str(value)


def minted(
    flavor: Flavor, gtids: str, runs: Runs, *, datastore: str, hour: int
) -> tuple[WriteId, ...]:
    """The writes that a session tracked: one, or several after a multi-statement.

    Args:
        flavor: of the server that answered.
        gtids: MySQL's OWN_GTID, or MariaDB's ``last_gtid``, from an OK packet.
        runs: where runs of numbers begin on that server; learns.
        datastore: whose writes they are.
        hour: the Unix hour it is now.

    Raises:
        GtidError: *gtids* is no such text.
    """
    if flavor is _MARIADB:
        if (alone := mariadb_gtid(gtids)) is not None:
            return (WriteId(datastore, alone[0], alone[1], hour),)
        found = mariadb_gtids(gtids)
        return tuple(WriteId(datastore, each.key, each.seq, hour) for each in found)
    if (alone := mysql_gtid(gtids)) is not None:
        log, last = alone
        first = runs.first(log, last)
        return (WriteId(datastore, log if first == 1 else f"{log}/{first}", last, hour),)
    return tuple(
        WriteId(datastore, MySQLLog(log, runs.first(log, last)).key, last, hour)
        for log, (_, last) in GtidSet.parse(gtids)
    )


def numbers(flavor: Flavor, rows: Rows) -> bool:
    """Whether the server gives new writes GTIDs, from the answer to :data:`COVER`."""
    if flavor is _MARIADB or not rows:
        return True
    return text(rows[0]["mode"]) in ("ON", "ON_PERMISSIVE")


def covering(flavor: Flavor, rows: Rows, *, datastore: str, hour: int) -> tuple[WriteId, ...]:
    """The covering entries that the answer to :data:`COVER` spells.

    Raises:
        GtidError: it spells none, or the server gives new writes no GTIDs.
    """
    if not rows:
        return ()
    row = rows[0]
    if not numbers(flavor, rows):
        raise GtidError(UNNUMBERED)
    if flavor is Flavor.MARIADB:
        found: tuple[MariaDBGtid, ...] = mariadb_gtids(text(row["position"]))
        return tuple(WriteId(datastore, g.key, g.seq, hour, covering=True) for g in found)
    seen = GtidSet.parse(text(row["owned"])).union(GtidSet.parse(text(row["executed"])))
    return tuple(
        WriteId(datastore, MySQLLog(log, first).key, last, hour, covering=True)
        for log, (first, last) in seen
    )


def converse(steps: Asking[T], execute: Callable[[Ask], Rows]) -> T:
    """Hold a conversation; what *execute* raises as :class:`Refused` the steps may handle."""
    talk = _Talk(steps)
    while (ask := talk.ask) is not None:
        try:
            rows = execute(ask)
        except Refused as error:  # noqa: PERF203 - each answer may be one
            talk.refused(error)
        else:
            talk.answered(rows)
    return talk.result()


async def converse_async(steps: Asking[T], execute: Callable[[Ask], Awaitable[Rows]]) -> T:
    """The asyncio twin of :func:`converse`."""
    talk = _Talk(steps)
    while (ask := talk.ask) is not None:
        try:
            rows = await execute(ask)
        except Refused as error:  # noqa: PERF203 - each answer may be one
            talk.refused(error)
        else:
            talk.answered(rows)
    return talk.result()


class _Talk(Generic[T]):
    """A conversation that is held: what it asks now, and how it ended."""

    def __init__(self, steps: Asking[T]) -> None:
        self._steps = steps
        self._results: list[T] = []
        self.ask: Ask | None = None
        self._go(lambda: next(steps))

    def answered(self, rows: Rows) -> None:
        self._go(lambda: self._steps.send(rows))

    def refused(self, error: Refused) -> None:
        self._go(lambda: self._steps.throw(error))

    def result(self) -> T:
        return self._results[0]

    def _go(self, step: Callable[[], Ask]) -> None:
        try:
            self.ask = step()
        except StopIteration as end:
            self.ask = None
            self._results.append(end.value)
