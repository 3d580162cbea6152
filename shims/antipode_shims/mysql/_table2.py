"""What writing and reading with the lineage stored with the value mean in SQL, without I/O.

The lineage lies in an INVISIBLE column of the value's own row: ``SELECT *`` and plain inserts go on
as before. In front of it are nine bytes of a digest of the value, by which a value that a plain
client changed is recognized; the server computes it, whatever the column's type makes
of a value. A byte that each write changes comes between the two: a row that stays as it was is no
transaction, and has no position. A deletion leaves its lineage in a table of tombstones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, Lineage
from antipode.shim import config, count, stored_text
from antipode.shim import stored_lineage as stored
from antipode_shims._sql.table2 import SEPARATOR, SQLTable2, Statement, merged

from ._endpoint.settings import errno_of
from ._format import quoted, tombstones_as
from ._position.flavor import COVER, Flavor, text
from ._shim.base import BaseMySQLShim

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from antipode_shims._sql.table2 import Key, Steps, Value

    from ._endpoint.settings import ServerSettings


def spelled(statement: Statement) -> Statement:
    """The same without ``bytes`` among the parameters: aiomysql fails on them over PyMySQL 1.2.

    The way they go is the one that PyMySQL takes: undecodable bytes as lone surrogates.
    """
    first, *others = statement.sql.split("%s")
    parameters: list[Any] = []
    for parameter, piece in zip(statement.parameters, others, strict=True):
        binary = isinstance(parameter, bytes)
        first += ("_binary %s" if binary else "%s") + piece
        parameters.append(parameter.decode("ascii", "surrogateescape") if binary else parameter)
    return Statement(first, tuple(parameters))


_DIGEST_BYTES = 9
_HEAD_BYTES = _DIGEST_BYTES + 1
_NO_TABLE, _NO_COLUMN = 1146, 1054
#: How many tombstones whose time is over a deletion takes along.
_SWEEP = 8


@dataclass(frozen=True)
class Layout:
    """Where values lie.

    Attributes:
        table: their table, perhaps ``schema.table``.
        key: the column of their keys, the primary key or unique.
        value: their column.
        lineage: the invisible column with it.
        tombstones: the table of deletions; the tables of one schema may share it, and it is asked
            for in the schema that *table* names.
    """

    table: str = "antipode_kv"
    key: str = "k"
    value: str = "v"
    lineage: str = "_ap"
    tombstones: str = "antipode_tombstone"

    def __post_init__(self) -> None:
        """Refuse empty names.

        Raises:
            ConfigurationError: a name is empty.
        """
        if not all((self.table, self.key, self.value, self.lineage, self.tombstones)):
            msg = "table, key, value, lineage and tombstones must be names, not empty"
            raise ConfigurationError(msg)

    @property
    def name(self) -> str:
        """The table's own, which keeps its deletions: services may spell its schema or not."""
        return self.table.rpartition(".")[2]

    @property
    def graves(self) -> str:
        """Where the table of deletions is."""
        schema = self.table.rpartition(".")[0]
        return (
            f"{schema}.{self.tombstones}"
            if schema and "." not in self.tombstones
            else self.tombstones
        )

    def ddl(self) -> tuple[str, str]:
        """The statements that make both tables."""
        values = (
            f"CREATE TABLE {quoted(self.table)} ({quoted(self.key)} VARBINARY(512) NOT NULL"
            f" PRIMARY KEY, {quoted(self.value)} LONGBLOB NOT NULL, {self._column})"
        )
        return values, f"CREATE TABLE {tombstones_as(self.graves)}"

    @property
    def _column(self) -> str:
        return f"{quoted(self.lineage)} MEDIUMBLOB NULL INVISIBLE"

    def alter(self) -> str:
        """The statement that adds the lineage to a table that exists."""
        return f"ALTER TABLE {quoted(self.table)} ADD COLUMN {self._column}"

    def explain(
        self, datastore: str, number: int, error: BaseException
    ) -> ConfigurationError | None:
        """What a server's error number says about the tables, None where it says nothing."""
        if number == _NO_TABLE:
            needed = ";\n".join(self.ddl())
        elif number == _NO_COLUMN:
            needed = self.alter()
        else:
            return None
        return ConfigurationError(
            f"{datastore!r} lacks a table or column of Table 2 ({error.args[-1]}). The shim "
            f"changes no schema on its own; run what is missing of:\n{needed};"
        )


def ddl(layout: Layout | None = None) -> tuple[str, ...]:
    """The statements that make what :func:`shim` needs by default, or for another *layout*."""
    return (layout or Layout()).ddl()


