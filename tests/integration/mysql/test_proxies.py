"""Behind balancers and proxies: nobody else is disturbed, and nothing passes early."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pymysql
import pytest

import antipode
from antipode import (
    BarrierTimeout,
    ConfigurationError,
    Lineage,
    VisibilityCheckError,
    WriteId,
)
from antipode_cli._check import Verdict
from antipode_cli._doctor_stores import stores
from antipode_shims import mysql as shims
from antipode_testing import wait_until
from tests.integration._balancers import haproxy, mysqlrouter

from ._clients import NOTES, TRACK, UNSAMPLED, Sql, minted, run
from ._proxies import (
    StatementProxy,
    by_comment,
    by_plain_reads,
    by_reads,
    by_reads_and_shows,
    by_table,
    to_readers,
    to_writers,
)
from ._servers import FLAVORS, Regions, only, regions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import Address, MySQLTopology

RULES = [by_reads, by_reads_and_shows]


@pytest.fixture(params=FLAVORS)
def here(request: pytest.FixtureRequest) -> Iterator[Regions]:
    with regions(request.getfixturevalue(request.param)) as found:
        yield found


def session(here: Regions, address: Address) -> Any:
    """A client's connection that the library has nothing to do with."""
    topology = here.topology
    return pymysql.connect(
        host=address.host, port=address.port, user=topology.user, password=topology.password
    )


@pytest.fixture
def late(here: Regions) -> Lineage:
    """A write that no server has yet."""
    written = only(here.replicated())
    assert isinstance(written.version, int)
    return Lineage([replace(written, version=written.version + 1000)])


def read_through(here: Regions, address: Address) -> None:
    """Let barriers look through the proxy at *address*."""
    here.reader.close()
    url = here.topology.url(address)
    here.reader = shims.shim("posts", url, reads_from="replica", one_server=True)


@pytest.mark.usefixtures("endless")
def test_no_query_of_a_stranger_is_ended(here: Regions, late: Lineage) -> None:
    """A barrier that gives up ends its own statement on the server, and no other client's.

    What a connection was called by whoever accepted it is the number of another client's thread.
    """
    topology = here.topology
    with (
        closing(session(here, topology.replica)) as client,
        closing(client.cursor()) as cursor,
        StatementProxy(topology, to_readers) as proxy,
        ThreadPoolExecutor(1) as pool,
    ):
        proxy.numbers = itertools.repeat(client.thread_id())
        read_through(here, proxy.address)
        query = pool.submit(cursor.execute, "SELECT SLEEP(2)")
        with pytest.raises(BarrierTimeout):
            antipode.barrier(late, timeout=0.3)
        wait_until(lambda: not here.waiting(), what="the statement to end", timeout_s=20)
        query.result()
        assert cursor.fetchone() == (0,)


