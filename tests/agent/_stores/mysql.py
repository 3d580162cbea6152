"""MySQL and MariaDB: GTIDs, statements, lineages beside rows."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from antipode import Lineage
from antipode.shim import stored_lineage
from antipode_shims._sql.superseded import superseded
from antipode_shims.mysql import _statements as statements
from antipode_shims.mysql._clients.views import Views
from antipode_shims.mysql._functions import OWN, called
from antipode_shims.mysql._look import look
from antipode_shims.mysql._position.flavor import (
    Facts,
    Flavor,
    Refused,
    converse,
    covering,
    detect,
    minted,
)
from antipode_shims.mysql._position.gtid import GtidError, GtidSet, Runs
from antipode_shims.mysql._stored.rewrite import Tables
from antipode_shims.mysql._stored.triggers import SEPARATOR
from tests.agent._values import of_lineage, write_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from antipode_shims.mysql._position.flavor import Ask

    Given = Mapping[str, Any]

#: The server that looks at MariaDB's vectors.
_SERVER_ID = 2
_UUID = "00000000-0000-0000-0000-000000000001"
_FLAGS = {
    statements.READS: "reads",
    statements.WRITES: "writes",
    statements.COMMITS: "commits",
    statements.ENDS: "ends",
    statements.BEGINS: "begins",
    statements.SNAPSHOTS: "snapshot",
    statements.OPENS: "may_snapshot",
    statements.ISOLATES: "isolation",
    statements.ONCE: "next_only",
    statements.RESETS: "tracking",
    statements.XA: "two_phases",
    statements.UNLOGS: "unlogged",
    statements.LOGS: "logged",
    statements.TEMPORARY: "names",
    statements.MANY: "several",
    statements.ASSIGNS: "numbers",
    statements.LOCKS: "locks",
}


def look_at(given: Given) -> dict[str, list[str]]:
    """What one look says of each write."""
    server = given["server"]
    servers = _Servers(server)
    facts = Facts(
        Flavor.MYSQL if "gtid_executed" in server else Flavor.MARIADB,
        "server",
        uuid=_UUID,
        server_id=_SERVER_ID,
        version=(99, 0),
        strict=server.get("gtid_strict_mode", False),
        group=server.get("group", ""),
        group_block=server.get("group_block", 0),
    )
    statuses = []
    for each in map(write_at, given["writes"]):
        shown = converse(look(facts, [each]), servers.answer)
        statuses.append(str(shown.observation.statuses[each]))
        servers.asked = 0
    return {"statuses": statuses}


class _Servers:
    """What a server and those above it answer."""

    def __init__(self, first: Given) -> None:
        self._first = first
        self._above: dict[int, Any] = {}
        self._ports = count(1)
        self.asked = 0

    def answer(self, ask: Ask) -> Sequence[Mapping[str, Any]]:
        server = self._first if ask.server is None else self._above[ask.server[1]]
        if isinstance(server, str):
            raise Refused(server, passing=server == "unreachable")
        if ask.sql.startswith("SHOW GLOBAL"):
            return _identity(server)
        if "replication_group_members" in ask.sql:
            if server["members"] == "denied":
                raise Refused("denied")
            return [{"member": each} for each in server["members"]]
        if "server_id" in ask.sql:
            return [{"server_id": server.get("server_id", _SERVER_ID)}]
        if ask.sql.startswith("SHOW"):
            if server["follows"] == "denied":
                raise Refused("denied")
            return [self._source(each) for each in server["follows"]]
        self.asked += ask.server is None
        executed = server.get("gtid_executed")
        if self.asked > 1 and ask.server is None:
            executed = server.get("later", executed)
        return [
            {
                "executed": executed,
                "applied": server.get("gtid_slave_pos"),
                "logged": server.get("gtid_binlog_state"),
                "read_only": int(server["read_only"]),
            }
        ]

    def _source(self, source: Given) -> dict[str, Any]:
        port = next(self._ports)
        self._above[port] = source["server"]
        return {
            "Source_Host": "above",
            "Source_Port": port,
            "Source_UUID": source.get("uuid"),
            "Source_Server_Id": source.get("server_id"),
            "Retrieved_Gtid_Set": source.get("retrieved"),
            "Gtid_IO_Pos": source.get("gtid_io_pos"),
            "Replica_IO_Running": "Yes" if source.get("connected", True) else "Connecting",
        }


def _identity(server: Given) -> list[dict[str, str]]:
    """Who a server of either kind is, and which group or cluster it is in."""
    galera = server.get("galera", {})
    said = {
        "server_uuid": server.get("uuid", _UUID),
        "group_replication_group_name": server.get("group", ""),
        **{f"wsrep_cluster_{name}": value for name, value in galera.items()},
    }
    return [{"Variable_name": name, "Value": value} for name, value in said.items()]


def commits(given: Given) -> dict[str, Any]:
    """The writes of each commit of each session; None for what is no set of GTIDs."""
    runs = Runs()
    found: list[Any] = []
    for session in given["sessions"]:
        if "gtid_executed" in session:
            executed = GtidSet.parse(session["gtid_executed"])
            runs.learn(executed, group_block=session["group_block"])
        found.append([_minted(session, each["gtids"], runs) for each in session["commits"]])
    return {"writes": found}


def _minted(session: Given, gtids: str, runs: Runs) -> list[dict[str, str]] | None:
    flavor = Flavor.MYSQL if "gtid_executed" in session else Flavor.MARIADB
    try:
        found = minted(flavor, gtids, runs, datastore="posts", hour=0)
    except GtidError:
        return None
    return [{"key": each.key, "version": str(each.version)} for each in found]


def cover(given: Given) -> dict[str, Any]:
    """What a read may have seen."""
    asked = given["asked"]
    flavor = Flavor.MYSQL if "gtid_mode" in asked else Flavor.MARIADB
    row = {name.rpartition("_")[2]: value for name, value in asked.items()}
    row["position"] = asked.get("gtid_binlog_pos")
    try:
        lineage = Lineage(covering(flavor, [row], datastore="posts", hour=0))
    except GtidError:
        lineage = Lineage(incomplete=[("posts", "unsampled")])
    return {"lineage": of_lineage(lineage)}


def gtid_set(given: Given) -> dict[str, Any]:
    """The intervals of each log of a set."""
    try:
        logs = GtidSet.parse(given["text"]).logs
    except GtidError:
        return {"logs": None}
    return {"logs": {log: [[str(n) for n in each] for each in runs] for log, runs in logs.items()}}


def server(given: Given) -> dict[str, bool]:
    """What a server with these variables is good for."""
    variables = given["variables"]

    def execute(ask: Ask) -> Sequence[Mapping[str, Any]]:
        if ask.sql.startswith("SHOW"):
            return [{"Variable_name": name, "Value": value} for name, value in variables.items()]
        return [{"server_id": variables["server_id"], "tracked": "", "started": 1}]

    facts = converse(detect(), execute)
    return {"waits": not facts.problems, "numbers": not facts.lacking}


def command(given: Given) -> dict[str, list[str]]:
    """What one statement may do."""
    sql = given["command"].encode()
    meaning = statements.meaning(sql)
    meaning |= statements.reads(sql, meaning)
    found = {name for flag, name in _FLAGS.items() if meaning & flag}
    return {"does": sorted(found)}


def calls(given: Given) -> dict[str, list[str]]:
    """Which functions a statement calls that are not built into its server's family."""
    names = called(given["command"].encode()) - OWN[Flavor[given["family"].upper()]]
    return {"calls": sorted(name.decode() for name in names)}


