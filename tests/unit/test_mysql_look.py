"""What becomes of a position that a server lacks, decided from the servers' answers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from antipode import ConfigurationError, Status, WriteId
from antipode.shim import Unreachable
from antipode_shims.mysql._endpoint.upstream import Upstream
from antipode_shims.mysql._look import look, wait_sql
from antipode_shims.mysql._position.flavor import (
    Ask,
    Facts,
    Flavor,
    Refused,
    converse,
    covering,
    detect,
    minted,
)
from antipode_shims.mysql._position.gtid import GtidError, Runs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_shims.mysql._look import Shown

A = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
B = "4e11fa47-71ca-11e1-9e33-c80aa9429562"
MYSQL = Facts(Flavor.MYSQL, "server", uuid=B, version=(8, 4))
MARIADB = Facts(Flavor.MARIADB, "server", server_id=2, version=(10, 11), strict=True)
UP = ("up", 3306)


class Server:
    """One server's answers; an exception stands for a refusal."""

    def __init__(self, state: Mapping[str, Any], sources: Any = ()) -> None:
        self.state = state
        self.sources = sources

    def answer(self, sql: str) -> Any:
        found = [self.state] if sql.startswith("SELECT") else self.sources
        if isinstance(found, Exception):
            raise found
        return found


def mysql(executed: str, sources: Any = (), *, read_only: int = 0) -> Server:
    return Server({"executed": executed, "read_only": read_only}, sources)


def mariadb(applied: str, logged: str, sources: Any = (), *, read_only: int = 0) -> Server:
    return Server({"applied": applied, "logged": logged, "read_only": read_only}, sources)


def source(uuid: str = B, received: str = "", **more: Any) -> dict[str, Any]:
    row = {"Source_Host": UP[0], "Source_Port": UP[1], "Source_UUID": uuid}
    return {**row, "Source_Server_Id": 1, "Retrieved_Gtid_Set": received, **more}


def master(server_id: int, received: str = "") -> dict[str, Any]:
    row = {"Master_Host": UP[0], "Master_Port": UP[1], "Master_Server_Id": server_id}
    return {**row, "Gtid_IO_Pos": received}


def shown(facts: Facts, write: WriteId, here: Server, upstream: Any = None) -> Shown:
    def execute(ask: Ask) -> Any:
        server = here if ask.server is None else upstream
        if isinstance(server, Exception):
            raise server
        assert ask.server in (None, UP)
        return server.answer(ask.sql)

    return converse(look(facts, [write]), execute)


def status(facts: Facts, write: WriteId, here: Server, upstream: Any = None) -> Status:
    return shown(facts, write, here, upstream).observation.statuses[write]


def at(key: str, number: int) -> WriteId:
    return WriteId("posts", key, number)


DENIED = Refused("you need REPLICATION CLIENT")
GONE = Refused("connection refused", passing=True)


@pytest.mark.parametrize(
    ("executed", "key", "number", "expected"),
    [
        (f"{A}:1-9", A, 9, Status.VISIBLE),
        (f"{A}:1-8", A, 9, Status.LOST),
        (f"{A}:1-5:9", A, 9, Status.LOST),
        (f"{A}:1-5:9", f"{A}/9", 9, Status.VISIBLE),
        (f"{A}:1-9", f"{A}:tag", 9, Status.UNKNOWN_LOG),
        (f"{A}:tag:1-9", f"{A}:tag", 9, Status.VISIBLE),
        ("", A, 9, Status.UNKNOWN_LOG),
        (f"{A}:1-9", "0.1", 3, Status.UNKNOWN_LOG),
    ],
)
def test_mysql_primary(executed: str, key: str, number: int, expected: Status) -> None:
    """A primary that follows nobody: what it lacks of a log that it knows is lost."""
    assert status(MYSQL, at(key, number), mysql(executed)) is expected


