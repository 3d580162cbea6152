"""Events in Java: the same lineages as Python's, over the same servers."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import antipode
from antipode import Lineage
from antipode_shims import mongodb, mysql, postgresql
from antipode_testing import MongoDBTopology
from tests.conformance._agents import command
from tests.integration.mongodb._clients import client, plain_client
from tests.integration.mysql._clients import Sql, run
from tests.integration.store_events.test_mysql import gtids

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parent / "programs" / "Events.java"
NAME = "events"


class Told:
    """What one store's test has of an event, before replication goes on.

    Attributes:
        arguments: of the program.
        lineage: that Python makes of it.
        resume: lets the replica go on.
    """

    def __init__(
        self, arguments: list[str], lineage: Lineage, resume: Callable[[], object]
    ) -> None:
        self.arguments, self.lineage, self.resume = arguments, lineage, resume


def by_postgresql(request: pytest.FixtureRequest, stack: ExitStack) -> Told:
    """A commit at the primary, by its end."""
    topology = request.getfixturevalue("antipode_postgresql")
    plain = stack.enter_context(psycopg.connect(topology.url(), autocommit=True))
    postgresql.instrument_connection(plain, datastore=NAME)
    stack.callback(postgresql.uninstrument_connection, plain)
    topology.execute("DROP TABLE IF EXISTS events")
    topology.wait_replicated()
    topology.pause_applier()
    stack.callback(topology.resume_applier)
    topology.execute("CREATE TABLE events (id int)")
    row = plain.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
    assert row is not None
    servers = [
        f"jdbc:postgresql://{each}/{topology.database}"
        for each in (topology.primary, topology.replica)
    ]
    account = [topology.user, topology.password]
    lineage = postgresql.lineage(NAME, lsn=row[0])
    return Told(["postgresql", *servers, *account, row[0]], lineage, topology.resume_applier)


def by_mysql(store: str) -> Callable[[pytest.FixtureRequest, ExitStack], Told]:
    """A transaction at the primary of MySQL or MariaDB, by its GTID."""

    def made(request: pytest.FixtureRequest, stack: ExitStack) -> Told:
        topology = request.getfixturevalue(f"antipode_{store}")
        sql = stack.enter_context(closing(Sql(topology)))
        mysql.instrument_connection(sql.plain(), datastore=NAME)
        run(sql.plain(), "CREATE TABLE IF NOT EXISTS events (id INT PRIMARY KEY)")
        topology.wait_replicated()
        topology.execute("FLUSH BINARY LOGS")  # Other tests' statements may be no text.
        topology.pause_applier()
        stack.callback(topology.resume_applier)
        run(sql.plain(), "REPLACE INTO events VALUES (1)")
        gtid = gtids(sql)[-1]
        servers = [
            f"jdbc:{store}://{each}/{topology.database}"
            for each in (topology.primary, topology.replica)
        ]
        arguments = ["mysql", *servers, topology.user, topology.password, gtid]
        return Told(arguments, mysql.lineage(NAME, gtid=gtid), topology.resume_applier)

    return made


def by_mongodb(request: pytest.FixtureRequest, stack: ExitStack) -> Told:
    """What a change stream reports."""
    del request
    topology = stack.enter_context(MongoDBTopology(voting=False))
    stack.enter_context(client(topology.primary, {"datastore": NAME}))
    plain = stack.enter_context(plain_client(topology.primary))
    changes = stack.enter_context(plain.app.events.watch())
    topology.pause()
    plain.app.events.insert_one({"_id": 1})
    event = next(changes)
    time = event["clusterTime"]
    servers = [topology.url(each) for each in (topology.primary, topology.replica)]
    arguments = ["mongodb", *servers, "", "", str(time.time << 32 | time.inc)]
    return Told(arguments, mongodb.lineage(NAME, event), topology.resume)


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(by_postgresql, marks=pytest.mark.store("postgresql"), id="postgresql"),
        pytest.param(by_mysql("mysql"), marks=pytest.mark.store("mysql"), id="mysql"),
        pytest.param(by_mysql("mariadb"), marks=pytest.mark.store("mariadb"), id="mariadb"),
        pytest.param(by_mongodb, marks=pytest.mark.store("mongodb"), id="mongodb"),
    ],
)
def test_an_event_in_java_is_the_one_of_python(
    request: pytest.FixtureRequest,
    made: Callable[[pytest.FixtureRequest, ExitStack], Told],
) -> None:
    """A replica that lacks it is waited for; as of now covers it."""
    with ExitStack() as stack:
        told = made(request, stack)
        program: subprocess.Popen[Any] = subprocess.Popen(
            ["java", "-cp", command("java")[-1], str(PROGRAM), *told.arguments],
            stdout=subprocess.PIPE,
            text=True,
        )
        stack.enter_context(program)
        stack.callback(program.kill)
        assert program.stdout is not None
        lines = [program.stdout.readline().strip() for _ in range(3)]
        assert antipode.deserialize(lines[0]) == told.lineage
        (event,) = told.lineage
        now = {write.key: write for write in antipode.deserialize(lines[1])}
        assert all(write.covering for write in now.values())
        at = now.get(event.key)
        assert at is None or int(at.version) >= int(event.version)
        assert lines[2] == "false"
        told.resume()
        assert program.stdout.readline().strip() == "true"
