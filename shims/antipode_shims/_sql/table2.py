"""Table 2 over SQLAlchemy's engines: transactions, and what they come to."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from antipode import Lineage, current, scope
from antipode.shim import (
    ServerShim,
    mark_incomplete,
    record_read,
    record_write,
    recorded,
    stored_lineage,
)

if TYPE_CHECKING:
    from antipode import ConfigurationError, Promise

Key = str | bytes | int
Value = str | bytes | int | float
#: Stands between the texts of lineages that lie with one value.
SEPARATOR = ","


class Statement(NamedTuple):
    """One statement, in the placeholders of its dialect."""

    sql: str
    parameters: Any = ()


#: Yields a statement, is sent its rows; no rows for one that has none.
Steps = Generator[Statement, Sequence[Mapping[str, Any]], Any]


def merged(datastore: str, texts: str) -> Lineage:
    """The lineage that lies with a value, in one text or several."""
    first, *others = (stored_lineage(datastore, one) for one in texts.split(SEPARATOR))
    return first.merge(*others)


@dataclass
class Minted:
    """What the writes of one transaction came to."""

    lineage: Lineage = field(default_factory=Lineage)


class SQLTable2(ServerShim):
    """What Table 2's shims of both APIs share."""

    @abstractmethod
    def write_steps(self, key: Key, value: Value | None, lineage: Lineage) -> Steps:
        """Replace the value and its lineage.

        Raises:
            TypeError: the value is None.
        """

    @abstractmethod
    def append_steps(self, key: Key, value: Value, lineage: Lineage) -> Steps:
        """Append to the value and merge into its lineage, atomically; then make that one text."""

    @abstractmethod
    def delete_steps(self, key: Key, lineage: Lineage) -> Steps:
        """Delete the value, leave its lineage, and take along what nobody waits for any more."""

    @abstractmethod
    def explained(self, cause: BaseException) -> ConfigurationError | None:
        """What an error of the driver's says about the tables, None where it says nothing."""

    @abstractmethod
    def unsampled(self, cause: str) -> None:
        """Note that a write was committed and has no position."""

    @abstractmethod
    def detach(self) -> None:
        """Leave the engine as it was. Idempotent."""

    def seen(self, found: tuple[Any, Lineage]) -> tuple[Any, Lineage]:
        """What a read found, merged into the scope where that is wanted."""
        if self.on_read == "merge":
            record_read(found[1])
        return found

    def base(self, lineage: Lineage | None) -> Lineage:
        """What a write stores: *lineage*, default the current one."""
        return current() if lineage is None else lineage

    @contextmanager
    def minting(self) -> Iterator[Minted]:
        """A block whose writes are collected, and entered into the caller's scope at its end."""
        minted = Minted()
        try:
            with scope() as own:
                try:
                    yield minted
                finally:
                    minted.lineage = own.lineage
        finally:
            for subject, reason in minted.lineage.incomplete:
                mark_incomplete(subject, reason)
            if writes := tuple(minted.lineage):
                record_write(*writes)

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """A block in which a missing table becomes an error that says how to make it.

        Raises:
            ConfigurationError: in place of the driver's error.
        """
        try:
            yield
        except Exception as error:
            cause = getattr(error, "orig", None)
            better = None if cause is None else self.explained(cause)
            if better is None:
                raise
            raise better from error

    def written(self, base: Lineage, found: Lineage) -> Lineage:
        """*base* with what a committed transaction recorded."""
        if found.empty:
            self.unsampled("the commit's reply carried none")
            return base.marked((self.datastore, "unsampled"))
        return base.merge(found)