@pytest.mark.parametrize(
    ("here", "upstream", "expected"),
    [
        (mysql(f"{A}:1-8", [source(A)]), None, Status.NOT_YET),
        (mysql("", [source(A)]), None, Status.NOT_YET),
        (mysql(f"{A}:1-8", [source(B, f"{A}:9")]), None, Status.NOT_YET),
        (mysql(f"{A}:1-8", [source()]), mysql(f"{A}:1-9,{B}:1-3"), Status.NOT_YET),
        (mysql(f"{A}:1-8", [source()]), mysql(f"{A}:1-8,{B}:1-3"), Status.LOST),
        (mysql(f"{A}:1-8", [source()]), mysql(f"{A}:1-8", read_only=1), Status.NOT_YET),
        (mysql(f"{A}:1-8", [source()]), mysql(f"{A}:1-8", [source(A)]), Status.NOT_YET),
        (mysql(f"{A}:1-8", [source()]), GONE, Status.NOT_YET),
        (mysql(f"{A}:1-8", [source()]), DENIED, Status.NOT_YET),
        (mysql("", [source()]), GONE, Status.NOT_YET),
        (mysql("", [source()]), DENIED, Status.UNKNOWN_LOG),
        (mysql("", [source()]), mysql(f"{B}:1-3"), Status.UNKNOWN_LOG),
        (mysql(f"{A}:1-8", DENIED), None, Status.UNKNOWN_LOG),
        (mysql(f"{A}:1-8", DENIED, read_only=1), None, Status.NOT_YET),
        (mysql("", DENIED, read_only=1), None, Status.UNKNOWN_LOG),
        (mysql(f"{A}:1-8", read_only=1), None, Status.NOT_YET),
    ],
)
def test_mysql_replica(here: Server, upstream: Any, expected: Status) -> None:
    """Lost only where the primary was reached and lacks it; late while it may still come."""
    assert status(MYSQL, at(A, 9), here, upstream) is expected


def test_group_member_never_says_lost() -> None:
    """A member of a group follows nobody by name, and others may still bring it."""
    member = Facts(Flavor.MYSQL, "server", uuid=B, version=(8, 4), group=A, group_block=1000)
    assert status(member, at(A, 9), mysql(f"{A}:1-8")) is Status.NOT_YET


@pytest.mark.parametrize(
    ("here", "expected"),
    [
        (mariadb("", "0-2-9"), Status.VISIBLE),
        (mariadb("0-1-8", "0-1-8,0-2-11"), Status.LOST),
        (mariadb("0-1-8", "0-1-8"), Status.LOST),
        (mariadb("0-1-8", "0-1-9"), Status.VISIBLE),
        (mariadb("", "0-3-7"), Status.UNKNOWN_LOG),
    ],
)
def test_mariadb_primary(here: Server, expected: Status) -> None:
    """A primary decides from its binlog state: another server's later number proves nothing."""
    key = "0.2" if here.state["logged"] == "0-2-9" else "0.1"
    assert status(MARIADB, at(key, 9), here) is expected


@pytest.mark.parametrize(
    ("here", "upstream", "expected"),
    [
        (mariadb("0-1-9", "0-1-9", [master(1)]), None, Status.VISIBLE),
        (mariadb("0-1-8", "0-1-9", [master(1)]), None, Status.NOT_YET),
        (mariadb("0-2-11", "0-1-8,0-2-11", [master(2)]), None, Status.LOST),
        (mariadb("0-2-11", "0-1-9,0-2-11", [master(2)]), None, Status.VISIBLE),
        (mariadb("0-1-20", "", [master(1)]), None, Status.VISIBLE),
        (mariadb("0-1-8", "0-1-8", [master(3)]), mariadb("", "0-1-9"), Status.NOT_YET),
        (mariadb("0-1-8", "0-1-8", [master(3)]), mariadb("", "0-1-8"), Status.LOST),
        (mariadb("0-1-8", "0-1-8", [master(3)]), GONE, Status.NOT_YET),
        (mariadb("5-1-9", "5-1-9", [master(3)]), mariadb("", "5-1-9"), Status.UNKNOWN_LOG),
        (mariadb("0-1-8,5-3-1", "0-1-8,5-3-1", [master(3), master(1)]), None, Status.NOT_YET),
    ],
)
def test_mariadb_replica(here: Server, upstream: Any, expected: Status) -> None:
    """A replica shows what its position has passed *and* its binlog state has of that server."""
    assert status(MARIADB, at("0.1", 9), here, upstream) is expected


