"""The records of promises: a table, and what is said to it. No I/O.

A branch that keeps a promise inserts its record in the transaction of its data, so that both are
committed, and replayed, together. Whichever record of a promise comes first stays: the statement
returns what the table says in the end.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from antipode import ConfigurationError, Status
from antipode.shim import record_seconds
from antipode_shims._sql.promises import SWEEP, TABLE, Records, denied, no_table

from ._look import Refused

if TYPE_CHECKING:
    from collections.abc import Collection

    from antipode import Promise

    from ._look import Asking


_NO_TABLE = frozenset({"42P01", "3F000"})
_DENIED = frozenset({"42501"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)?")
_MIGRATION = (
    "the library makes no table on its own: let "
    "`python -m antipode_shims.postgresql migration --promises` print what to run"
)


def check_name(table: str, option: str = "promise_table") -> str:
    """Refuse what is no name; *option* is how it is called.

    Raises:
        ConfigurationError: *table* is neither ``table`` nor ``schema.table`` of plain letters.
    """
    if not _NAME.fullmatch(table):
        msg = f"{option} must be 'table' or 'schema.table', not {table!r}"
        raise ConfigurationError(msg)
    return table


def promises_ddl(table: str = TABLE) -> tuple[str, ...]:
    """The statements that make the table of promises, for whoever runs your migrations.

    Whoever fulfils promises needs ``INSERT``, ``SELECT``, ``UPDATE`` and ``DELETE`` on it, who
    waits for them ``SELECT``.

    Args:
        table: ``table`` or ``schema.table``; clients of one datastore must name the same.
    """
    name = check_name(table)
    index = name.replace(".", "_")
    return (
        (
            f"CREATE TABLE IF NOT EXISTS {name} (id uuid PRIMARY KEY, fulfilled boolean NOT NULL,"
            " until_s bigint NOT NULL)"
        ),
        f"CREATE INDEX IF NOT EXISTS {index}_until ON {name} (until_s)",
    )


def undo_promises(table: str = TABLE) -> tuple[str, ...]:
    """The statements that take :func:`promises_ddl` back."""
    return (f"DROP TABLE {check_name(table)}",)


def recording(table: str, promise: Promise, *, fulfilled: bool) -> str:
    """The statement that records what became of *promise*, unless it has a record.

    It returns the record that the table has in the end, as its one row: ``fulfilled``.
    """
    until_s = int(time.time()) + record_seconds(promise)
    return (
        f"INSERT INTO {table} AS p (id, fulfilled, until_s)"
        f" VALUES ('{promise.id}', {str(fulfilled).lower()}, {until_s})"
        " ON CONFLICT (id) DO UPDATE SET until_s = p.until_s RETURNING p.fulfilled AS fulfilled"
    )


def sweeping(table: str) -> str:
    """The statement that deletes records whose time is over; it waits for nobody's lock."""
    return (
        f"DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE until_s <"
        f" {int(time.time())} ORDER BY until_s LIMIT {SWEEP} FOR UPDATE SKIP LOCKED)"
    )


def explained(datastore: str, table: str, code: str, cause: str) -> ConfigurationError | None:
    """What a server's error says about the table, None where it says nothing."""
    if code in _NO_TABLE:
        return no_table(datastore, table, _MIGRATION)
    return denied(datastore, table, cause) if code in _DENIED else None


def records_sql(table: str, promises: Collection[Promise]) -> str:
    """The question for the records of *promises*, which are not empty."""
    ids = ", ".join(f"'{promise.id}'" for promise in promises)  # Hexadecimal digits alone.
    return f"SELECT id, fulfilled FROM {table} WHERE id IN ({ids})"


def records(table: str, promises: Collection[Promise]) -> Asking[Records]:
    """Ask for the records of *promises*.

    Raises:
        ConfigurationError: this user may not read the table.
        Refused: the server answered with another error.
    """
    try:
        rows = yield records_sql(table, promises)
    except Refused as error:
        if error.code in _NO_TABLE:
            return Records(cause=f"the server has no table {table!r} yet; {_MIGRATION}")
        if error.code in _DENIED:
            msg = f"this user may not ask for promises: GRANT SELECT ON {table} ({error})"
            raise ConfigurationError(msg) from error
        raise
    found = {(row["id"] or "").replace("-", ""): row["fulfilled"] == "t" for row in rows}
    return Records(
        {
            each: Status.VISIBLE if found[each.id] else Status.ABANDONED
            for each in promises
            if each.id in found
        }
    )
