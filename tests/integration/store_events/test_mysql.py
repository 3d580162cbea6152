"""Events of MySQL and MariaDB: transactions that a reader of the binary log is told of."""

from __future__ import annotations

import contextlib
import random
import re
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import Lineage, Status
from antipode_shims import mysql
from tests.integration.mysql._clients import NOTES, Sql, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import MySQLTopology

READ = "SELECT body FROM notes WHERE id = 1"
_GTID = re.compile(r"(?:GTID_NEXT= '|GTID )([0-9a-f:-]+)")


def gtids(sql: Sql) -> list[str]:
    """Those of the transactions in the primary's newest binary log, as its readers see them."""
    name = sql.topology.execute("SHOW BINARY LOGS")[-1]["Log_name"]
    rows = sql.topology.execute(f"SHOW BINLOG EVENTS IN '{name}'")
    found = [_GTID.search(row["Info"]) for row in rows if "tid" in row["Event_type"]]
    return [each[1] for each in found if each is not None]


@pytest.fixture
def held(sql: Sql) -> Iterator[Sql]:
    """Servers with one note, and a replica that applies nothing."""
    sql.topology.execute("INSERT INTO app.notes VALUES (1, '')")
    sql.topology.wait_replicated()
    sql.topology.execute("FLUSH BINARY LOGS")  # Other tests' statements may be no text.
    sql.topology.pause_applier()
    yield sql
    sql.topology.resume_applier()


def test_a_reader_of_the_binary_log_reads_at_a_replica_what_it_was_told_of(held: Sql) -> None:
    """By the GTID of the event, or as of now; without, the old row is read."""
    held.connect()
    replica = held.replica()
    writer = held.plain()
    run(writer, "UPDATE notes SET body = 'new' WHERE id = 1")
    event = mysql.lineage(NOTES, gtid=gtids(held)[-1])
    with antipode.scope():
        assert antipode.barrier(timeout=1)
        assert run(replica, READ) == [("",)]
    assert not antipode.check(event)
    assert not antipode.check(antipode.as_of_now(NOTES))
    with antipode.scope(event):
        held.topology.resume_applier()
        antipode.barrier(timeout=10)
        assert run(replica, READ) == [("new",)]


def test_each_event_of_a_random_program_is_of_its_commit(sql: Sql) -> None:
    """Its entry is the one that its writer has, of whatever number of statements it was."""
    draw = random.Random(17)
    sql.topology.execute("INSERT INTO app.notes VALUES (1, '')")
    sql.topology.execute("FLUSH BINARY LOGS")  # Other tests' statements may be no text.
    writer, replica = sql.connect(), sql.replica()
    for step in range(12):
        with antipode.scope() as request:
            if draw.random() < 0.5:
                run(writer, "BEGIN")
                for each in range(draw.randint(1, 3)):
                    run(writer, "UPDATE notes SET body = %s WHERE id = 1", f"{step} {each}")
                    if draw.random() < 0.3:
                        run(writer, "SAVEPOINT s")
                        run(writer, "INSERT INTO notes VALUES (9, '')")
                        run(writer, "ROLLBACK TO SAVEPOINT s")
                run(writer, "COMMIT")
            else:
                run(writer, "UPDATE notes SET body = %s WHERE id = 1", f"{step}")
            told = run(writer, READ)
            (own,) = request.lineage
        event = mysql.lineage(NOTES, gtid=gtids(sql)[-1])
        assert event == Lineage([own])
        with antipode.scope(event):
            antipode.barrier(timeout=10)
            assert run(replica, READ) == told


@pytest.mark.slow
@pytest.mark.store("mysql")
def test_where_a_run_of_numbers_begins_is_asked_once(antipode_mysql: MySQLTopology) -> None:
    """MySQL's have gaps: a process whose client asked nothing yet asks the primary."""
    antipode_mysql._rebuild = True  # Other tests count on one run.
    with contextlib.closing(Sql(antipode_mysql)) as sql:
        uuid, last = sql.position()
        gap = last + 1_000_000
        for statement in (
            f"SET gtid_next = '{uuid}:{gap}'",
            "CREATE TABLE app.beyond (id INT PRIMARY KEY)",
            "SET gtid_next = 'AUTOMATIC'",
        ):
            antipode_mysql.execute(statement)
        mysql.instrument_connection(sql.plain(), datastore=NOTES)
        event = mysql.lineage(NOTES, gtid=gtids(sql)[-1])
        assert [(write.key, write.version) for write in event] == [(f"{uuid}/{gap}", gap)]
        sql.replica()
        assert antipode.barrier(event, timeout=10)


def test_an_event_of_another_history_is_refused(sql: Sql) -> None:
    """No server has its log, or its number: the barrier says so in time, and never passes."""
    sql.connect()
    sql.replica()
    forged = "7-4711-1" if sql.mariadb else "11111111-2222-3333-4444-555555555555:1"
    with pytest.raises(antipode.UnmetError) as unmet:
        antipode.barrier(mysql.lineage(NOTES, gtid=forged), timeout=2)
    assert [each.status for each in unmet.value.result.outcomes] == [Status.UNKNOWN_LOG]
    key, last = sql.position()
    ahead = f"{key.replace('.', '-')}-{last + 99}" if sql.mariadb else f"{key}:{last + 99}"
    with pytest.raises(antipode.UnmetError):
        antipode.barrier(mysql.lineage(NOTES, gtid=ahead), timeout=0.2)
