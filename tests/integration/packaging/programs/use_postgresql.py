"""PostgreSQL with its extra alone: an instrumented connection of each API, and an engine."""

import asyncio
import sys

import psycopg
import sqlalchemy as sa

import antipode
from antipode_shims import postgresql

URL = sys.argv[1]
ENGINE_URL = URL.replace("postgresql://", "postgresql+psycopg://")


def connection() -> None:
    plain = psycopg.connect(URL, autocommit=True)
    one = postgresql.instrument_connection(plain, datastore="native")
    with antipode.scope() as scope:
        one.execute("CREATE TABLE IF NOT EXISTS extras_native (id int PRIMARY KEY)")
        one.execute("INSERT INTO extras_native VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 1")
        antipode.barrier(timeout=5, at="read")
        assert one.execute("SELECT id FROM extras_native").fetchall() == [(1,)]
        assert scope.lineage
        assert not scope.lineage.incomplete
    postgresql.uninstrument_connection(one)
    one.close()


async def async_connection() -> None:
    plain = await psycopg.AsyncConnection.connect(URL)
    one = postgresql.instrument_connection(plain, datastore="native")
    with antipode.scope() as scope:
        await one.execute("UPDATE extras_native SET id = 1")
        await one.commit()
        await antipode.barrier_async(timeout=5, at="read")
        found = await one.execute("SELECT id FROM extras_native")
        assert await found.fetchall() == [(1,)]
        assert scope.lineage
        assert not scope.lineage.incomplete
    postgresql.uninstrument_connection(one)
    await one.close()


def engine() -> None:
    made = sa.create_engine(ENGINE_URL)
    postgresql.instrument_engine(made, datastore="orm")
    with antipode.scope() as scope, made.begin() as one:
        one.execute(sa.text("UPDATE extras_native SET id = 1"))
    with made.connect() as one:
        assert one.execute(sa.text("SELECT id FROM extras_native")).fetchall() == [(1,)]
    assert scope.lineage
    assert not scope.lineage.incomplete
    postgresql.uninstrument_engine(made)
    made.dispose()


connection()
asyncio.run(async_connection())
engine()