def test_without_strict_mode_nothing_is_passed_over() -> None:
    """Without strict mode a smaller number may still come after a larger one."""
    loose = Facts(Flavor.MARIADB, "server", server_id=2, version=(10, 11), strict=False)
    here = mariadb("0-2-11", "0-1-8,0-2-11", [master(1)])
    assert status(loose, at("0.1", 9), here) is Status.NOT_YET


def test_late_arrival_beats_lost() -> None:
    """A write that arrives between the first look and the proof of its loss is visible."""
    here = mysql(f"{A}:1-8")
    states = iter([f"{A}:1-8", f"{A}:1-9"])

    def execute(ask: Ask) -> Any:
        if ask.sql.startswith("SELECT"):
            return [{"executed": next(states), "read_only": 0}]
        return here.sources

    found = converse(look(MYSQL, [at(A, 9)]), execute)
    assert found.observation.statuses[at(A, 9)] is Status.VISIBLE


def test_waits_for_the_run_and_not_for_the_number() -> None:
    """The server blocks for the whole run up to the smallest missing number."""
    late = shown(MYSQL, at(A, 9), mysql(f"{A}:1-8", [source(A)]))
    assert wait_sql(late, 5) == f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{A}:1-9', 1.000) AS waited"
    behind = shown(MYSQL, at(f"{A}/7", 9), mysql(f"{A}:1-5:7-8", [source(A)]))
    assert f"'{A}:7-9'" in (wait_sql(behind, 5) or "")


def test_mariadb_does_not_block_where_the_server_would_not() -> None:
    """``MASTER_GTID_WAIT`` returns at once past the number: such waits are paced by time."""
    loose = Facts(Flavor.MARIADB, "server", server_id=2, version=(10, 11), strict=False)
    past = shown(loose, at("0.1", 9), mariadb("0-2-11", "0-1-8,0-2-11", [master(1)]))
    assert wait_sql(past, 5) is None
    late = shown(MARIADB, at("0.1", 9), mariadb("0-1-8", "0-1-8", [master(1)]))
    assert wait_sql(late, 0.25) == "SELECT MASTER_GTID_WAIT('0-1-9', 0.250) AS waited"


def test_a_server_without_numbers_covers_nothing() -> None:
    """Its position says nothing of the writes that it gives none."""
    for mode in ("OFF", "OFF_PERMISSIVE"):
        rows = [{"owned": "", "executed": f"{A}:1-9", "mode": mode}]
        with pytest.raises(GtidError, match="gtid_mode"):
            covering(Flavor.MYSQL, rows, datastore="posts", hour=1)


def test_covering_position_has_every_run() -> None:
    """Owned and executed together cover; each run of a log with gaps is an entry of its own."""
    rows = [{"owned": f"{A}:10#7", "executed": f"{A}:1-9:20-30", "mode": "ON"}]
    found = covering(Flavor.MYSQL, rows, datastore="posts", hour=1)
    assert {(w.key, w.version, w.covering) for w in found} == {
        (A, 10, True),
        (f"{A}/20", 30, True),
    }


def test_minted_from_what_sessions_track() -> None:
    """Both flavours' texts become entries; behind a gap the run is named."""
    runs = Runs()
    assert [str(w) for w in minted(Flavor.MYSQL, f"{A}:7", runs, datastore="d", hour=1)] == [
        f"d:{A}@7"
    ]
    assert [str(w) for w in minted(Flavor.MARIADB, "3-1-7", runs, datastore="d", hour=1)] == [
        "d:3.1@7"
    ]


class Unanswering:
    """Settings of servers that do not answer."""

    def __init__(self) -> None:
        self.tried = 0

    def at(self, *_: object) -> Unanswering:
        return self

    def connect(self, *, timeout_s: float) -> Any:
        self.tried += 1
        raise Unreachable("refused")


def test_silent_upstream_is_left_alone_for_a_while() -> None:
    """A source that does not answer is not asked at every look: others share the look."""
    upstream, settings = Upstream(), Unanswering()
    for _ in range(3):
        with pytest.raises(Refused) as caught:
            upstream.ask(settings, UP, "SELECT 1")  # type: ignore[arg-type]
        assert caught.value.passing
    assert settings.tried == 1


