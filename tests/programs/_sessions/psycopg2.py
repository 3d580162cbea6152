"""Sessions of psycopg2."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, ClassVar

import psycopg2
from psycopg2.extras import execute_values

from antipode_shims import postgresql

from .bench import DATASTORE, OFTEN, Fault, step
from .connected import AsCalls
from .postgresql import APPLICATION, INNER, PostgreSQL

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence


class Psycopg2(AsCalls, PostgreSQL):
    """One connection, and a cursor for each statement."""

    refusals: ClassVar[tuple[type[BaseException], ...]] = (
        *PostgreSQL.refusals,
        psycopg2.Error,
        UnicodeError,
    )

    async def connect(self, *, replica: bool) -> Any:
        """With the name by which the server tells the session's statements."""
        server = self.topology.replica if replica else self.topology.primary
        made = postgresql.connection_factory(
            datastore=DATASTORE, reads_from="replica" if replica else "primary"
        )
        url = f"{self.topology.url(server)}?application_name={APPLICATION}"
        connection = psycopg2.connect(url, connection_factory=made)
        connection.autocommit = self.autocommit or replica
        return connection

    def gone(self) -> bool:
        """Closed."""
        return bool(self.session.closed)

    async def roll_back(self) -> None:
        """``rollback()``."""
        self.session.rollback()

    async def disconnect(self, connection: Any) -> None:
        """``close()``."""
        postgresql.uninstrument_connection(connection)
        connection.close()

    async def send(self, text: str, *args: Any) -> list[Any]:
        """By a cursor of its own."""
        await self.whole()
        self.trace.append(text)
        with self.session.cursor() as cursor:
            cursor.execute(text, args or None)
            return list(cursor.fetchall()) if cursor.description else []

    async def past_the_library(self, text: str) -> Sequence[Any]:
        """By the library's own way to ask."""
        found: Sequence[Any] = self.session._antipode_ask(text)
        return found

    async def read_replica(self, text: str) -> list[Any]:
        """By a cursor of its own."""
        with self.reader.cursor() as cursor:
            cursor.execute(text)
            return list(cursor.fetchall())

    @step(OFTEN)
    async def method_commit(self, choose: random.Random) -> None:
        """``commit()``."""
        self.trace.append("commit()")
        self.session.commit()

    @step(OFTEN)
    async def method_rollback(self, choose: random.Random) -> None:
        """``rollback()``."""
        self.trace.append("rollback()")
        self.session.rollback()

    @step(OFTEN)
    async def parameters(self, choose: random.Random) -> None:
        """A statement with values."""
        await self.send("INSERT INTO kept VALUES (%s, %s)", self.number(), 8)

    @step()
    async def cannot_be_adapted(self, choose: random.Random) -> None:
        """A value that no statement can carry: nothing is sent."""
        await self.send("INSERT INTO kept VALUES (%s, 8)", choose.choice((object(), "\ud800")))

    @step(2)
    async def many(self, choose: random.Random) -> None:
        """``executemany`` or ``execute_values``, whose last row may fail."""
        rows = [(self.number(), 9) for _ in range(choose.randrange(1, 4))]
        rows += rows[:1] if choose.random() < 0.3 else []
        await self.whole()
        self.trace.append(f"many rows {rows}")
        with self.session.cursor() as cursor:
            if choose.random() < 0.5:
                cursor.executemany("INSERT INTO kept VALUES (%s, %s)", rows)
            else:
                execute_values(cursor, "INSERT INTO kept VALUES %s", rows)

    @step(4)
    async def block(self, choose: random.Random) -> None:
        """``with connection``: a commit at its end, or a rollback."""
        await self.whole()
        self.trace.append("with connection:")
        with self.session:
            for text in choose.choices(INNER, k=choose.randrange(1, 4)):
                await self.send(text.replace("{n}", str(self.number())))

    @step(2)
    async def copy(self, choose: random.Random) -> None:
        """``copy_expert``, perhaps of lines that are no rows."""
        await self.whole()
        line = f"{self.number()}\t10\n" + ("no row\n" if choose.random() < 0.3 else "")
        self.trace.append(f"copy_expert {line!r}")
        with self.session.cursor() as cursor:
            cursor.copy_expert("COPY kept FROM STDIN", io.StringIO(line))

    @step()
    async def named(self, choose: random.Random) -> None:
        """A cursor at the server, which sees what its transaction saw."""
        await self.whole()
        wanted = self.floor()
        self.trace.append("named cursor")
        with self.session.cursor("named") as cursor:
            cursor.execute(wanted)
            if not cursor.fetchall():
                raise Fault("early", f"{wanted} shows no row by a named cursor")

    @step()
    async def switched(self, choose: random.Random) -> None:
        """Commit by itself, or not any more."""
        await self.whole()
        wanted = choose.random() < 0.5
        self.trace.append(f"autocommit = {wanted}")
        self.session.autocommit = self.autocommit = wanted

    @step()
    async def isolated(self, choose: random.Random) -> None:
        """``set_session``."""
        await self.whole()
        level = choose.choice(("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"))
        self.trace.append(f"set_session({level})")
        self.session.set_session(level)
