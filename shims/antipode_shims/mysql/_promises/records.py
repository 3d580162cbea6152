"""The records of promises: a table, and what is said to it. No I/O.

A branch that keeps a promise inserts its record in the transaction of its data, so that both are
committed, and replicated, together. Whichever record of a promise comes first stays: of a second
one that says the opposite the server shows by the number of rows it changed, in the same round
trip, whatever the client's ``CLIENT_FOUND_ROWS``.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from antipode import ConfigurationError, Status
from antipode.shim import record_seconds
from antipode_shims._sql.promises import SWEEP, TABLE, Records, denied, no_table
from antipode_shims.mysql._position.flavor import Ask, Flavor, Refused, text

if TYPE_CHECKING:
    from collections.abc import Collection

    from antipode import Promise
    from antipode_shims.mysql._position.flavor import Asking, Rows

#: The statement changed a row that was there, which only one that is refused does.
REFUSED = 2
#: For connections of the library's own: nobody's uncommitted record may be seen.
COMMITTED = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"

_NO_TABLE = frozenset({1049, 1146})
#: Somebody holds the row: MySQL's and MariaDB's answers to NOWAIT.
_HELD = frozenset({1205, 3572})
_DENIED = frozenset({1044, 1142, 1143})
_LEVEL = {Flavor.MYSQL: "@@SESSION.transaction_isolation", Flavor.MARIADB: "@@SESSION.tx_isolation"}
_NOW = {Flavor.MYSQL: "FOR SHARE NOWAIT", Flavor.MARIADB: "LOCK IN SHARE MODE NOWAIT"}
_MIGRATION = (
    "the library makes no table on its own: let "
    "`python -m antipode_shims.mysql migration --promises` print what to run"
)


def place(table: str, database: str) -> str:
    """The table as the library's own connections name it; empty where its schema is not known.

    Args:
        table: ``table`` or ``schema.table``.
        database: of the client.
    """
    if "." in table:
        return table
    return f"{database}.{table}" if database else ""


def check_name(table: str) -> str:
    """Refuse what is no name.

    Raises:
        ConfigurationError: *table* is neither ``table`` nor ``schema.table``.
    """
    if table.count(".") > 1 or not all(table.split(".")) or "%" in table:
        msg = f"promise_table must be 'table' or 'schema.table', not {table!r}"
        raise ConfigurationError(msg)
    return table


def promises_ddl(table: str = TABLE) -> tuple[str, ...]:
    """The statements that make the table of promises, for whoever runs your migrations.

    Whoever fulfils promises needs ``INSERT``, ``SELECT``, ``UPDATE`` and ``DELETE`` on it, who
    waits for them ``SELECT``. It has to be replicated with the data.

    Args:
        table: ``table`` or ``schema.table``; clients of one datastore must name the same.
    """
    statement = (
        f"CREATE TABLE IF NOT EXISTS {_quoted(check_name(table))} (id BINARY(16) NOT NULL"
        " PRIMARY KEY, fulfilled BOOLEAN NOT NULL, refused BOOLEAN NOT NULL DEFAULT FALSE,"
        " until_s BIGINT UNSIGNED NOT NULL, KEY (until_s)) ENGINE=InnoDB COMMENT 'antipode 1'"
    )
    return (statement,)


def undo_promises(table: str = TABLE) -> tuple[str, ...]:
    """The statements that take :func:`promises_ddl` back."""
    return (f"DROP TABLE {_quoted(check_name(table))}",)


def promises_missing(table: str) -> Asking[bool]:
    """Ask whether the table of promises is missing."""
    schema, _, name = table.rpartition(".")
    where = f"'{schema}'" if schema else "DATABASE()"
    rows = yield Ask(
        "SELECT COLUMN_NAME AS name FROM information_schema.COLUMNS"
        f" WHERE TABLE_SCHEMA = {where} AND TABLE_NAME = '{name}'"
    )
    needed = {"id", "fulfilled", "refused", "until_s"}
    return not needed.issubset(text(row["name"]).lower() for row in rows)


def recording(table: str, promise: Promise, *, fulfilled: bool) -> str:
    """The statement that records what became of *promise*, unless it has a record.

    It changes :data:`REFUSED` rows where the record that is there says the opposite.
    """
    until_s = int(time.time()) + record_seconds(promise)
    opposite = "(NOT fulfilled)" if fulfilled else "fulfilled"
    return (
        f"INSERT INTO {_quoted(table)} (id, fulfilled, until_s)"
        f" VALUES ({_id(promise)}, {str(fulfilled).upper()}, {until_s})"
        f" ON DUPLICATE KEY UPDATE refused = refused ^ {opposite}"
    )


def sweeping(table: str) -> Asking[None]:
    """Delete a batch of records whose time is over; waits for none that somebody else holds."""
    yield Ask(COMMITTED)  # So that nothing is locked but those.
    yield Ask("START TRANSACTION")
    rows = yield Ask(
        f"SELECT HEX(id) AS id FROM {_quoted(table)} FORCE INDEX (until_s)"
        f" WHERE until_s < {int(time.time())}"
        f" ORDER BY until_s LIMIT {SWEEP} FOR UPDATE SKIP LOCKED"
    )
    for row in rows:  # Together they make the server read the table, past rows that others hold.
        yield Ask(f"DELETE FROM {_quoted(table)} WHERE id = X'{text(row['id'])}'")
    yield Ask("COMMIT")


def explained(datastore: str, table: str, number: int, cause: str) -> ConfigurationError | None:
    """What a server's error number says about the table, None where it says nothing."""
    if number in _NO_TABLE:
        return no_table(datastore, table, _MIGRATION)
    return denied(datastore, table, cause) if number in _DENIED else None


