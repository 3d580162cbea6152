"""PostgreSQL with asyncpg: a pool of instrumented connections."""

import asyncio
import sys

import asyncpg

import antipode
from antipode_shims import postgresql


async def instrument(connection: asyncpg.Connection) -> None:
    postgresql.instrument_connection(connection, datastore="native")


async def main() -> None:
    pool = await asyncpg.create_pool(sys.argv[1], min_size=1, init=instrument)
    with antipode.scope() as scope:
        async with pool.acquire() as one, one.transaction():
            await one.execute("CREATE TABLE IF NOT EXISTS extras_native (id int PRIMARY KEY)")
            await one.execute(
                "INSERT INTO extras_native VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 1"
            )
        await antipode.barrier_async(timeout=5, at="read")
        assert await pool.fetchval("SELECT id FROM extras_native") == 1
        assert scope.lineage
        assert not scope.lineage.incomplete
    await pool.close()


asyncio.run(main())
