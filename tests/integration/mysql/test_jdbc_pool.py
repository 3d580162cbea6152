"""JDBC as services have it: HikariCP, with drivers whose status words say nothing at times.

HikariCP asks a connection whether it lives after half a second of rest, and ``ping`` does so at
once: then Connector/J has cleared its status word. An error clears it too, and MariaDB's driver
says after one that a transaction is open.
"""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import pytest

from antipode import StaleSnapshot
from antipode_testing import LagProxy
from tests.agent.client import StoreError
from tests.integration.mysql._clients import IN_DOUBT
from tests.integration.mysql.test_jdbc import INSERT, TIMEOUT_S, application

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.integration.mysql.test_jdbc import Application, Client

__all__ = ["application"]
#: Connector/J reads rows one by one where a statement asks for so many at a time.
ONE_BY_ONE = -(2**31)
#: What pools are opened with: positions in replies or not, statements prepared by the server.
OPTIONS = {
    "mysql": {
        "tracked": "?trackSessionState=true",
        "plain": "?trackSessionState=false",
        "server": "?useServerPrepStmts=true",
        "cursors": "?useCursorFetch=true&defaultFetchSize=2",
        "streams": f"?trackSessionState=true&defaultFetchSize={ONE_BY_ONE}",
    },
    "mariadb": {
        "plain": "?tcpKeepAlive=true",
        "server": "?useServerPrepStmts=true",
        "cursors": "?defaultFetchSize=2",
        "streams": "?defaultFetchSize=1",
    },
}
pools = pytest.mark.parametrize("pool", ["tracked", "plain", "server", "cursors", "streams"])


def no_such_pool(of: Mapping[str, Any]) -> bool:
    """Whether a driver has no pool with the options of these parameters."""
    return of.get("pool", "plain") not in OPTIONS[of["application"]]


pytestmark = [pytest.mark.slow, pytest.mark.pairwise(skips=no_such_pool)]


@contextmanager
def opened(
    application: Application, pool: str, *, place: Any = None, extra: str = "", **more: str
) -> Iterator[Client]:
    """A client of a pool with these options; skips what a driver does not have."""
    options = OPTIONS[application.store].get(pool)
    if options is None:
        pytest.skip(f"{application.store} has no such pool")
    address = place or application.topology.primary
    with application.client(address, url_options=options + extra, **more) as client:
        yield client


def _recorded(scope: Any) -> set[tuple[str, int | str]]:
    """Keys and versions, of positions that replies had and of those that were asked for."""
    return {(write.key, write.version) for write in scope.lineage}


def _refused(client: Client, statement: str) -> None:
    with pytest.raises(StoreError):
        client.call("update", statement)


def _rests(client: Client) -> None:
    client.call("query", "SELECT body FROM jdbc_notes")
    client.call("ping")
    client.call("close")


def _duplicates(client: Client) -> None:
    client.call("update", "REPLACE INTO jdbc_notes (id, body) VALUES (1, 'a')")
    _refused(client, "INSERT INTO jdbc_notes (id, body) VALUES (1, 'b')")


def _duplicates_in_another_request(client: Client) -> None:
    _duplicates(client)
    client.call("close")


def _names_no_table(client: Client) -> None:
    _refused(client, "INSERT INTO jdbc_no_such_table VALUES (1)")


def _rolls_back(client: Client) -> None:
    client.call("begin")
    client.call("update", INSERT)
    client.call("rollback")
    client.call("autocommit")
    client.call("ping")
    client.call("close")


BEFORE = [_rests, _duplicates, _duplicates_in_another_request, _names_no_table, _rolls_back]


@pools
@pytest.mark.parametrize("call", ["update", "prepared_update"])
def test_a_write_is_recorded_whatever_was_before(
    application: Application, pool: str, call: str
) -> None:
    """After a rest, an error, or a rollback in an earlier request, autocommit still commits."""
    with opened(application, pool) as client:
        for before in BEFORE:
            with application.remote.scope():
                before(client)
            with application.remote.scope() as scope:
                client.call(call, INSERT)
                assert application.position() in _recorded(scope), before
                assert not scope.lineage.incomplete


