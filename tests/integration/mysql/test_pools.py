"""Reads that wait, and the pools of SQLAlchemy: requests wait before they take a connection."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy import text as sql_text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

import antipode
from antipode_shims import mysql
from antipode_testing import wait_until

from ._clients import NOTES, TIMEOUT_S, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode import Lineage

    from ._clients import Sql

POOL = 5
READS = 100
COUNT = sql_text("SELECT COUNT(*) FROM notes")
SMALL: dict[str, Any] = {"pool_size": POOL, "max_overflow": 0, "pool_timeout": TIMEOUT_S}
DRIVERS = ["mysql+pymysql", "mysql+mysqldb"]


@pytest.fixture
def lagging(sql: Sql) -> Iterator[tuple[Sql, Lineage]]:
    """A replica that applies nothing, the write of a lineage neither, until it goes on."""
    run(sql.plain(), "DELETE FROM notes")
    writer = sql.connect()
    sql.topology.wait_replicated()
    sql.topology.pause_applier()
    with antipode.scope() as scope:
        run(writer, "INSERT INTO notes VALUES (1, 'a')")
        lineage = scope.lineage
    yield sql, lineage
    sql.topology.resume_applier()


def reading(sql: Sql, driver: str, **options: Any) -> Any:
    """An instrumented engine that reads at the replica."""
    url = sql.topology.url(sql.topology.replica, driver=driver)
    engine = create_engine(url, **{**SMALL, **options})
    return mysql.instrument_engine(engine, datastore=NOTES, reads_from="replica")


def ended(engine: Any) -> None:
    """Give it up."""
    mysql.uninstrument_engine(engine)
    engine.dispose()


def connected(engine: Any) -> int:
    """A read of Core."""
    with engine.connect() as connection:
        return int(connection.execute(COUNT).scalar())


def in_session(engine: Any) -> int:
    """A read of a session, which takes its connection before the library sees the statement."""
    with Session(engine) as session:
        return int(session.execute(COUNT).scalar() or 0)


def derived(engine: Any) -> int:
    """A read of an engine with options of its own, on the same pool."""
    return connected(engine.execution_options(isolation_level="READ COMMITTED"))


def await_waiting(shim: Any, reads: int = READS) -> None:
    """Return once that many reads wait at the library's own connection."""
    wait_until(
        lambda: len(shim.watcher._subscribers) == reads, what=f"{reads} reads", timeout_s=TIMEOUT_S
    )


@pytest.mark.slow
@pytest.mark.parametrize("read", [connected, in_session, derived])
@pytest.mark.parametrize("driver", DRIVERS)
def test_reads_that_wait_hold_nobody_up(
    lagging: tuple[Sql, Lineage], driver: str, read: Callable[[Any], int]
) -> None:
    """Beside 100 requests that wait, with 5 connections, one without dependencies reads."""
    sql, lineage = lagging
    engine = reading(sql, driver)
    (shim,) = [each for each in antipode.shim.shims_of(NOTES) if each.reads_from == "replica"]

    def wait() -> int:
        with antipode.scope(lineage):
            antipode.barrier(timeout=TIMEOUT_S, at="read")
            return read(engine)

    with ThreadPoolExecutor(READS) as threads:
        waiting = [threads.submit(wait) for _ in range(READS)]
        await_waiting(shim)
        with antipode.scope():
            assert read(engine) == 0
        sql.topology.resume_applier()
        assert [each.result(TIMEOUT_S) for each in waiting] == [1] * READS
    ended(engine)


@pytest.mark.slow
async def test_tasks_that_wait_hold_nobody_up(lagging: tuple[Sql, Lineage]) -> None:
    """The same for an AsyncEngine, whose event loop goes on."""
    sql, lineage = lagging
    url = sql.topology.url(sql.topology.replica, driver="mysql+aiomysql")
    engine = create_async_engine(url, **SMALL)
    mysql.instrument_engine(engine, datastore=NOTES, reads_from="replica")
    (shim,) = [each for each in antipode.shim.shims_of(NOTES) if each.reads_from == "replica"]

    async def read() -> int:
        async with engine.connect() as connection:
            return int((await connection.execute(COUNT)).scalar() or 0)

    async def wait() -> int:
        with antipode.scope(lineage):
            await antipode.barrier_async(timeout=TIMEOUT_S, at="read")
            return await read()

    waiting = [asyncio.create_task(wait()) for _ in range(READS + 1)]
    await asyncio.to_thread(await_waiting, shim, READS + 1)
    waiting.pop().cancel()
    await asyncio.to_thread(await_waiting, shim, READS)
    with antipode.scope():
        assert await read() == 0
    await asyncio.to_thread(sql.topology.resume_applier)
    assert await asyncio.gather(*waiting) == [1] * READS
    mysql.uninstrument_engine(engine)
    await engine.dispose()


def test_a_pool_that_was_disposed_of(lagging: tuple[Sql, Lineage]) -> None:
    """The pool that takes its place lets requests wait before they take a connection, too."""
    sql, lineage = lagging
    engine = reading(sql, "mysql+pymysql", pool_size=1)
    engine.dispose()
    with antipode.scope(lineage):
        antipode.barrier(timeout=0.1, at="read")
        with pytest.raises(antipode.BarrierTimeout):
            connected(engine)
    with ThreadPoolExecutor(1) as threads:

        def wait() -> int:
            with antipode.scope(lineage):
                antipode.barrier(timeout=TIMEOUT_S, at="read")
                return connected(engine)

        waiting = threads.submit(wait)
        (shim,) = [each for each in antipode.shim.shims_of(NOTES) if each.reads_from == "replica"]
        await_waiting(shim, 1)
        with antipode.scope():
            assert connected(engine) == 0
        sql.topology.resume_applier()
        assert waiting.result(TIMEOUT_S) == 1
    ended(engine)


@pytest.mark.parametrize(("size", "places"), [(POOL, 2), (2, 1), (1, 1)])
def test_half_of_a_pool_waits_with_a_connection(
    lagging: tuple[Sql, Lineage], size: int, places: int
) -> None:
    """Of reads whose connection was taken before, half of a pool waits, and one of one does."""
    sql, lineage = lagging
    engine = reading(sql, "mysql+pymysql", pool_size=size, isolation_level="AUTOCOMMIT")
    begun = threading.Barrier(size + 1)
    errors: list[antipode.BarrierTimeout] = []

    def wait() -> int | None:
        with engine.connect() as connection:
            begun.wait(TIMEOUT_S)
            with antipode.scope(lineage):
                antipode.barrier(timeout=TIMEOUT_S, at="read")
                try:
                    return int(connection.execute(COUNT).scalar())
                except antipode.BarrierTimeout as error:
                    errors.append(error)
                    return None

    with ThreadPoolExecutor(size) as threads:
        waiting = [threads.submit(wait) for _ in range(size)]
        begun.wait(TIMEOUT_S)
        wait_until(lambda: len(errors) == size - places, what="the rest", timeout_s=TIMEOUT_S)
        assert all("half of the pool" in str(error.__cause__) for error in errors)
        if size > 1:
            with antipode.scope():
                assert connected(engine) == 0
        sql.topology.resume_applier()
        found = [each.result(TIMEOUT_S) for each in waiting]
    assert sorted(found, key=str) == [1] * places + [None] * (size - places)
    ended(engine)
