"""Servers that are not set up as most are: what works there, and what is said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import ConfigurationError, Lineage
from antipode_cli._doctor_stores import stores
from antipode_testing import MySQLTopology

from ._clients import IN_DOUBT, NOTES, Sql, counted, minted, run
from ._servers import FLAVORS, Regions, regions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import LagProxy


class Unlogged(MySQLTopology):
    """A replica without a binary log, as managed services set them up."""

    def _launch(self, name: str, feed: LagProxy | None) -> None:
        if feed is not None:
            self._config = {**self._config, "skip-log-bin": "1", "log-replica-updates": "0"}
        super()._launch(name, feed)


@pytest.fixture
def unlogged() -> Iterator[Sql]:
    """MySQL whose replica has no binary log."""
    with Unlogged() as topology:
        topology.execute("CREATE TABLE app.notes (id INT PRIMARY KEY, body TEXT)")
        topology.wait_replicated()
        sql = Sql(topology)
        yield sql
        sql.close()


@pytest.mark.slow
@pytest.mark.store("mysql")
def test_a_replica_without_a_binary_log(unlogged: Sql) -> None:
    """Barriers and floors hold at it: it knows what it has executed all the same.

    What is written on it gets no number, which is counted, and marks the lineage; nothing raises.
    """
    writer, reader = unlogged.connect(), unlogged.replica()
    unlogged.topology.set_lag(5)
    for number in range(20):
        with antipode.scope():
            run(writer, "REPLACE INTO notes VALUES (%s, 'a')", number)
            antipode.barrier(timeout=5, at="now" if number % 2 else "read")
            assert run(reader, "SELECT 1 FROM notes WHERE id = %s", number)
    unlogged.topology.config({"read_only": 0}, replica=0)
    before = counted("uncovered_write")
    with antipode.scope() as scope:
        run(reader, "REPLACE INTO notes VALUES (100, 'a')")
        assert not minted(scope)
        assert scope.lineage.incomplete == {IN_DOUBT}
    assert counted("uncovered_write") == before + 1


@pytest.mark.store("mysql")
def test_gtids_that_are_not_enforced(antipode_mysql: MySQLTopology) -> None:
    """With ``gtid_mode=ON_PERMISSIVE`` writes have positions, and reads wait for them."""
    antipode_mysql.execute("CREATE TABLE IF NOT EXISTS app.notes (id INT PRIMARY KEY, body TEXT)")
    for replica in (None, 0):
        antipode_mysql.config({"gtid_mode": "ON_PERMISSIVE"}, replica=replica)
    sql = Sql(antipode_mysql)
    with antipode.scope() as scope:
        run(sql.connect(), "REPLACE INTO notes VALUES (1, 'permissive')")
        assert minted(scope) == [sql.position()]
        antipode.barrier(timeout=5)
        assert run(sql.replica(), "SELECT body FROM notes WHERE id = 1") == [("permissive",)]
    sql.close()


@pytest.mark.store("mysql")
def test_a_server_without_gtids(antipode_mysql: MySQLTopology) -> None:
    """Statements go their way on it, and writes are marked; a read that has to wait raises."""
    antipode_mysql.execute("CREATE TABLE IF NOT EXISTS app.notes (id INT PRIMARY KEY, body TEXT)")
    antipode_mysql._rebuild = True
    for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"):
        antipode_mysql.config({"gtid_mode": mode})
    sql = Sql(antipode_mysql)
    reader = sql.connect()
    with antipode.scope() as scope:
        run(reader, "REPLACE INTO notes VALUES (1, 'a')")
        assert scope.lineage.incomplete == {IN_DOUBT}
    with antipode.scope():
        antipode.barrier(Lineage([_write()]), timeout=1, at="read")
        with pytest.raises(ConfigurationError, match="gtid_mode=ON"):
            run(reader, "SELECT body FROM notes")
    sql.close()


def _write() -> Any:
    return antipode.WriteId(NOTES, "00000000-0000-0000-0000-000000000001", 1, 1)


@pytest.fixture(params=FLAVORS)
def here(request: pytest.FixtureRequest) -> Iterator[Regions]:
    with regions(request.getfixturevalue(request.param)) as found:
        yield found


@pytest.fixture
def filtered(here: Regions) -> Iterator[Regions]:
    """A replica that leaves out one table."""
    topology = here.topology
    if topology.store == "mysql":
        rule = "CHANGE REPLICATION FILTER REPLICATE_IGNORE_TABLE = ({})"
    else:
        rule = "SET GLOBAL replicate_ignore_table = '{}'"
    rules = [rule.format(table) for table in ("app.left_out", "")]
    for each in ("STOP REPLICA", rules[0], "START REPLICA"):
        topology.execute(each, replica=0)
    yield here
    for each in ("STOP REPLICA", rules[1], "START REPLICA"):
        topology.execute(each, replica=0)


def test_replication_filters_are_named(filtered: Regions, caplog: pytest.LogCaptureFixture) -> None:
    """Where a replica leaves rows out, whose positions it has, outcomes, log and doctor say so."""
    lineage = filtered.write()
    for _ in range(2):  # The second is told from what was known.
        (outcome,) = antipode.barrier(lineage, timeout=5).outcomes
        assert "replicate_ignore_table=app.left_out" in outcome.cause
    assert caplog.text.count("replicate_ignore_table=app.left_out") == 1
    *_, check = stores(imported=True, timeout_s=5, automatic=False)
    assert check.verdict.value == "problem"
    assert "replicate_ignore_table=app.left_out" in check.said


def test_no_filters_are_no_caveat(here: Regions) -> None:
    """A replica that gets everything is spoken of as ever."""
    (outcome,) = antipode.barrier(here.write(), timeout=5).outcomes
    assert not outcome.cause


def test_doctor_warns_of_numbers_given_twice(here: Regions) -> None:
    """MariaDB tells a server's lives apart by its ``server_id`` alone, which nobody can check."""
    here.replicated()
    told = [
        check.said
        for check in stores(imported=True, timeout_s=5, automatic=False)
        if "former life" in check.said
    ]
    assert len(told) == (here.topology.store == "mariadb")


