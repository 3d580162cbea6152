"""What tables of your own need to keep lineages: an invisible column, and triggers that fill it.

The lineage of a statement comes in session variables, which instrumented connections set before
they write. Triggers put it beside each row that the statement touches, so that bulk writes,
upserts, ``REPLACE``, ``LOAD DATA`` and the ORM's statements need no rewriting: an insert stores it,
an update merges it with what lies there, a delete leaves it in the table of tombstones. Connections
without the library have no such variables: their inserts store nothing, their updates keep the
older lineage. Nothing here is run by the library itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode import Lineage
from antipode._codec import encode

from ._flavor import Ask, text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ._flavor import Asking

#: The column beside the values.
COLUMN = "_ap"
#: What separates the texts of lineages that were merged on the server.
SEPARATOR = ","
#: How many bytes several texts together may have; over it the older ones go, and a mark says so.
MOST_BYTES = 1024

#: The session's variables: the lineage, and until which Unix hour a tombstone is kept.
LINEAGE, UNTIL = "@antipode_lineage", "@antipode_until"

#: Sent to a connection that is given back.
FORGET = f"SET {LINEAGE} = NULL"

_COMMENT = "antipode 1"
#: The table of deletions.
TOMBSTONES = "antipode_tombstone"


def migration(table: str, *, key: Sequence[str] = ("id",)) -> tuple[str, ...]:
    """The statements that let *table* keep lineages, for whoever runs your migrations.

    They need the privileges ``ALTER``, ``CREATE`` and ``TRIGGER``, and on MySQL with a binary log
    ``SUPER`` or ``log_bin_trust_function_creators=ON`` while they run. Adding the column is instant
    on both servers.

    Args:
        table: ``table`` or ``schema.table``.
        key: the columns of its primary key.
    """
    schema, _, name = table.rpartition(".")
    place = f"{schema}.{TOMBSTONES}" if schema else TOMBSTONES
    full = quoted(table)
    # It names no datastore: what went may have been about any, and no fence stands for it.
    mark = encode(Lineage(incomplete=[("", "size")]))
    new, old = f"NEW.{quoted(COLUMN)}", f"OLD.{quoted(COLUMN)}"
    return (
        f"CREATE TABLE IF NOT EXISTS {tombstones_as(place)}",
        (
            f"ALTER TABLE {full} ADD COLUMN {quoted(COLUMN)} MEDIUMBLOB NULL INVISIBLE"
            f" COMMENT '{_COMMENT}'"
        ),
        (
            f"CREATE TRIGGER {_trigger(table, 'insert')} BEFORE INSERT ON {full} FOR EACH ROW"
            f" SET {new} = {LINEAGE}"
        ),
        (
            f"CREATE TRIGGER {_trigger(table, 'update')} BEFORE UPDATE ON {full} FOR EACH ROW"
            f" SET {new} = CASE WHEN {LINEAGE} IS NULL THEN {old}"
            f" WHEN {old} IS NULL THEN {LINEAGE} WHEN FIND_IN_SET({LINEAGE}, {old}) THEN {old}"
            f" WHEN LENGTH({LINEAGE}) + LENGTH({old}) < {MOST_BYTES}"
            f" THEN CONCAT({LINEAGE}, '{SEPARATOR}', {old})"
            f" ELSE CONCAT({LINEAGE}, '{SEPARATOR}{mark}') END"
        ),
        (
            f"CREATE TRIGGER {_trigger(table, 'delete')} AFTER DELETE ON {full} FOR EACH ROW"
            f" INSERT INTO {quoted(place)} (t, k, l, h, n)"
            f" SELECT {_literal(name)}, {_key(key)}, {LINEAGE}, {UNTIL}, 0 FROM DUAL"
            f" WHERE {LINEAGE} IS NOT NULL"
            " ON DUPLICATE KEY UPDATE l = VALUES(l), h = VALUES(h), n = (n + 1) & 65535"
        ),
    )


def undo(table: str) -> tuple[str, ...]:
    """The statements that take :func:`migration` back, but for the table of tombstones."""
    triggers = (f"DROP TRIGGER {_trigger(table, on)}" for on in ("insert", "update", "delete"))
    return (*triggers, f"ALTER TABLE {quoted(table)} DROP COLUMN {quoted(COLUMN)}")


def primary_key(table: str) -> Asking[tuple[str, ...]]:
    """Ask for the columns of a table's primary key; none where it has none, or does not exist."""
    schema, name = _place(table)
    rows = yield Ask(
        "SELECT COLUMN_NAME AS name FROM information_schema.KEY_COLUMN_USAGE"
        f" WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {name}"
        " AND CONSTRAINT_NAME = 'PRIMARY' ORDER BY ORDINAL_POSITION"
    )
    return tuple(text(row["name"]) for row in rows)


