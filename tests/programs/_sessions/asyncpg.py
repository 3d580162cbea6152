"""Sessions of asyncpg."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, ClassVar

import asyncpg

from antipode_shims import postgresql

from .bench import DATASTORE, Fault, step
from .connected import InLoop
from .postgresql import APPLICATION, INNER, PostgreSQL
from .sql import CANCEL_S

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

#: How texts begin whose rows are fetched.
READS = ("SELECT", "WITH", "FETCH", "SHOW", "EXPLAIN")


class Asyncpg(InLoop, PostgreSQL):
    """One connection, whose statements commit by themselves outside of transactions."""

    refusals: ClassVar[tuple[type[BaseException], ...]] = (
        *PostgreSQL.refusals,
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
        asyncpg.InternalClientError,  # Of a session that the server has ended just now.
        OSError,
        TimeoutError,
    )

    async def connect(self, *, replica: bool) -> Any:
        """With the name by which the server tells the session's statements."""
        server = self.topology.replica if replica else self.topology.primary
        connection = await asyncpg.connect(
            self.topology.url(server), server_settings={"application_name": APPLICATION}
        )
        return postgresql.instrument_connection(
            connection, datastore=DATASTORE, reads_from="replica" if replica else "primary"
        )

    def gone(self) -> bool:
        """Closed."""
        return bool(self.session.is_closed())

    async def roll_back(self) -> None:
        """``reset()``, as its pool does."""
        await self.session.reset()

    async def disconnect(self, connection: Any) -> None:
        """Close it at once."""
        postgresql.uninstrument_connection(connection)
        connection.terminate()

    async def send(self, text: str, *args: Any, **options: Any) -> list[Any]:
        """By ``fetch`` what has rows, by ``execute`` what has none."""
        connection = await self.whole()
        self.trace.append(text)
        if text.startswith(READS) and ";" not in text:
            return [tuple(row) for row in await connection.fetch(text, *args, **options)]
        await connection.execute(text, *args, **options)
        return []

    async def past_the_library(self, text: str) -> Sequence[Any]:
        """By the library's own way to ask."""
        found: Sequence[Any] = await self.session._antipode_ask(text)
        return found

    async def read_replica(self, text: str) -> list[Any]:
        """By ``fetch``."""
        return list(await self.reader.fetch(text))

    @step(8)
    async def parameters(self, choose: random.Random) -> None:
        """A statement with values: a prepared one."""
        await self.send("INSERT INTO kept VALUES ($1, $2)", self.number(), 8)

    @step(4)
    async def wrong_type(self, choose: random.Random) -> None:
        """A value that the client refuses: nothing is sent."""
        await self.send("UPDATE kept SET v = 0 WHERE n = $1", "not a number")

    @step(4)
    async def block(self, choose: random.Random) -> None:
        """``transaction()``, perhaps nested, with a caught error, or of another isolation."""
        connection = await self.whole()
        isolation = choose.choice((None, "repeatable_read", "serializable"))
        self.trace.append(f"async with transaction({isolation}):")
        async with connection.transaction(isolation=isolation):
            await self._inner(choose)
            with contextlib.suppress(*self.refusals):
                async with connection.transaction():
                    self.trace.append("async with transaction(), nested:")
                    await self._inner(choose)
            if choose.random() < 0.5:
                with contextlib.suppress(*self.refusals):
                    await self.wrong_type(choose)

    async def _inner(self, choose: random.Random) -> None:
        for text in choose.choices(INNER, k=choose.randrange(1, 4)):
            await self.send(text.replace("{n}", str(self.number())))

    @step(2)
    async def floor_in_block(self, choose: random.Random) -> None:
        """A read under a floor in a transaction, after an error of the client's own."""
        connection = await self.whole()
        self.trace.append("async with transaction(), under a floor:")
        async with connection.transaction():
            if choose.random() < 0.5:
                await self.send("INSERT INTO kept VALUES ($1, 8)", self.number())
            with contextlib.suppress(*self.refusals):
                await self.wrong_type(choose)
            await self.shows(self.floor())

    @step(2)
    async def many(self, choose: random.Random) -> None:
        """``executemany``, whose last row may fail."""
        rows = [(self.number(),) for _ in range(choose.randrange(1, 4))]
        rows += rows[:1] if choose.random() < 0.3 else []
        self.trace.append(f"executemany {rows}")
        await (await self.whole()).executemany("INSERT INTO kept VALUES ($1, 9)", rows)

    @step(2)
    async def copy(self, choose: random.Random) -> None:
        """``copy_records_to_table``, whose source may fail."""
        fails = choose.random() < 0.3
        number = self.number()

        def records() -> Iterator[tuple[int, int]]:
            yield number, 10
            if fails:
                raise TimeoutError("the source of a copy fails")

        self.trace.append(f"copy_records_to_table, fails: {fails}")
        await (await self.whole()).copy_records_to_table("kept", records=records())

    @step()
    async def cursor(self, choose: random.Random) -> None:
        """A cursor in a transaction, under a floor that comes before it."""
        connection = await self.whole()
        wanted = self.floor()
        self.trace.append(f"cursor({wanted})")
        async with connection.transaction():
            if not [row async for row in connection.cursor(wanted)]:
                raise Fault("early", f"{wanted} shows no row by a cursor")

    @step()
    async def statement(self, choose: random.Random) -> None:
        """A statement that is prepared before the floor and executed under it."""
        connection = await self.whole()
        statement = await connection.prepare("SELECT n FROM notes WHERE n = $1")
        number = int(self.floor().rpartition(" ")[2])
        self.trace.append(f"prepared statement, {number}")
        if not await statement.fetch(number):
            raise Fault("early", f"row {number} is not shown by a prepared statement")

    @step()
    async def timed_out(self, choose: random.Random) -> None:
        """A call with little time."""
        with contextlib.suppress(TimeoutError):
            await self.send(
                "INSERT INTO kept VALUES ($1, 11)", self.number(), timeout=choose.uniform(0, 0.004)
            )

    @step(2)
    async def cancelled(self, choose: random.Random) -> None:
        """A task that is cancelled while it writes, or as it ends."""
        await self.whole()
        insert = self.send("INSERT INTO kept VALUES ($1, 12)", self.number())
        await self.cancel(insert, choose.uniform(0, CANCEL_S))
