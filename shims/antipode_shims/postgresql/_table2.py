"""What writing and reading with the lineage stored with the value mean here, without I/O.

Values lie in a table of the library's own, each with its lineage and a digest of the value, by
which one that a plain client changed is recognized. A deletion leaves its lineage in a table of
tombstones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, Lineage
from antipode.shim import config, count, stored_lineage, stored_text
from antipode_shims._sql.table2 import SEPARATOR, SQLTable2, Statement, merged

from ._promises import check_name
from ._shim.base import BasePostgreSQLShim

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from antipode_shims._sql.table2 import Key, Steps, Value

    from ._endpoint import ServerSettings

_DIGEST_BYTES = 9
_NO_TABLE, _NO_COLUMN = "42P01", "42703"
#: How many tombstones whose time is over a deletion takes along.
_SWEEP = 8


@dataclass(frozen=True)
class Layout:
    """Where values lie.

    Attributes:
        table: their table, perhaps ``schema.table``.
        tombstones: the table of deletions, perhaps ``schema.table``; several may share it.
    """

    table: str = "antipode_kv"
    tombstones: str = "antipode_tombstone"

    def __post_init__(self) -> None:
        """Refuse what is no name.

        Raises:
            ConfigurationError: a name has other than plain letters, digits and ``_``.
        """
        check_name(self.table, "table")
        check_name(self.tombstones, "tombstones")

    @property
    def name(self) -> str:
        """The table's own, which keeps its deletions: services may spell its schema or not."""
        return self.table.rpartition(".")[2]

    def ddl(self) -> tuple[str, ...]:
        """The statements that make both tables."""
        index = self.tombstones.replace(".", "_")
        return (
            (
                f"CREATE TABLE IF NOT EXISTS {self.table}"
                " (k bytea PRIMARY KEY, v bytea NOT NULL, l text, d bytea)"
            ),
            (
                f"CREATE TABLE IF NOT EXISTS {self.tombstones} (t text NOT NULL,"
                " k bytea NOT NULL, l text NOT NULL, h bigint NOT NULL, PRIMARY KEY (t, k))"
            ),
            f"CREATE INDEX IF NOT EXISTS {index}_h ON {self.tombstones} (h)",
        )

    def explain(self, datastore: str, code: str, cause: str) -> ConfigurationError | None:
        """What a server's SQLSTATE says about the tables, None where it says nothing."""
        if code not in (_NO_TABLE, _NO_COLUMN):
            return None
        needed = ";\n".join(self.ddl())
        return ConfigurationError(
            f"{datastore!r} lacks a table or column of Table 2 ({cause.strip()}). The shim "
            f"changes no schema on its own; run what is missing of:\n{needed};"
        )


def ddl(layout: Layout | None = None) -> tuple[str, ...]:
    """The statements that make what :func:`shim` needs by default, or for another *layout*."""
    return (layout or Layout()).ddl()