def view(given: Given) -> dict[str, bool]:
    """Whether a statement that reads may write by a view that it names."""
    definitions, sql = given["definitions"], given["command"].encode()

    def execute(ask: Ask) -> Sequence[Mapping[str, Any]]:
        name = ask.sql.removeprefix("SHOW CREATE TABLE ").replace("`", "")
        if name in definitions and definitions[name] is None:
            raise Refused("denied", number=1142)
        kind = "Create View" if name in definitions else "Create Table"
        return [{kind: definitions.get(name, "")}]

    views = Views()
    harmless = frozenset(name.encode() for name in given.get("readonly_functions", ()))
    converse(views.asking(views.unknown(sql), Flavor[given["family"].upper()], harmless), execute)
    return {"may_write": views.may_write(sql)}


def pattern(given: Given) -> dict[str, str]:
    """What finds the items that need not be kept where a text is."""
    return {"pattern": superseded(given["text"])}


def found(given: Given) -> dict[str, Any]:
    """What a reader makes of the column beside a row."""
    texts = given["column"].split(SEPARATOR)
    return {
        "lineage": of_lineage(Lineage().merge(*(stored_lineage("posts", one) for one in texts)))
    }


def select(given: Given) -> dict[str, int]:
    """How many lineages a statement shows besides."""
    rewritten = Tables(given["tables"]).select(given["sql"].encode())
    return {"columns": 0 if rewritten is None else rewritten.columns}


def sought(given: Given) -> dict[str, Any]:
    """The tombstones that a statement which shows no row looks for."""
    keys = {table: dict.fromkeys(columns, "") for table, columns in given["key"].items()}
    tables = Tables(list(keys)).sought(given["sql"].encode(), keys)
    rows = [(table, key) for table, found in tables for key in found]
    return {"sought": [[table, *(part.sent.decode() for part in key)] for table, key in rows]}
