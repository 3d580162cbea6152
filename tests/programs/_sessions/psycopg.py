"""Sessions of psycopg 3, synchronous and asynchronous."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import psycopg

from antipode_shims import postgresql

from .bench import DATASTORE, OFTEN, Fault, step
from .both import Awaited
from .connected import AsCalls, InLoop
from .postgresql import APPLICATION, INNER, PostgreSQL
from .sql import CANCEL_S

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence


class PsycopgSteps(PostgreSQL):
    """The steps of both."""

    refusals: ClassVar[tuple[type[BaseException], ...]] = (psycopg.Error, UnicodeError)

    async def connect(self, *, replica: bool) -> Any:
        """With the name by which the server tells the session's statements."""
        server = self.topology.replica if replica else self.topology.primary
        connection = await self._made(
            self.topology.url(server),
            application_name=APPLICATION,
            autocommit=self.autocommit or replica,
        )
        return self._instrumented(connection, "replica" if replica else "primary")

    async def _made(self, url: str, **options: Any) -> Any:
        return await psycopg.AsyncConnection.connect(url, **options)

    def _instrumented(self, connection: Any, reads_from: Any) -> Any:
        return postgresql.instrument_connection(
            connection, datastore=DATASTORE, reads_from=reads_from
        )

    def gone(self) -> bool:
        """Closed, or broken."""
        return bool(self.session.closed or self.session.broken)

    async def roll_back(self) -> None:
        """``rollback()``."""
        await self.session.rollback()

    async def disconnect(self, connection: Any) -> None:
        """``close()``."""
        postgresql.uninstrument_connection(self._bare(connection))
        await connection.close()

    def _bare(self, connection: Any) -> Any:
        return connection

    async def send(self, text: str, *args: Any, **options: Any) -> list[Any]:
        """By ``execute``."""
        await self.whole()
        self.trace.append(text)
        cursor = await self.session.execute(text, args or None, **options)
        return await cursor.fetchall() if cursor.description else []

    async def past_the_library(self, text: str) -> Sequence[Any]:
        """By the library's own way to ask."""
        found: Sequence[Any] = await self.session._antipode_ask(text)
        return found

    async def read_replica(self, text: str) -> list[Any]:
        """By ``execute``."""
        found: list[Any] = await (await self.reader.execute(text)).fetchall()
        return found

    @step(OFTEN)
    async def method_commit(self, choose: random.Random) -> None:
        """``commit()``."""
        self.trace.append("commit()")
        await self.session.commit()

    @step(OFTEN)
    async def method_rollback(self, choose: random.Random) -> None:
        """``rollback()``."""
        self.trace.append("rollback()")
        await self.session.rollback()

    @step(OFTEN)
    async def parameters(self, choose: random.Random) -> None:
        """A statement with values, perhaps prepared."""
        prepare = choose.choice((None, True, False))
        await self.send("INSERT INTO kept VALUES (%s, %s)", self.number(), 8, prepare=prepare)

    @step()
    async def cannot_be_encoded(self, choose: random.Random) -> None:
        """A value that no statement can carry: nothing is sent."""
        await self.send("INSERT INTO kept VALUES (%s, 8)", choose.choice((object(), "\ud800")))

    @step(2)
    async def many(self, choose: random.Random) -> None:
        """``executemany``, whose rows may be fetched, and whose last may fail."""
        rows = [(self.number(),) for _ in range(choose.randrange(1, 4))]
        rows += rows[:1] if choose.random() < 0.3 else []
        await self.whole()
        self.trace.append(f"executemany {rows}")
        returning = choose.random() < 0.5
        await self.session.cursor().executemany(
            "INSERT INTO kept VALUES (%s, 9) RETURNING n", rows, returning=returning
        )

    @step(4)
    async def block(self, choose: random.Random) -> None:
        """``transaction()``, perhaps nested, with a caught error, or rolled back."""
        await self.whole()
        self.trace.append("with transaction():")
        async with self.session.transaction(force_rollback=choose.random() < 0.2):
            await self._inner(choose, self.send)
            with contextlib.suppress(*self.refusals):
                async with self.session.transaction():
                    self.trace.append("with transaction(), nested:")
                    await self._inner(choose, self.send)

    async def _inner(self, choose: random.Random, send: Any) -> None:
        for text in choose.choices(INNER, k=choose.randrange(1, 4)):
            await send(text.replace("{n}", str(self.number())))

    @step(4)
    async def pipeline(self, choose: random.Random) -> None:
        """Several statements in one packet, of which some are fetched at once."""
        await self.whole()
        self.trace.append("with pipeline():")
        async with self.session.pipeline() as pipeline:
            await self._inner(choose, partial(self._piped, choose))
            if choose.random() < 0.3:
                self.trace.append("sync()")
                await pipeline.sync()
                await self._inner(choose, partial(self._piped, choose))

    async def _piped(self, choose: random.Random, text: str) -> None:
        self.trace.append(text)
        cursor = await self.session.execute(text)
        if choose.random() < 0.4 and not text.startswith("UPDATE") and "7)" not in text[-2:]:
            self.trace.append("fetchone()")
            await cursor.fetchone()

    @step(2)
    async def pipeline_of_a_block(self, choose: random.Random) -> None:
        """A transaction within a pipeline."""
        await self.whole()
        self.trace.append("with pipeline(), transaction():")
        async with self.session.pipeline(), self.session.transaction():
            await self._inner(choose, partial(self._piped, choose))

    @step(2)
    async def pipeline_under_floor(self, choose: random.Random) -> None:
        """A read under a floor within a pipeline, after a statement that may write."""
        await self.whole()
        self.trace.append("with pipeline(), under a floor:")
        async with self.session.pipeline():
            await self._inner(choose, partial(self._piped, choose))
            await self.shows(self.floor())

    @step(2)
    async def copy(self, choose: random.Random) -> None:
        """``COPY FROM``, whose source may fail."""
        await self.whole()
        self.trace.append("COPY kept FROM STDIN")
        async with self.session.cursor().copy("COPY kept FROM STDIN") as copy:
            await copy.write_row((self.number(), 10))
            if choose.random() < 0.3:
                raise psycopg.DataError("the source of a copy fails")

    @step()
    async def stream(self, choose: random.Random) -> None:
        """``stream()``, which is left after one row or read to its end."""
        await self.whole()
        self.trace.append("stream()")
        text = "INSERT INTO kept VALUES (%s, 11), (%s, 11) RETURNING n"
        rows = self.session.cursor().stream(text, (self.number(), self.number()))
        async with contextlib.aclosing(rows):
            async for _ in rows:
                if choose.random() < 0.5:
                    break

    @step()
    async def named(self, choose: random.Random) -> None:
        """A cursor at the server, which sees what its transaction saw."""
        await self.whole()
        wanted = self.floor()
        self.trace.append("named cursor")
        async with self.session.cursor("named") as cursor:
            await cursor.execute(wanted)
            if not await cursor.fetchall():
                raise Fault("early", f"{wanted} shows no row by a named cursor")

    @step()
    async def switched(self, choose: random.Random) -> None:
        """Commit by itself, or not any more."""
        await self.whole()
        wanted = choose.random() < 0.5
        await self.session.set_autocommit(wanted)
        self.autocommit = wanted
        self.trace.append(f"set_autocommit({wanted})")


class Psycopg(InLoop, PsycopgSteps):
    """The asyncio API."""

    @step(2)
    async def cancelled(self, choose: random.Random) -> None:
        """A task that is cancelled while it writes, or as it ends."""
        await self.whole()
        insert = self.send("INSERT INTO kept VALUES (%s, 12)", self.number())
        await self.cancel(insert, choose.uniform(0, CANCEL_S))


class SyncPsycopg(AsCalls, PsycopgSteps):
    """The synchronous API."""

    async def _made(self, url: str, **options: Any) -> Any:
        return psycopg.connect(url, **options)

    def _instrumented(self, connection: Any, reads_from: Any) -> Any:
        return Awaited(super()._instrumented(connection, reads_from))

    def _bare(self, connection: Any) -> Any:
        return connection.part