GOOD_MYSQL = {
    "version": "8.4.2",
    "server_uuid": A.upper(),
    "server_id": "1",
    "gtid_mode": "ON",
    "log_bin": "ON",
    "log_replica_updates": "ON",
    "gtid_executed": f"{A}:1-5",
}
GOOD_MARIADB = {
    "version": "10.11.6-MariaDB-log",
    "server_id": "1",
    "log_bin": "ON",
    "log_slave_updates": "ON",
    "gtid_strict_mode": "ON",
}


def detected(variables: Mapping[str, str], *, last: int = 1, tracked: str = "") -> Facts:
    """What a server with *variables* is, whose last answer is of server *last*."""

    def execute(ask: Ask) -> Any:
        if ask.sql.startswith("SHOW"):
            return [{"Variable_name": n, "Value": v.encode()} for n, v in variables.items()]
        if ask.sql.startswith("SELECT @@server_id"):
            return [{"server_id": 1, "tracked": tracked}]
        return [{"started": 1_700_000_000, "server_id": last}]

    return converse(detect(), execute)


def test_answers_of_several_servers_are_refused() -> None:
    """Where statements of one connection are answered by different servers, none is asked."""
    with pytest.raises(ConfigurationError, match="a user of its own"):
        detected(GOOD_MYSQL, last=2).require("posts")
    with pytest.raises(ConfigurationError, match="a user of its own"):
        detected({**GOOD_MARIADB, "server_id": "7"}).require("posts")


def test_tracking_is_turned_on_by_a_literal() -> None:
    """What a session tracks already stays tracked, and where positions are, nothing is sent."""
    setting = "SET SESSION session_track_system_variables = "
    assert detected(GOOD_MARIADB).track == f"{setting}'last_gtid'"
    found = detected(GOOD_MARIADB, tracked="autocommit,time_zone")
    assert found.track == f"{setting}'autocommit,time_zone,last_gtid'"
    assert not detected(GOOD_MARIADB, tracked="autocommit,last_gtid").track
    assert not detected(GOOD_MARIADB, tracked="*").track


def test_flavors_are_told_apart() -> None:
    """MySQL is itself by its UUID, MariaDB by its id, both only as long as the process lives."""
    found = detected(GOOD_MYSQL)
    assert (found.flavor, found.server) == (Flavor.MYSQL, f"{A}@1700000000")
    found = detected(GOOD_MARIADB)
    assert (found.flavor, found.strict, found.server) == (Flavor.MARIADB, True, "1@1700000000")


@pytest.mark.parametrize(
    ("good", "change", "named"),
    [
        (GOOD_MYSQL, {"gtid_mode": "OFF"}, "gtid_mode=ON"),
        (GOOD_MYSQL, {"version": "5.7.44"}, "8.0"),
        (GOOD_MARIADB, {"log_bin": "OFF"}, "log_bin"),
        (GOOD_MARIADB, {"log_slave_updates": "OFF"}, "log_slave_updates=ON"),
        (GOOD_MARIADB, {"version": "5.5.5-10.5.1-MariaDB"}, "10.6"),
    ],
)
def test_servers_without_positions_are_refused(
    good: dict[str, str], change: dict[str, str], named: str
) -> None:
    """A server that is too old or not set up raises, and names exactly what to change."""
    with pytest.raises(ConfigurationError) as caught:
        detected({**good, **change}).require("posts")
    assert named in str(caught.value)
    assert str(caught.value).count("set ") <= 1


@pytest.mark.parametrize(
    ("change", "named"),
    [({"log_bin": "OFF"}, "log_bin"), ({"gtid_mode": "OFF_PERMISSIVE"}, "gtid_mode=ON")],
)
def test_servers_that_give_no_numbers(change: dict[str, str], named: str) -> None:
    """A MySQL server whose own writes have no GTIDs can be waited at, and is no fence."""
    found = detected({**GOOD_MYSQL, **change})
    found.require("posts")
    with pytest.raises(ConfigurationError, match=named):
        found.require("posts", writes=True)


@pytest.mark.parametrize("change", [{"gtid_mode": "ON_PERMISSIVE"}, {"log_replica_updates": "OFF"}])
def test_more_than_needed_is_not_asked_for(change: dict[str, str]) -> None:
    """A MySQL server needs GTIDs and a binary log for its own writes, and nothing else."""
    detected({**GOOD_MYSQL, **change}).require("posts", writes=True)