def records(
    table: str, promises: Collection[Promise], flavor: Flavor, *, unsure: bool = False
) -> Asking[Records]:
    """Ask for the records of *promises*: one statement, that reads what is committed.

    Args:
        table: with its schema.
        promises: what to ask for; not empty.
        flavor: of the server.
        unsure: whether the isolation of the transaction may be other than its session's.

    Raises:
        ConfigurationError: this user may not read the table.
        Refused: the server answered with another error.
    """
    ids = ", ".join(map(_id, promises))
    sql = (
        f"SELECT HEX(id) AS id, fulfilled, {_LEVEL[flavor]} AS level"
        f" FROM {_quoted(table)} WHERE id IN ({ids})"
    )
    try:
        rows = yield Ask(sql)
        if rows and (unsure or _dirty(rows)):
            # What was shown may never be committed: only a lock shows that, which nobody waits for.
            rows = yield Ask(f"{sql} {_NOW[flavor]}")
    except Refused as error:
        if error.number in _NO_TABLE:
            return Records(cause=f"the server has no table {table!r} yet; {_MIGRATION}")
        if error.number in _HELD:
            return Records(cause="its record is not committed")
        if error.number in _DENIED:
            msg = f"this user may not ask for promises: GRANT SELECT ON {table} ({error})"
            raise ConfigurationError(msg) from error
        raise
    found = {text(row["id"]).lower(): _truth(row["fulfilled"]) for row in rows}
    return Records(
        {
            each: Status.VISIBLE if found[each.id] else Status.ABANDONED
            for each in promises
            if each.id in found
        }
    )


def _dirty(rows: Rows) -> bool:
    return text(rows[0]["level"]).upper().replace(" ", "-") == "READ-UNCOMMITTED"


def _truth(value: object) -> bool:
    return text(value) in ("1", "True")


def _id(promise: Promise) -> str:
    return f"X'{promise.id}'"  # Hexadecimal digits alone.


def _quoted(name: str) -> str:
    return ".".join(f"`{part.replace('`', '``')}`" for part in name.split("."))