class MySQLTable2(BaseMySQLShim, SQLTable2):  # pyright: ignore[reportIncompatibleVariableOverride]
    """What the synchronous and the asyncio shim share."""

    def __init__(
        self, datastore: str, settings: ServerSettings, *, layout: Layout, **options: Any
    ) -> None:
        """Keep values where *layout* says."""
        super().__init__(datastore, settings, **options)
        self.layout, self.keyspace = layout, layout.name
        where = layout
        self._table, self._key = quoted(where.table), quoted(where.key)
        self._value, self._lineage = quoted(where.value), quoted(where.lineage)
        self._tombs = quoted(where.graves)
        self._insert = (
            f"INSERT INTO {self._table} ({self._key}, {self._value}, {self._lineage})"
            f" VALUES (%s, %s, CONCAT({_digest(self._value)}, CHAR(0), %s))"
        )
        count_up = f"(COALESCE(ASCII(SUBSTRING({self._lineage}, {_HEAD_BYTES}, 1)), 0) + 1)"
        self._next = f"CHAR({count_up} & 255)"
        self._own = f"LEFT({self._lineage}, {_DIGEST_BYTES}) = {_digest(self._value)}"

    def ddl(self) -> tuple[str, ...]:
        """The statements that make what :meth:`write` and :meth:`delete` need; run by nobody.

        For a table of your own, ``layout.alter()`` adds the invisible column.
        """
        return self.layout.ddl()

    def write_steps(self, key: Key, value: Value | None, lineage: Lineage) -> Steps:
        """Replace the value and its lineage; one statement.

        Raises:
            TypeError: the value is None.
        """
        if value is None:
            msg = "a value cannot be None: use delete()"
            raise TypeError(msg)
        sql = (
            f"{self._insert} ON DUPLICATE KEY UPDATE {self._lineage} ="
            f" INSERT(VALUES({self._lineage}), {_HEAD_BYTES}, 1, {self._next}),"
            f" {self._value} = VALUES({self._value})"
        )
        yield Statement(sql, (key, value, stored_text(lineage)))

    def append_steps(self, key: Key, value: Value, lineage: Lineage) -> Steps:
        """Append to the value and merge into its lineage, atomically; then make that one text."""
        new, old = stored_text(lineage), self._lineage
        longer = f"CONCAT({self._value}, VALUES({self._value}))"
        kept = f"IF({self._own}, CONCAT(SUBSTRING({old}, {_HEAD_BYTES + 1}), '{SEPARATOR}'), '')"
        yield Statement(
            f"{self._insert} ON DUPLICATE KEY UPDATE"
            f" {old} = CONCAT({_digest(longer)}, {self._next}, COALESCE({kept}, ''), %s),"
            f" {self._value} = {longer}",
            (key, value, new, new),
        )
        found = yield Statement(
            f"SELECT {old} AS beside FROM {self._table} WHERE {self._key} = %s", (key,)
        )
        beside = bytes(found[0]["beside"])
        texts = beside[_HEAD_BYTES:].decode("ascii", "replace")
        lineage = merged(self.datastore, texts)
        if beside[_DIGEST_BYTES] == 0:  # A new value: who sees no more of it may see a deletion.
            lineage = lineage.merge((yield from self._tombstone(key)))
        one = stored_text(lineage)
        if one != texts:
            # Where each statement commits alone, somebody may have appended in between.
            yield Statement(
                f"UPDATE {self._table} SET {old} = %s WHERE {self._key} = %s AND {old} = %s",
                (beside[:_HEAD_BYTES] + one.encode("ascii"), key, beside),
            )

    def delete_steps(self, key: Key, lineage: Lineage) -> Steps:
        """Delete the value, leave its lineage, and take along what nobody waits for any more."""
        hour = self.clock.hour()
        expires = hour + int(config().horizon.total_seconds() // 3600) + 1
        # The tombstone first: where each statement commits alone, absence never is without it.
        yield Statement(
            f"INSERT INTO {self._tombs} (t, k, l, h, n) VALUES (%s, %s, %s, %s, 0)"
            " ON DUPLICATE KEY UPDATE l = VALUES(l), h = VALUES(h), n = (n + 1) & 65535",
            (self.layout.name, _bytes(key), stored_text(lineage), expires),
        )
        yield Statement(f"DELETE FROM {self._table} WHERE {self._key} = %s", (key,))
        yield from self._sweep(hour)

    def _sweep(self, hour: int) -> Steps:
        """Take along tombstones whose time is over, but wait for none that somebody else holds.

        Two deletions that wait for each other's would be a deadlock, and one of them would fail.
        """
        found = yield Statement(
            f"SELECT t, k FROM {self._tombs} WHERE h < %s ORDER BY h LIMIT {_SWEEP}"
            " FOR UPDATE SKIP LOCKED",
            (hour,),
        )
        for row in found:
            yield Statement(
                f"DELETE FROM {self._tombs} WHERE t = %s AND k = %s AND h < %s",
                (row["t"], row["k"], hour),
            )

    def read_steps(self, key: Key, flavor: Flavor) -> Steps:
        """The value and what is known of it: its stored lineage and a covering position."""
        rows = yield Statement(
            f"SELECT {self._value} AS value, {self._lineage} AS beside, {self._own} AS own"
            f" FROM {self._table} WHERE {self._key} = %s",
            (key,),
        )
        if rows:
            row = rows[0]
            value, lineage = row["value"], self._beside(row["beside"], own=bool(row["own"]))
        else:
            value, lineage = None, (yield from self._tombstone(key))
        covered = yield Statement(COVER[flavor])
        return value, lineage.merge(self.covering(flavor, covered))

    def _beside(self, beside: Any, *, own: bool) -> Lineage:
        """The lineage stored with a value; none where a plain client wrote the value."""
        if beside is None:
            count("companion_absent", self.datastore)
            return Lineage()
        if not own:
            count("foreign", self.datastore)
            return Lineage()
        return merged(self.datastore, bytes(beside)[_HEAD_BYTES:].decode("ascii", "replace"))

    def _tombstone(self, key: Key) -> Generator[Statement, Sequence[Mapping[str, Any]], Lineage]:
        rows = yield Statement(
            f"SELECT l FROM {self._tombs} WHERE t = %s AND k = %s", (self.layout.name, _bytes(key))
        )
        return stored(self.datastore, text(rows[0]["l"])) if rows else Lineage()

    def explained(self, cause: BaseException) -> ConfigurationError | None:
        """What an error of the driver's says about the tables, None where it says nothing."""
        return self.layout.explain(self.datastore, errno_of(cause), cause)


def _digest(expression: str) -> str:
    return f"LEFT(UNHEX(SHA2({expression}, 256)), {_DIGEST_BYTES})"


def _bytes(key: Key) -> bytes:
    return key if isinstance(key, bytes) else str(key).encode()
