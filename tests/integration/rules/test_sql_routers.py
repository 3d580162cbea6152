"""A router of SQLAlchemy's asks where the next read goes, and no read is stale in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import antipode
from antipode import StaleSnapshot
from antipode_shims import mysql
from antipode_testing import wait_until

if TYPE_CHECKING:
    from antipode_testing import MySQLTopology

pytestmark = pytest.mark.slow


@pytest.fixture(
    params=[pytest.param(each, marks=pytest.mark.store(each)) for each in ("mysql", "mariadb")]
)
def servers(request: pytest.FixtureRequest) -> MySQLTopology:
    """A primary and a replica of each."""
    found: MySQLTopology = request.getfixturevalue(f"antipode_{request.param}")
    return found


class RoutedSession(Session):
    """As the guide has it."""

    engines: dict[str, Any]

    def get_bind(self, mapper: Any = None, *, clause: Any = None, **options: Any) -> Any:
        """The primary for writes, and for reads that the replica cannot answer yet."""
        del mapper, options
        writes = self._flushing or clause is None or not clause.is_select
        return self.engines["primary" if writes else antipode.reads_from("notes")]


def test_a_session_reads_at_the_primary_while_the_replica_lags(servers: MySQLTopology) -> None:
    """What it has just committed is in the answer; new requests read at the replica that has it."""
    antipode.configure(barriers="auto", auto_timeout=0.1, on_stale="primary")
    engines = {
        role: mysql.instrument_engine(
            sqlalchemy.create_engine(servers.url(getattr(servers, role))),
            datastore="notes",
            reads_from=role,  # type: ignore[arg-type]
        )
        for role in ("primary", "replica")
    }
    RoutedSession.engines = engines
    table = sqlalchemy.Table(
        "routed",
        sqlalchemy.MetaData(),
        sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True),
    )
    with antipode.scope():
        with engines["primary"].begin() as connection:
            table.create(connection)
        antipode.barrier(timeout=15)
    servers.cut()
    try:
        with antipode.scope(), RoutedSession() as session, engines["replica"].connect() as old:
            old.execute(sqlalchemy.select(table.c.id))
            session.execute(table.insert().values(id=1))
            assert antipode.reads_from("notes") == "primary"  # Not committed yet.
            session.commit()
            with RoutedSession() as later:
                assert later.scalars(sqlalchemy.select(table.c.id)).all() == [1]
            with pytest.raises(StaleSnapshot):  # It cannot be moved.
                old.execute(sqlalchemy.select(table.c.id))
            servers.heal()
            antipode.barrier(timeout=15)
            assert antipode.reads_from("notes") == "primary"  # It does not go back in time.
            text = antipode.serialize()
        with antipode.scope(text):
            wait_until(
                lambda: antipode.reads_from("notes") == "replica",
                what="a poll in time",
                timeout_s=15,
            )
    finally:
        servers.heal()
        table.drop(engines["primary"])
        for engine in engines.values():
            mysql.uninstrument_engine(engine)
            engine.dispose()


async def test_an_asynchronous_session_asks_before_it_is_used(servers: MySQLTopology) -> None:
    """The same over aiomysql: the engine is chosen by ``reads_from_async()``."""
    antipode.configure(auto_timeout=0.1)
    engines = {
        role: mysql.instrument_engine(
            create_async_engine(
                servers.url(getattr(servers, role)).replace("+pymysql", "+aiomysql")
            ),
            datastore="notes",
            reads_from=role,  # type: ignore[arg-type]
        )
        for role in ("primary", "replica")
    }
    table = sqlalchemy.Table(
        "routed_later",
        sqlalchemy.MetaData(),
        sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True),
    )

    async def rows() -> list[int]:
        async with AsyncSession(engines[await antipode.reads_from_async("notes")]) as session:
            return list((await session.scalars(sqlalchemy.select(table.c.id))).all())

    with antipode.scope():
        async with engines["primary"].begin() as connection:
            await connection.run_sync(table.create)
        await antipode.barrier_async(timeout=15)
    servers.cut()
    try:
        assert await antipode.reads_from_async("notes") == "replica"
        with antipode.scope():
            async with AsyncSession(engines["primary"]) as session:
                await session.execute(table.insert().values(id=1))
                await session.commit()
            assert await antipode.reads_from_async("notes") == "primary"
            assert await rows() == [1]
            servers.heal()
            await antipode.barrier_async(timeout=15)
            assert await rows() == [1]
    finally:
        servers.heal()
        async with engines["primary"].begin() as connection:
            await connection.run_sync(table.drop)
        for engine in engines.values():
            mysql.uninstrument_engine(engine)
            await engine.dispose()