@pools
@pytest.mark.parametrize("call", ["update", "prepared_update"])
def test_an_error_in_the_same_request_hides_no_write(
    application: Application, pool: str, call: str
) -> None:
    """The next write by itself, and the commit of the next transaction, are recorded."""
    with opened(application, pool) as client:
        for before in (_duplicates, _names_no_table):
            with application.remote.scope() as scope:
                before(client)
                client.call(call, INSERT)
                assert application.position() in _recorded(scope)
            with application.remote.scope() as scope:
                client.call("begin")
                client.call(call, INSERT)
                before(client)
                client.call("commit")
                assert application.position() in _recorded(scope)
                client.call("autocommit")


@pools
def test_a_write_without_an_answer_is_in_doubt(application: Application, pool: str) -> None:
    """Also where the driver has no word that the statement would have committed by itself."""
    for before in BEFORE:
        with (
            LagProxy(application.topology.primary) as through,
            opened(application, pool, place=through.address) as client,
        ):
            with application.remote.scope():
                before(client)
            with application.remote.scope() as scope:
                client.call("query", "SELECT body FROM jdbc_notes")
                through.cut()
                with pytest.raises(StoreError):
                    client.call("update", INSERT)
                assert IN_DOUBT in scope.lineage.incomplete, before


def _streams(client: Client) -> None:
    client.call("stream", "SELECT body FROM jdbc_notes")
    client.call("read_on")


def _prepares(client: Client) -> None:
    client.call("prepared", "SELECT body FROM jdbc_notes")


def _lists_tables(client: Client) -> None:
    client.call("tables")


def _calls(client: Client) -> None:
    client.call("call", "{call jdbc_show()}")


def _asks_for_columns(client: Client) -> None:
    client.call("prepared_columns", "SELECT body FROM jdbc_notes")


READS = [_streams, _prepares, _lists_tables, _calls, _asks_for_columns]


@pools
@pytest.mark.parametrize("waits", ["before", "between"])
def test_no_read_of_a_transaction_is_older_than_its_barrier(
    application: Application, pool: str, waits: str
) -> None:
    """What the driver asks by itself opens the snapshot as reads do: it waits, or is too old."""
    topology = application.topology
    topology.wait_replicated()
    with (
        opened(application, pool) as primary,
        opened(application, pool, place=topology.replica, reads_from="replica") as replica,
    ):
        topology.set_lag(100)
        for first in READS:
            key = uuid.uuid4().hex
            with application.remote.scope():
                replica.call("begin")
                if waits == "between":
                    first(replica)
                primary.call("update", f"INSERT INTO jdbc_notes (body) VALUES ('{key}')")  # noqa: S608
                application.remote.barrier(timeout=TIMEOUT_S, at="read")
                if waits == "before":
                    first(replica)
                read = f"SELECT body FROM jdbc_notes WHERE body = '{key}'"  # noqa: S608
                try:
                    assert replica.call("query", read) == [key], first
                except StaleSnapshot:
                    assert waits == "between", first
                replica.call("rollback")
                replica.call("autocommit")
                replica.call("close")


#: More reads than HikariCP lends connections.
READERS = 12


def test_reads_that_wait_hold_no_connection_of_the_pool(application: Application) -> None:
    """More reads wait than the pool has connections, and those without a dependency pass."""
    topology, remote, key = application.topology, application.remote, uuid.uuid4().hex
    with (
        opened(application, "plain") as near,
        opened(application, "plain", place=topology.replica, reads_from="replica") as far,
        ThreadPoolExecutor(READERS) as threads,
    ):
        far.read(key)
        topology.pause()
        with remote.scope():
            try:
                near.write(key, b"1")
                remote.barrier(timeout=TIMEOUT_S, at="read")
                contexts = [copy_context() for _ in range(READERS)]
                waiting = [threads.submit(each.run, far.read, key) for each in contexts]
                with remote.scope():
                    for _ in range(READERS):
                        assert far.read(key)[0] is None
                assert not any(each.done() for each in waiting)
            finally:
                topology.resume()
            assert {each.result()[0] for each in waiting} == {b"1"}
