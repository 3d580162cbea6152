"""A pool in Java through a proxy: no held read is early where the proxy routes some queries.

The server is asked by other statements than the application's, which the proxy may send elsewhere.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from antipode import ConfigurationError, VisibilityCheckError
from tests.integration._balancers import haproxy
from tests.integration.mysql._proxies import (
    StatementProxy,
    by_comment,
    by_plain_reads,
    by_table,
    to_readers,
)
from tests.integration.mysql.test_jdbc import TIMEOUT_S, application

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.mysql.test_jdbc import Application, Client

__all__ = ["application"]
pytestmark = pytest.mark.slow

READ = "SELECT /* ro */ body FROM notes WHERE id = 1"
WRITE = "REPLACE INTO notes VALUES (1, 'a')"
#: Connector/J asks for positions with the reply, and for nothing that the proxy does not know.
OPTIONS = {"mysql": "?trackSessionState=true", "mariadb": ""}


@contextmanager
def through(application: Application, proxy: StatementProxy, **options: Any) -> Iterator[Client]:
    """A pool that reads through a proxy, and whose server has been asked what it is."""
    given = {"reads_from": "replica", "url_options": OPTIONS[application.store], **options}
    with application.client(proxy.address, **given) as client:
        with application.remote.scope():
            client.call("query", "SELECT 1 FROM notes")
        yield client


@pytest.fixture
def notes(application: Application) -> Application:
    """The table that some rules route by."""
    topology = application.topology
    topology.execute("CREATE TABLE IF NOT EXISTS app.notes (id INT PRIMARY KEY, body TEXT)")
    topology.execute("DELETE FROM app.notes")
    topology.wait_replicated()
    topology.set_lag(0)
    return application


@pytest.mark.parametrize("rule", [by_table, by_comment, by_plain_reads])
def test_no_held_read_is_early_where_some_queries_are_split(notes: Application, rule: Any) -> None:
    """Where only some queries go to a reader, a read that has to wait is refused."""
    remote, topology = notes.remote, notes.topology
    with (
        StatementProxy(topology, rule) as proxy,
        through(notes, proxy) as client,
        notes.client(topology.primary) as primary,
    ):
        topology.pause()
        try:
            for how in ("read", "now", "auto"):
                if how == "auto":
                    remote.configure(barriers="auto", auto_timeout_s=TIMEOUT_S)
                with remote.scope():
                    primary.call("update", f"REPLACE INTO notes VALUES (1, '{how}')")  # noqa: S608
                    refused = pytest.raises(
                        (ConfigurationError, VisibilityCheckError), match="oneServer"
                    )
                    with refused:
                        if how != "auto":
                            remote.barrier(timeout=TIMEOUT_S, at=how)
                        client.call("query", READ)
        finally:
            topology.resume()


def test_a_stated_server_is_waited_at(notes: Application) -> None:
    """A user of the readers: the application states that its statements reach one server."""
    topology = notes.topology
    with (
        StatementProxy(topology, to_readers) as proxy,
        through(notes, proxy, one_server=True) as client,
        notes.client(topology.primary) as primary,
        notes.remote.scope(),
    ):
        topology.set_lag(100)
        primary.call("update", WRITE)
        notes.remote.barrier(timeout=TIMEOUT_S, at="read")
        assert client.call("query", READ) == ["a"]


def test_a_connection_stays_with_one_server_of_a_group(notes: Application) -> None:
    """What a driver asks as it connects names a variable: a proxy keeps the session there."""
    topology = notes.topology
    group = {"read": (topology.replica, topology.primary)}
    for number in range(4):
        with (
            StatementProxy(topology, to_readers, group) as proxy,
            notes.client(
                proxy.address,
                reads_from="replica",
                url_options=OPTIONS[notes.store],
                one_server=True,
            ) as client,
            notes.client(topology.primary) as primary,
            notes.remote.scope(),
        ):
            topology.set_lag(100)
            next(proxy.turns["read"]) if number % 2 else None
            primary.call("update", f"REPLACE INTO notes VALUES (1, '{number}')")  # noqa: S608
            notes.remote.barrier(timeout=TIMEOUT_S)
            assert client.call("query", READ) == [str(number)]


def test_a_balancer_that_passes_bytes_on_needs_no_statement(notes: Application) -> None:
    """The number in the handshake is the server's own."""
    topology = notes.topology
    with (
        haproxy(topology.replica) as address,
        notes.client(address, reads_from="replica") as client,
        notes.client(topology.primary) as primary,
        notes.remote.scope(),
    ):
        topology.set_lag(100)
        primary.call("update", WRITE)
        notes.remote.barrier(timeout=TIMEOUT_S, at="read")
        assert client.call("query", READ) == ["a"]


def test_writes_through_a_proxy_go_their_way(notes: Application) -> None:
    """Only what has to wait is refused: a write is recorded, and a read without a wait answered."""
    with (
        StatementProxy(notes.topology, by_table) as proxy,
        through(notes, proxy, reads_from="primary") as client,
        notes.remote.scope() as scope,
    ):
        client.call("update", WRITE)
        client.call("query", "SELECT 1 FROM notes")
        assert notes.position() in {(write.key, write.version) for write in scope.lineage}
        assert not scope.lineage.incomplete
