"""Writes without a position on real servers: those that never have one, and those that lack it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pymysql
import pytest

import antipode
from antipode import IncompleteLineage
from antipode_shims import mysql
from antipode_testing import MySQLTopology

from ._clients import IN_DOUBT, NOTES, TIMEOUT_S, TRACK, Sql, counted, exchanges, minted, run

if TYPE_CHECKING:
    from antipode_testing import LagProxy

MySQLdb: Any = pytest.importorskip("MySQLdb")
INSERT = "INSERT INTO notes VALUES (%s, 'a')"


def gtid_mode(topology: MySQLTopology, *modes: str) -> None:
    """Change it step by step, as MySQL wants it, where nobody copies."""
    for mode in modes:
        topology.execute(f"SET GLOBAL gtid_mode = {mode}")


def opened(sql: Sql) -> dict[str, Any]:
    """A connection of each kind, which has committed a write with its position."""
    place, options = sql.topology.primary, {"autocommit": True}
    options |= {"user": sql.topology.user, "password": sql.topology.password}
    options |= {"host": place.host, "port": place.port, "database": sql.topology.database}
    found = {
        "tracked": pymysql.connect(client_flag=TRACK, **options),
        "untracked": pymysql.connect(**options),
        "mysqlclient": MySQLdb.connect(**options),
    }
    for number, one in enumerate(found.values()):
        mysql.instrument_connection(one, datastore=NOTES)
        with antipode.scope() as scope:
            run(one, INSERT, number)
            assert len(scope.lineage) == 1
    return found


@pytest.mark.slow
@pytest.mark.store("mysql")
def test_a_server_that_stops_giving_numbers_is_noticed_at_the_write() -> None:
    """Under a connection that had positions before: the write without one is in doubt."""
    with MySQLTopology() as topology, closing(Sql(topology)) as sql:
        topology.execute("CREATE TABLE app.notes (id INT PRIMARY KEY, body TEXT)")
        topology.wait_replicated()
        connections = opened(sql)
        gtid_mode(topology, "ON_PERMISSIVE")
        for number, one in enumerate(connections.values()):
            with antipode.scope() as scope:
                run(one, INSERT, 10 + number)
                assert [(each.key, each.version) for each in scope.lineage] == [sql.position()]
                assert not scope.lineage.incomplete
        topology.cut()
        gtid_mode(topology, "OFF_PERMISSIVE")
        before = counted("uncovered_write")
        for number, (kind, one) in enumerate(connections.items()):
            with antipode.scope() as scope:
                run(one, INSERT, 20 + number)
                assert scope.lineage.incomplete == {IN_DOUBT}, kind
                assert not len(scope.lineage)
                with pytest.raises(IncompleteLineage):
                    antipode.barrier(timeout=TIMEOUT_S)
            with antipode.scope() as scope:
                one.begin()
                run(one, INSERT, 30 + number)
                assert not scope.lineage.incomplete
                one.commit()
                assert scope.lineage.incomplete == {IN_DOUBT}, kind
        assert counted("uncovered_write") == before + 6
        for one in connections.values():
            mysql.uninstrument_connection(one)
            one.close()


def test_what_has_no_position_by_its_nature_costs_nothing(sql: Sql, to_primary: LagProxy) -> None:
    """Temporary tables, and updates that found their rows as they should be."""
    found_rows = 1 << 1
    connection = sql.connect(to_primary.address, client_flag=TRACK | found_rows)
    run(connection, INSERT, 1)
    statements = (
        "CREATE TEMPORARY TABLE IF NOT EXISTS `scratch` (a INT) SELECT 1 AS a",
        "INSERT INTO scratch VALUES (1)",
        "insert into `scratch` select id from notes",
        "UPDATE scratch SET a = 3",
        "UPDATE notes SET body = 'a'",
    )
    with antipode.scope() as scope, exchanges(to_primary) as made:
        for statement in statements:
            run(connection, statement)
        connection.begin()
        run(connection, "DELETE FROM scratch")
        connection.commit()
    assert made == [len(statements) + 3]
    assert not len(scope.lineage)
    assert not scope.lineage.incomplete
    with antipode.scope() as scope:
        run(connection, "DROP TEMPORARY TABLE scratch")
        run(connection, "CREATE TABLE IF NOT EXISTS scratch (a INT)")
        run(connection, "INSERT INTO scratch VALUES (1)")
        run(connection, "DROP TABLE scratch")
        assert minted(scope) == [sql.position()]