def test_no_wait_behind_a_balancer(
    here: Regions, late: Lineage, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the next connection reaches another server, nothing blocks; it is logged."""
    topology = here.topology
    with haproxy(topology.replica, topology.primary) as address:
        read_through(here, address)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(antipode.barrier, late, timeout=0.5, on_unmet="return")
            told = "several servers answer"
            wait_until(lambda: told in caplog.text, what="the log", timeout_s=5)
            assert not here.waiting()
            assert not waiting.result()


def through(sql: Sql, address: Address, **options: Any) -> Any:
    """An instrumented connection through a proxy, whose server nobody asked yet."""
    connection = sql.plain(address, client_flag=TRACK)
    return shims.instrument_connection(connection, datastore=NOTES, **options)


def writer(sql: Sql) -> Any:
    """A connection to the primary that writes, and is waited for nowhere."""
    return sql.connect()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("locks", [False, True], ids=["free", "locks"])
def test_write_through_splitting_is_covered_or_marked(sql: Sql, rule: Any, *, locks: bool) -> None:
    """A write whose position is asked of another server is marked, if it is not covered.

    Nothing that the library sends binds the session so that the application's reads are refused.
    """
    with StatementProxy(sql.topology, rule, locks=locks) as proxy:
        connection = through(sql, proxy.address, one_server=False)
        with antipode.scope() as scope:
            run(connection, "REPLACE INTO notes VALUES (1, 'a')")
            run(connection, "SELECT body FROM notes")
        assert minted(scope) == [sql.position()] or UNSAMPLED in scope.lineage.incomplete


def test_write_through_a_user_of_the_writers(sql: Sql) -> None:
    """Where a user's statements all go to one group of servers, writes have their positions."""
    with StatementProxy(sql.topology, to_writers, locks=True) as proxy:
        connection = through(sql, proxy.address, one_server=False)
        with antipode.scope() as scope:
            run(connection, "REPLACE INTO notes VALUES (1, 'a')")
        assert minted(scope) == [sql.position()]
        assert not scope.lineage.incomplete


@pytest.mark.slow
def test_an_identity_is_one_servers(sql: Sql) -> None:
    """What a new connection through a proxy says of its server is of one server alone."""
    topology = sql.topology
    here = {topology.primary, topology.replica}
    direct = {incarnation(sql, address) for address in here}
    readers = {"read": (topology.primary, topology.replica)}
    with StatementProxy(topology, to_readers, readers) as proxy:
        assert {incarnation(sql, proxy.address) for _ in range(4)} == direct


def incarnation(sql: Sql, address: Address) -> str:
    """What a look at *address* names."""
    url = sql.topology.url(address)
    shim = shims.shim("else", url, reads_from="replica", one_server=True)
    try:
        endpoint = shim.open_endpoint(timeout_s=5)
        with closing(endpoint):
            return endpoint.observe([WriteId("else", "0.1", 1)], timeout_s=5).server
    finally:
        shim.close()


@pytest.mark.slow
@pytest.mark.parametrize("at", ["now", "read"])
def test_no_guarded_read_through_a_user_of_the_readers_is_early(sql: Sql, at: Any) -> None:
    """Each read waits on the server that serves it, whichever of the group that is."""
    topology = sql.topology
    written = writer(sql)
    readers = {"read": (topology.primary, topology.replica)}
    topology.set_lag(20)
    with StatementProxy(topology, to_readers, readers) as proxy:
        for number in range(4):
            with antipode.scope():
                run(written, "REPLACE INTO notes VALUES (%s, 'a')", number)
                connection = through(sql, proxy.address, reads_from="replica", one_server=True)
                antipode.barrier(timeout=5, at=at)
                assert run(connection, "SELECT 1 FROM notes WHERE id = %s", number)


def guarded_reads(sql: Sql, written: Any, address: Address) -> None:
    """No read of a connection to *address* is early, whichever server it is on; plain ones are."""
    topology = sql.topology
    query = "SELECT 1 FROM notes WHERE id = %s"
    topology.pause()
    run(written, "REPLACE INTO notes VALUES (-1, 'a')")
    assert {len(run(sql.plain(address), query, -1)) for _ in range(8)} == {0, 1}
    topology.resume()
    topology.set_lag(20)
    for number in range(10):
        with antipode.scope() as scope:
            run(written, "REPLACE INTO notes VALUES (%s, 'a')", number)
            assert minted(scope) == [sql.position()]
            connection = through(sql, address, reads_from="replica", one_server=False)
            antipode.barrier(timeout=5, at="read")
            assert run(connection, query, number)


def test_no_guarded_read_through_a_balancer_is_early(sql: Sql) -> None:
    """HAProxy in TCP mode, before all servers."""
    with haproxy(sql.topology.primary, sql.topology.replica) as address:
        guarded_reads(sql, writer(sql), address)


@pytest.mark.store("mysql")
def test_no_guarded_read_through_mysql_router_is_early(antipode_mysql: MySQLTopology) -> None:
    """A port for writes and one for reads; MariaDB is not what it is for."""
    topology = antipode_mysql
    with (
        closing(Sql(topology)) as sql,
        mysqlrouter(topology.primary) as writes,
        mysqlrouter(topology.primary, topology.replica) as reads,
    ):
        topology.execute("CREATE TABLE IF NOT EXISTS app.notes (id INT PRIMARY KEY, body TEXT)")
        topology.execute("DELETE FROM app.notes")
        topology.wait_replicated()
        guarded_reads(sql, sql.connect(writes), reads)


@pytest.mark.parametrize("rule", [by_table, by_comment, by_plain_reads])
@pytest.mark.parametrize("one_server", [None, False], ids=["unknown", "false"])
@pytest.mark.parametrize("how", ["auto", "read", "now"])
def test_no_guarded_read_is_early_where_some_queries_are_split(
    sql: Sql, rule: Any, *, one_server: bool | None, how: str
) -> None:
    """Where only some queries go to a reader, a read that waits is refused: others are asked."""
    primary = sql.connect()
    with StatementProxy(sql.topology, rule) as proxy:
        barriers = "auto" if how == "auto" else "explicit"
        options: dict[str, Any] = {"reads_from": "replica", "one_server": one_server}
        connection = through(sql, proxy.address, barriers=barriers, **options)
        run(connection, "SELECT 1 FROM notes")
        sql.topology.pause()
        with antipode.scope():
            run(primary, "REPLACE INTO notes VALUES (1, 'a')")
            with pytest.raises((ConfigurationError, VisibilityCheckError), match="one_server=True"):
                read_guarded(connection, how)


def read_guarded(connection: Any, how: str) -> None:
    """A read of what another connection wrote, after a barrier of that kind."""
    if how != "auto":
        antipode.barrier(timeout=5, at="read" if how == "read" else "now")
    run(connection, "SELECT /* ro */ body FROM notes WHERE id = 1")


def test_the_proxys_own_number_is_no_proof(sql: Sql) -> None:
    """The stand-in gives the number of its handshake where ProxySQL does, and only there."""
    with StatementProxy(sql.topology, by_table) as proxy:
        plain = sql.plain(proxy.address)
        assert run(plain, "SELECT CONNECTION_ID()") == [(plain.thread_id(),)]
        assert run(plain, "SELECT CONNECTION_ID() AS id") != [(plain.thread_id(),)]


def test_a_proxy_is_a_proxy_for_all_connections(sql: Sql) -> None:
    """A connection whose numbers are equal by chance is refused once another one was not."""
    with StatementProxy(sql.topology, by_table) as proxy, antipode.scope():
        first = through(sql, proxy.address)
        run(first, "SELECT 1 FROM notes")
        second = same_by_chance(sql, proxy)
        run(second, "SELECT 1 FROM notes")
        antipode.barrier(Lineage([WriteId(NOTES, *sql.position(), 1)]), timeout=5, at="read")
        with pytest.raises(ConfigurationError, match="one_server=True"):
            run(second, "SELECT 1 FROM notes")


def same_by_chance(sql: Sql, proxy: StatementProxy) -> Any:
    """A connection that the proxy and the server know by the same number."""
    for _ in range(50):
        with closing(sql.plain()) as other:
            proxy.numbers = itertools.count(other.thread_id() + 1)
        plain = sql.plain(proxy.address, client_flag=TRACK)
        if run(plain, "SELECT CONNECTION_ID() AS id") == [(plain.thread_id(),)]:
            return shims.instrument_connection(plain, datastore=NOTES)
    pytest.fail("the server gives its numbers in no order")


def test_a_read_through_splitting_is_not_covered(here: Regions) -> None:
    """What a read may have seen is asked of another server than the one that was read."""
    here.replicated()
    with StatementProxy(here.topology, by_reads) as proxy:
        split = shims.shim("posts", here.topology.url(proxy.address), one_server=False)
        with closing(split), antipode.scope():
            assert ("posts", "unsampled") in split.read("k")[1].incomplete


@pytest.mark.parametrize("rule", RULES)
def test_two_servers_on_one_connection_are_refused(
    sql: Sql, rule: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A read under a floor is not answered where another server than the one asked may serve it.

    Statements without a floor go their way, and the log says it once.
    """
    with StatementProxy(sql.topology, rule) as proxy, antipode.scope():
        connection = through(sql, proxy.address, one_server=False)
        sql.topology.pause()
        run(connection, "SELECT body FROM notes")
        run(connection, "REPLACE INTO notes VALUES (1, 'a')")
        run(connection, "SELECT body FROM notes")
        position = WriteId(NOTES, *sql.position(), 1)
        if rule is by_reads_and_shows and sql.mariadb:
            return  # Nothing of this session shows that its writes go elsewhere; they are marked.
        antipode.barrier(Lineage([position]), timeout=5, at="read")
        with pytest.raises(ConfigurationError, match="one_server=False"):
            run(connection, "SELECT body FROM notes")
        run(connection, "REPLACE INTO notes VALUES (2, 'a')")
    assert caplog.text.count("one_server=False") == 1


def test_a_barrier_through_splitting_is_undecidable(sql: Sql) -> None:
    """A barrier that looks where reads are split from writes vouches for nothing, and says why."""
    written = sql.connect(reads_from="primary")
    with StatementProxy(sql.topology, by_reads) as proxy, antipode.scope():
        through(sql, proxy.address, reads_from="replica")
        run(written, "REPLACE INTO notes VALUES (1, 'a')")
        with pytest.raises(VisibilityCheckError, match="a user of its own"):
            antipode.barrier(timeout=5)


@pytest.mark.slow
def test_doctor_names_two_servers_on_one_connection(sql: Sql) -> None:
    """The doctor finds a proxy that splits reads from writes, however it was registered."""
    with StatementProxy(sql.topology, by_reads) as proxy:
        for one_server in (False, True):
            connection = through(sql, proxy.address, one_server=one_server)
            (found,) = [
                check for check in stores(imported=True, timeout_s=5, automatic=False) if check.todo
            ]
            assert found.verdict is Verdict.PROBLEM
            assert "a user of its own" in found.said
            shims.uninstrument_connection(connection)
