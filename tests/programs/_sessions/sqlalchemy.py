"""Sessions of SQLAlchemy over PostgreSQL: both APIs, over psycopg and over asyncpg."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, ClassVar

import sqlalchemy
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine

from antipode_shims import postgresql

from .bench import DATASTORE, OFTEN, step
from .both import Awaited
from .connected import AsCalls, InLoop
from .postgresql import APPLICATION, INNER, PostgreSQL
from .sql import CANCEL_S

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

INSERT = sqlalchemy.text("INSERT INTO kept VALUES (:n, 8)")


class SQLAlchemySteps(PostgreSQL):
    """A connection of an engine's pool; the steps of both APIs."""

    refusals: ClassVar[tuple[type[BaseException], ...]] = (*PostgreSQL.refusals, SQLAlchemyError)
    driver: ClassVar[str]
    arguments: ClassVar[dict[str, Any]]

    async def connect(self, *, replica: bool) -> Any:
        """Of an engine of its own."""
        server = self.topology.replica if replica else self.topology.primary
        options: dict[str, Any] = {"connect_args": self.arguments}
        if self.autocommit or replica:
            options["isolation_level"] = "AUTOCOMMIT"
        engine = self.engine(self.topology.url(server, driver=self.driver), **options)
        postgresql.instrument_engine(
            engine, datastore=DATASTORE, reads_from="replica" if replica else "primary"
        )
        return await self.whole_part(engine).connect()

    def engine(self, url: str, **options: Any) -> Any:
        """An engine that nothing instruments."""
        return create_async_engine(url, **options)

    def whole_part(self, part: Any) -> Any:
        """As steps call it."""
        return part

    def bare(self, part: Any) -> Any:
        """The client's own object."""
        return part

    def gone(self) -> bool:
        """Closed, or found dead."""
        return bool(self.session.closed or self.session.invalidated)

    async def roll_back(self) -> None:
        """``rollback()``."""
        await self.session.rollback()

    async def disconnect(self, connection: Any) -> None:
        """Close it, and its engine."""
        engine = self.bare(connection.engine)
        await connection.close()
        postgresql.uninstrument_engine(engine)
        await self.whole_part(engine).dispose()

    async def send(self, text: str) -> list[Any]:
        """By ``exec_driver_sql``."""
        await self.whole()
        self.trace.append(text)
        return await self._rows(self.session, text)

    async def _rows(self, connection: Any, text: str) -> list[Any]:
        result = self.bare(await connection.exec_driver_sql(text))
        return list(result.fetchall()) if result.returns_rows else []

    async def past_the_library(self, text: str) -> Sequence[Any]:
        """Nothing: an engine does not lend what the driver has."""
        return ()

    async def read_replica(self, text: str) -> list[Any]:
        """By ``exec_driver_sql``."""
        return await self._rows(self.reader, text)

    @step(OFTEN)
    async def method_commit(self, choose: random.Random) -> None:
        """``commit()``."""
        self.trace.append("commit()")
        await (await self.whole()).commit()

    @step(OFTEN)
    async def method_rollback(self, choose: random.Random) -> None:
        """``rollback()``."""
        self.trace.append("rollback()")
        await (await self.whole()).rollback()

    @step(OFTEN)
    async def parameters(self, choose: random.Random) -> None:
        """A statement with values, for one row or several."""
        rows = [{"n": self.number()} for _ in range(choose.randrange(1, 4))]
        rows += rows[:1] if choose.random() < 0.2 else []
        self.trace.append(f"insert {rows}")
        await (await self.whole()).execute(INSERT, rows)

    @step(4)
    async def nested(self, choose: random.Random) -> None:
        """``begin_nested()``, whose error is caught."""
        connection = await self.whole()
        self.trace.append("with begin_nested():")
        with contextlib.suppress(*self.refusals):
            async with connection.begin_nested():
                for text in choose.choices(INNER, k=choose.randrange(1, 4)):
                    await self.send(text.replace("{n}", str(self.number())))


class SQLAlchemy(AsCalls, SQLAlchemySteps):
    """The synchronous API."""

    driver = "postgresql+psycopg"
    arguments: ClassVar[dict[str, Any]] = {"application_name": APPLICATION}

    def engine(self, url: str, **options: Any) -> Any:
        """An engine that nothing instruments."""
        return sqlalchemy.create_engine(url, **options)

    def whole_part(self, part: Any) -> Any:
        """As steps call it."""
        return Awaited(part)

    def bare(self, part: Any) -> Any:
        """The client's own object."""
        return part.part if isinstance(part, Awaited) else part


class AsyncSQLAlchemy(InLoop, SQLAlchemySteps):
    """The asyncio API."""

    driver = "postgresql+asyncpg"
    arguments: ClassVar[dict[str, Any]] = {"server_settings": {"application_name": APPLICATION}}

    @step(2)
    async def cancelled(self, choose: random.Random) -> None:
        """A task that is cancelled while it writes, or as it ends."""
        await self.whole()
        insert = self.send(f"INSERT INTO kept SELECT {self.number()}, 12")
        await self.cancel(insert, choose.uniform(0, CANCEL_S))