class SyncTable2(SQLTable2):
    """Table 2 over an ``Engine``.

    Attributes:
        engine: whose pool it uses.
        owned: whether the engine is disposed of with the shim.
    """

    engine: Any
    owned: bool

    @abstractmethod
    def read_by(self, connection: Any, key: Key) -> tuple[Any, Lineage]:
        """The value of *key* over *connection*, and what it depends on."""

    @abstractmethod
    def fulfil_by(self, connection: Any, promise: Promise | str) -> None:
        """Fulfil *promise* in the transaction of *connection*."""

    @recorded("write")
    def write(
        self,
        key: Key,
        value: Value,
        lineage: Lineage | None = None,
        *,
        fulfils: Promise | str | None = None,
    ) -> Lineage:
        """Set *key* to *value*, with its lineage, in one statement.

        Args:
            key: of the row.
            value: as the column takes it; not None.
            lineage: what the value depends on; default the current lineage.
            fulfils: a promise, or its ``token``, that is fulfilled in the same transaction; one
                round trip more.

        Returns:
            The lineage with this write in it; it enters the current scope as well.

        Raises:
            sqlalchemy.exc.DBAPIError: as SQLAlchemy does; without a reply to the commit the scope
                becomes ``incomplete``.
            ConfigurationError: the table or a column of it is missing; says how to make it. With
                *fulfils* also as :func:`fulfil`.
            PromiseAbandoned: nobody waits for the promise any more; nothing is written.
            TypeError: the value is None.
        """
        base = self.base(lineage)
        return self._commit(self.write_steps(key, value, base), base, fulfils)

    def append(
        self,
        key: Key,
        value: Value,
        lineage: Lineage | None = None,
        *,
        fulfils: Promise | str | None = None,
    ) -> Lineage:
        """Append to the value of *key*; its lineage is merged with what lies there already.

        At most two round trips more than :meth:`write`.

        Raises:
            sqlalchemy.exc.DBAPIError: as :meth:`write`.
            ConfigurationError: as :meth:`write`.
            PromiseAbandoned: as :meth:`write`.
        """
        base = self.base(lineage)
        return self._commit(self.append_steps(key, value, base), base, fulfils)

    @recorded("delete")
    def delete(
        self, key: Key, lineage: Lineage | None = None, *, fulfils: Promise | str | None = None
    ) -> Lineage:
        """Delete *key*; a tombstone keeps the lineage for who finds nothing.

        Raises:
            sqlalchemy.exc.DBAPIError: as :meth:`write`.
            ConfigurationError: as :meth:`write`.
            PromiseAbandoned: as :meth:`write`.
        """
        base = self.base(lineage)
        return self._commit(self.delete_steps(key, base), base, fulfils)

    def _commit(self, steps: Steps, base: Lineage, fulfils: Promise | str | None = None) -> Lineage:
        """Run *steps* in a transaction; its position enters the scope once it is committed."""
        with self.minting() as own, self.explaining(), self.engine.begin() as connection:
            if fulfils is not None:  # First: an autonomous connection is refused by it.
                self.fulfil_by(connection, fulfils)
            self.run(connection, steps)
        return self.written(base, own.lineage)

    @recorded("read")
    def read(self, key: Key) -> tuple[Any, Lineage]:
        """The value of *key*, None when there is none, and what it depends on.

        Under a floor, the read is held back on its connection until the floor is met.

        Returns:
            The value as the driver decodes it, and its stored lineage with a covering
            position; merged into the current scope unless ``on_read="ignore"``.

        Raises:
            UnmetError: a floor was not met.
            sqlalchemy.exc.DBAPIError: as SQLAlchemy does.
            ConfigurationError: as :meth:`write`.
        """
        with self.explaining(), self.engine.connect() as connection:
            found = self.read_by(connection, key)
        return self.seen(found)

    def run(self, connection: Any, steps: Steps) -> Any:
        """Send what *steps* yield over *connection*; what they return."""
        try:
            statement = next(steps)
            while True:
                statement = steps.send(_rows(self.send(connection, statement)))
        except StopIteration as end:
            return end.value

    def send(self, connection: Any, statement: Statement) -> Any:
        """The result of *statement*, in the placeholders of the driver."""
        return connection.exec_driver_sql(statement.sql, statement.parameters)

    def close(self) -> None:
        """Unregister and release every connection of the shim's own. Idempotent."""
        self.detach()
        super().close()
        if self.owned:
            self.engine.dispose()


class AsyncTable2(SQLTable2):
    """Table 2 over an ``AsyncEngine``.

    Attributes:
        engine: whose pool it uses.
        owned: whether the engine is disposed of by :meth:`aclose`.
    """

    engine: Any
    owned: bool

    @abstractmethod
    async def read_by(self, connection: Any, key: Key) -> tuple[Any, Lineage]:
        """As :meth:`SyncTable2.read_by`."""

    @abstractmethod
    async def fulfil_by(self, connection: Any, promise: Promise | str) -> None:
        """As :meth:`SyncTable2.fulfil_by`."""

    @recorded("write")
    async def write(
        self,
        key: Key,
        value: Value,
        lineage: Lineage | None = None,
        *,
        fulfils: Promise | str | None = None,
    ) -> Lineage:
        """As the synchronous shim's; cancelled in flight, the scope becomes ``incomplete``."""
        base = self.base(lineage)
        return await self._commit(self.write_steps(key, value, base), base, fulfils)

    async def append(
        self,
        key: Key,
        value: Value,
        lineage: Lineage | None = None,
        *,
        fulfils: Promise | str | None = None,
    ) -> Lineage:
        """As the synchronous shim's."""
        base = self.base(lineage)
        return await self._commit(self.append_steps(key, value, base), base, fulfils)

    @recorded("delete")
    async def delete(
        self, key: Key, lineage: Lineage | None = None, *, fulfils: Promise | str | None = None
    ) -> Lineage:
        """As the synchronous shim's."""
        base = self.base(lineage)
        return await self._commit(self.delete_steps(key, base), base, fulfils)

    async def _commit(
        self, steps: Steps, base: Lineage, fulfils: Promise | str | None = None
    ) -> Lineage:
        with self.minting() as own, self.explaining():
            async with self.engine.begin() as connection:
                if fulfils is not None:
                    await self.fulfil_by(connection, fulfils)
                await self.run(connection, steps)
        return self.written(base, own.lineage)

    @recorded("read")
    async def read(self, key: Key) -> tuple[Any, Lineage]:
        """As the synchronous shim's."""
        with self.explaining():
            async with self.engine.connect() as connection:
                found = await self.read_by(connection, key)
        return self.seen(found)

    async def run(self, connection: Any, steps: Steps) -> Any:
        """As :meth:`SyncTable2.run`."""
        try:
            statement: Statement = next(steps)
            while True:
                statement = steps.send(_rows(await self.send(connection, statement)))
        except StopIteration as end:
            return end.value

    async def send(self, connection: Any, statement: Statement) -> Any:
        """As :meth:`SyncTable2.send`."""
        return await connection.exec_driver_sql(statement.sql, statement.parameters)

    async def aclose(self) -> None:
        """Unregister and release every connection of the shim's own. Idempotent."""
        self.close()
        if self.owned:
            await self.engine.dispose()

    def close(self) -> None:
        """Unregister; the pool of an engine of its own is left to :meth:`aclose`."""
        self.detach()
        super().close()


def _rows(result: Any) -> Sequence[Mapping[str, Any]]:
    return list(result.mappings()) if result.returns_rows else []