class PostgreSQLTable2(BasePostgreSQLShim, SQLTable2):
    """What the synchronous and the asyncio shim share."""

    def __init__(
        self, datastore: str, settings: ServerSettings, *, layout: Layout, **options: Any
    ) -> None:
        """Keep values where *layout* says."""
        super().__init__(datastore, settings, **options)
        self.layout, self.keyspace = layout, layout.name
        self._insert = (
            f"INSERT INTO {layout.table} AS t (k, v, l, d)"
            f" VALUES (:k, :v, :l, {_digest('CAST(:v AS bytea)')}) ON CONFLICT (k) DO UPDATE SET"
        )

    def ddl(self) -> tuple[str, ...]:
        """The statements that make what :meth:`write` and :meth:`delete` need; run by nobody."""
        return self.layout.ddl()

    def write_steps(self, key: Key, value: Value | None, lineage: Lineage) -> Steps:
        """Replace the value and its lineage; one statement.

        Raises:
            TypeError: the value is None.
        """
        if value is None:
            msg = "a value cannot be None: use delete()"
            raise TypeError(msg)
        yield Statement(
            f"{self._insert} v = EXCLUDED.v, l = EXCLUDED.l, d = EXCLUDED.d",
            {"k": _bytes(key), "v": _bytes(value), "l": stored_text(lineage)},
        )

    def append_steps(self, key: Key, value: Value, lineage: Lineage) -> Steps:
        """Append to the value and merge into its lineage, atomically; then make that one text."""
        rows = yield Statement(
            f"{self._insert} v = t.v || EXCLUDED.v, d = {_digest('t.v || EXCLUDED.v')},"
            f" l = CASE WHEN t.d = {_digest('t.v')} AND t.l IS NOT NULL"
            f" THEN t.l || '{SEPARATOR}' || EXCLUDED.l ELSE EXCLUDED.l END"
            " RETURNING t.l AS l, t.xmax = 0 AS fresh",
            {"k": _bytes(key), "v": _bytes(value), "l": stored_text(lineage)},
        )
        texts = rows[0]["l"]
        lineage = merged(self.datastore, texts)
        if rows[0]["fresh"]:  # A new value: who sees no more of it may see a deletion.
            lineage = lineage.merge((yield from self._tombstone(key)))
        one = stored_text(lineage)
        if one != texts:
            # Where each statement commits alone, somebody may have appended in between.
            yield Statement(
                f"UPDATE {self.layout.table} SET l = :one WHERE k = :k AND l = :texts",
                {"one": one, "k": _bytes(key), "texts": texts},
            )

    def delete_steps(self, key: Key, lineage: Lineage) -> Steps:
        """Delete the value, leave its lineage, and take along what nobody waits for any more."""
        hour = self.clock.hour()
        expires = hour + int(config().horizon.total_seconds() // 3600) + 1
        tombs = self.layout.tombstones
        # The tombstone first: where each statement commits alone, absence never is without it.
        yield Statement(
            f"INSERT INTO {tombs} (t, k, l, h) VALUES (:t, :k, :l, :h)"
            " ON CONFLICT (t, k) DO UPDATE SET l = EXCLUDED.l, h = EXCLUDED.h",
            {"t": self.layout.name, "k": _bytes(key), "l": stored_text(lineage), "h": expires},
        )
        yield Statement(f"DELETE FROM {self.layout.table} WHERE k = :k", {"k": _bytes(key)})
        # Waits for none that somebody else holds: two deletions could wait for each other's.
        yield Statement(
            f"DELETE FROM {tombs} WHERE (t, k) IN (SELECT t, k FROM {tombs} WHERE h < :h"
            f" ORDER BY h LIMIT {_SWEEP} FOR UPDATE SKIP LOCKED)",
            {"h": hour},
        )

    def read_steps(self, key: Key) -> Steps:
        """The value and its stored lineage."""
        rows = yield Statement(
            f"SELECT v, l, d IS NOT DISTINCT FROM {_digest('v')} AS own"
            f" FROM {self.layout.table} WHERE k = :k",
            {"k": _bytes(key)},
        )
        if not rows:
            return None, (yield from self._tombstone(key))
        row = rows[0]
        lineage, match = found(self.datastore, row["l"], own=bool(row["own"]))
        if match != "own":
            count(match, self.datastore)
        return bytes(row["v"]), lineage

    def _tombstone(self, key: Key) -> Generator[Statement, Sequence[Mapping[str, Any]], Lineage]:
        rows = yield Statement(
            f"SELECT l FROM {self.layout.tombstones} WHERE t = :t AND k = :k",
            {"t": self.layout.name, "k": _bytes(key)},
        )
        return stored_lineage(self.datastore, rows[0]["l"]) if rows else Lineage()

    def explained(self, cause: BaseException) -> ConfigurationError | None:
        """What an error of the driver's says about the tables, None where it says nothing."""
        code = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None) or ""
        return self.layout.explain(self.datastore, code, str(cause))


def found(datastore: str, texts: str | None, *, own: bool) -> tuple[Lineage, str]:
    """The lineage that lies with a value, and how the two match.

    Args:
        datastore: whose value it is.
        texts: what lies there.
        own: whether the digest is the value's own, which no plain client has changed.

    Returns:
        None of a value that a plain client wrote (``companion_absent``) or changed (``foreign``).
    """
    if texts is None:
        return Lineage(), "companion_absent"
    return (merged(datastore, texts), "own") if own else (Lineage(), "foreign")


def _digest(expression: str) -> str:
    return f"substring(sha256({expression}) FOR {_DIGEST_BYTES})"


def _bytes(given: Value) -> bytes:
    return given if isinstance(given, bytes) else str(given).encode()
