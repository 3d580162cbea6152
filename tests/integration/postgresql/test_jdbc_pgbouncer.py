"""Pools of Java behind PgBouncer: what has to be stated, and what is refused."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from antipode import ConfigurationError, StaleSnapshot
from tests.integration.postgresql._jdbc import INSERT, REPEATABLE, Application, application
from tests.integration.postgresql.test_pgbouncer import pooled

if TYPE_CHECKING:
    from antipode_testing import PostgreSQLTopology
    from tests.agent.lending import Lend

pytestmark = [pytest.mark.slow, pytest.mark.store("postgresql")]

TIMEOUT_S = 20.0
#: PgBouncer of this release knows no statements that are prepared, in mode transaction.
PLAIN = "?prepareThreshold=0"


@pytest.fixture
def app(antipode_postgresql: PostgreSQLTopology, lend: Lend) -> Application:
    """A process in Java."""
    return application(antipode_postgresql, lend)


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_reads_wait_where_it_is_stated_that_it_leads_to_one_server(
    app: Application, mode: str
) -> None:
    """Each write has its position, and each read at the standby shows it."""
    topology = app.topology
    topology.set_lag(20)
    with (
        pooled(topology, topology.primary, mode) as primary,
        pooled(topology, topology.replica, mode) as standby,
        app.client(primary, url_options=PLAIN) as writer,
        app.client(standby, reads_from="replica", one_server=True, url_options=PLAIN) as reader,
    ):
        for number in range(4):
            key = uuid.uuid4().hex
            with app.remote.scope() as scope:
                if number % 2:
                    writer.call("begin")
                writer.call("update", f"INSERT INTO jdbc_notes (body) VALUES ('{key}')")  # noqa: S608
                if number % 2:
                    writer.call("commit")
                    writer.call("autocommit")
                assert len(scope.lineage) == 1
                assert not scope.lineage.incomplete
                app.remote.barrier(timeout=TIMEOUT_S, at="read" if number < 2 else "now")
                read = f"SELECT body FROM jdbc_notes WHERE body = '{key}'"  # noqa: S608
                assert reader.call("query", read) == [key]


def test_reads_that_have_to_wait_are_refused_where_nothing_is_stated(app: Application) -> None:
    """The error says what to state. Reads that depend on nothing go their way."""
    topology = app.topology
    with (
        pooled(topology, topology.replica, "transaction") as standby,
        app.client(topology.primary) as writer,
        app.client(standby, reads_from="replica", url_options=PLAIN) as reader,
        app.remote.scope(),
    ):
        assert reader.call("query", "SELECT 1") == ["1"]
        writer.call("update", INSERT)
        app.remote.barrier(timeout=TIMEOUT_S, at="read")
        with pytest.raises(ConfigurationError, match="oneServer"):
            reader.call("query", "SELECT 1")


def test_it_hides_whether_there_is_a_snapshot(app: Application) -> None:
    """A read in a REPEATABLE READ transaction that was begun before the write is refused."""
    topology = app.topology
    with (
        pooled(topology, topology.replica, "session") as standby,
        app.client(topology.primary) as writer,
        app.client(standby, reads_from="replica", one_server=True) as reader,
    ):
        reader.call("execute", REPEATABLE)
        reader.call("execute", "BEGIN")
        with app.remote.scope():
            writer.call("update", INSERT)
            app.remote.barrier(timeout=TIMEOUT_S, at="read")
            with pytest.raises(StaleSnapshot):
                reader.call("query", "SELECT 1")