@pytest.mark.store("mysql")
def test_a_number_of_another_server(antipode_mysql: MySQLTopology) -> None:
    """A write that is given another server's number enters as that, and reaches no other server."""
    antipode_mysql.execute("DROP TABLE IF EXISTS app.notes")
    antipode_mysql.execute("CREATE TABLE app.notes (id INT PRIMARY KEY, body TEXT)")
    antipode_mysql.execute("GRANT ALL ON *.* TO app@'%'")
    antipode_mysql._rebuild = True  # Other tests count on one log.
    log = "aaaaaaaa-0000-0000-0000-000000000001"
    sql = Sql(antipode_mysql)
    writer = sql.connect()
    with antipode.scope() as scope:
        run(writer, f"SET gtid_next = '{log}:1'")
        run(writer, "REPLACE INTO notes VALUES (1, 'a')")
        run(writer, "SET gtid_next = 'AUTOMATIC'")
        assert minted(scope) == [(log, 1)]
        antipode.barrier(timeout=5, at="read")
        assert run(writer, "SELECT body FROM notes WHERE id = 1") == [("a",)]
    sql.close()


def test_a_procedure_that_reads_at_a_replica(sql: Sql) -> None:
    """What a call does, its text does not say; a replica that takes no writes took none."""
    sql.topology.execute("DROP PROCEDURE IF EXISTS app.peek")
    sql.topology.execute("CREATE PROCEDURE app.peek() SELECT 1")
    sql.topology.wait_replicated()
    reader = sql.replica()
    with antipode.scope() as scope:
        assert run(reader, "CALL peek()") == [(1,)]
        assert not scope.lineage.incomplete
        assert scope.lineage.empty
