"""What tables of your own need to keep lineages: an invisible column, and triggers that fill it.

The lineage of a statement comes in session variables, which instrumented connections set before
they write. Triggers put it beside each row that the statement touches, so that bulk writes,
upserts, ``REPLACE``, ``LOAD DATA`` and the ORM's statements need no rewriting: an insert stores it,
an update merges it with what lies there, a delete leaves it in the table of tombstones. Connections
without the library have no such variables: their inserts store nothing, their updates keep the
older lineage. Nothing here is run by the library itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from antipode import Lineage
from antipode._codec import encode

from ._flavor import Ask, text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

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
_KEY_BYTES = 512
#: The table of deletions.
TOMBSTONES = "antipode_tombstone"


class Literal(NamedTuple):
    """What a statement compares a column with.

    Attributes:
        sent: in the statement's own bytes.
        charset: the column's character set; empty for what is no text.
    """

    sent: bytes
    charset: str


def migration(table: str, *, key: Sequence[str] = ("id",)) -> tuple[str, ...]:
    """The statements that let *table* keep lineages, for whoever runs your migrations.

    They need the privileges ``ALTER``, ``CREATE`` and ``TRIGGER``, and on MySQL with a binary log
    ``SUPER`` or ``log_bin_trust_function_creators=ON`` while they run. Adding the column is instant
    on both servers.

    Args:
        table: ``table`` or ``schema.table``.
        key: the columns of its primary key, in its order.
    """
    schema, _, name = table.rpartition(".")
    place = f"{schema}.{TOMBSTONES}" if schema else TOMBSTONES
    full = quoted(table)
    # It names no datastore: what went may have been about any, and no fence stands for it.
    mark = encode(Lineage(incomplete=[("", "size")]))
    new, old = f"NEW.{quoted(COLUMN)}", f"OLD.{quoted(COLUMN)}"
    gone = [f"OLD.{quoted(column)}" for column in key]
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
            f" SELECT {_literal(name)}, {_key(gone)}, {LINEAGE}, {UNTIL}, 0 FROM DUAL"
            f" WHERE {LINEAGE} IS NOT NULL"
            " ON DUPLICATE KEY UPDATE l = VALUES(l), h = VALUES(h), n = (n + 1) & 65535"
        ),
    )


def undo(table: str) -> tuple[str, ...]:
    """The statements that take :func:`migration` back, but for the table of tombstones."""
    triggers = (f"DROP TRIGGER {_trigger(table, on)}" for on in ("insert", "update", "delete"))
    return (*triggers, f"ALTER TABLE {quoted(table)} DROP COLUMN {quoted(COLUMN)}")


def primary_key(table: str) -> Asking[Mapping[str, str]]:
    """Ask for the columns of a table's primary key; none where it has none, or does not exist.

    Returns:
        Each column's character set, empty for what is no text; in the key's order.
    """
    schema, name = _place(table)
    rows = yield Ask(
        "SELECT u.COLUMN_NAME AS name, c.CHARACTER_SET_NAME AS charset"
        " FROM information_schema.KEY_COLUMN_USAGE u JOIN information_schema.COLUMNS c"
        " ON c.TABLE_SCHEMA = u.TABLE_SCHEMA AND c.TABLE_NAME = u.TABLE_NAME"
        " AND c.COLUMN_NAME = u.COLUMN_NAME"
        f" WHERE u.TABLE_SCHEMA = {schema} AND u.TABLE_NAME = {name}"
        f" AND c.TABLE_SCHEMA = {schema} AND c.TABLE_NAME = {name}"
        " AND u.CONSTRAINT_NAME = 'PRIMARY' ORDER BY u.ORDINAL_POSITION"
    )
    return {text(row["name"]): text(row["charset"]) for row in rows}


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
        f" k VARBINARY({_KEY_BYTES}) NOT NULL, l MEDIUMBLOB NOT NULL, h INT UNSIGNED NOT NULL,"
        " n INT UNSIGNED NOT NULL, PRIMARY KEY (t, k), KEY (h))"
    )


def quoted(name: str) -> str:
    """An identifier, with a schema before it perhaps, in the way no name can break out of."""
    parts = (part.replace("`", "``").replace("%", "%%") for part in name.split("."))
    return ".".join(f"`{part}`" for part in parts)


def tombstones(table: str, keys: Iterable[Sequence[Literal]]) -> bytes:
    """The question for the lineages that the deletions of rows left, by the columns of a key."""
    schema, _, name = table.rpartition(".")
    place = f"{schema}.{TOMBSTONES}" if schema else TOMBSTONES
    sought = ", ".join(_key([_value(literal) for literal in key]) for key in keys)
    asked = f"SELECT l FROM {quoted(place)} WHERE t = {_literal(name)} AND k IN ({sought})"
    return asked.encode("utf-8", "surrogateescape")


def _value(literal: Literal) -> str:
    sent = literal.sent.decode("utf-8", "surrogateescape")
    return f"CONVERT({sent} USING {literal.charset})" if literal.charset else sent


def _trigger(table: str, on: str) -> str:
    schema = table.rpartition(".")[0]
    name = _trigger_name(table, on)
    return quoted(f"{schema}.{name}" if schema else name)


def _trigger_name(table: str, on: str) -> str:
    return f"{table.rpartition('.')[2][:50]}_ap_{on}"


def _key(values: Sequence[str]) -> str:
    """What tells a row's tombstone: its key's one value, or several, each behind its length.

    As bytes, so that 1 and '1' are alike. A key that is too long for its column is hashed there:
    no deletion may fail for the sake of its tombstone.
    """
    parts = [f"CAST({value} AS BINARY)" for value in values]
    lengths = (f"LENGTH({part}), {part}" for part in parts)
    key = parts[0] if len(parts) == 1 else f"CONCAT_WS(':', {', '.join(lengths)})"
    return f"IF(LENGTH({key}) > {_KEY_BYTES}, SHA2({key}, 512), {key})"


def _place(table: str) -> tuple[str, str]:
    schema, _, name = table.rpartition(".")
    return (_literal(schema) if schema else "DATABASE()"), _literal(name)


def _literal(name: str) -> str:
    return "'" + name.replace("\\", "\\\\").replace("'", "''") + "'"