def missing(tables: Collection[str]) -> Asking[tuple[str, ...]]:
    """Ask which of *tables* lack the column. Needs no privilege but some on the tables."""
    lacking: list[str] = []
    for table in tables:
        schema, name = _place(table)
        rows = yield Ask(
            "SELECT COLUMN_COMMENT AS said FROM information_schema.COLUMNS"
            f" WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {name}"
            f" AND COLUMN_NAME = {_literal(COLUMN)}"
        )
        if [text(row["said"]) for row in rows] != [_COMMENT]:
            lacking.append(table)
    return tuple(lacking)


def triggers_missing(table: str) -> Asking[tuple[str, ...]]:
    """Ask which triggers a table lacks. Sees them only with the privilege ``TRIGGER`` on it."""
    schema, name = _place(table)
    rows = yield Ask(
        "SELECT TRIGGER_NAME AS name FROM information_schema.TRIGGERS"
        f" WHERE EVENT_OBJECT_SCHEMA = {schema} AND EVENT_OBJECT_TABLE = {name}"
    )
    there = {text(row["name"]) for row in rows}
    named = (_trigger_name(table, on) for on in ("insert", "update", "delete"))
    return tuple(name for name in named if name not in there)


def tombstones_as(name: str) -> str:
    """The table of deletions, which tables may share, as ``CREATE TABLE`` takes it."""
    return (
        f"{quoted(name)} (t VARBINARY(256) NOT NULL,"
        " k VARBINARY(512) NOT NULL, l MEDIUMBLOB NOT NULL, h INT UNSIGNED NOT NULL,"
        " n INT UNSIGNED NOT NULL, PRIMARY KEY (t, k), KEY (h))"
    )


def quoted(name: str) -> str:
    """An identifier, with a schema before it perhaps, in the way no name can break out of."""
    parts = (part.replace("`", "``").replace("%", "%%") for part in name.split("."))
    return ".".join(f"`{part}`" for part in parts)


def tombstone(table: str, literal: str) -> str:
    """The question for the lineage that a deletion left, the row's key as a literal."""
    schema, _, name = table.rpartition(".")
    place = f"{schema}.{TOMBSTONES}" if schema else TOMBSTONES
    return (
        f"SELECT l FROM {quoted(place)} WHERE t = {_literal(name)}"
        f" AND k = CAST({literal} AS BINARY)"
    )


def _trigger(table: str, on: str) -> str:
    schema = table.rpartition(".")[0]
    name = _trigger_name(table, on)
    return quoted(f"{schema}.{name}" if schema else name)


def _trigger_name(table: str, on: str) -> str:
    return f"{table.rpartition('.')[2][:50]}_ap_{on}"


def _key(columns: Sequence[str]) -> str:
    """The text of a row's key: the value of its one column, or a JSON array of several."""
    values = [f"OLD.{quoted(column)}" for column in columns]
    return values[0] if len(values) == 1 else f"JSON_ARRAY({', '.join(values)})"


def _place(table: str) -> tuple[str, str]:
    schema, _, name = table.rpartition(".")
    return (_literal(schema) if schema else "DATABASE()"), _literal(name)


def _literal(name: str) -> str:
    return "'" + name.replace("\\", "\\\\").replace("'", "''") + "'"
