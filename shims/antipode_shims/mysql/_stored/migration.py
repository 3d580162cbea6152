"""What tables of your own need to keep lineages: an invisible column, and triggers that fill it.

The lineage of a statement comes in session variables, which instrumented connections set before
they write. Triggers store it with each row that the statement touches, so that bulk writes,
upserts, ``REPLACE``, ``LOAD DATA`` and the ORM's statements need no rewriting: an insert stores it,
an update merges it with what lies there, a delete leaves it in the table of tombstones. Connections
without the library have no such variables: their inserts store nothing, their updates keep the
older lineage. Servers without invisible columns keep the same in a side table. Nothing here is run
by the library itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from antipode_shims.mysql._clients.views import names_in
from antipode_shims.mysql._format import KEY_BYTES, quoted, tombstones_as
from antipode_shims.mysql._position.flavor import Ask, Refused, text

from .triggers import (
    COLUMN,
    TOMBSTONES,
    beside,
    column_triggers,
    key_of,
    literal,
    side_of,
    side_triggers,
    trigger_name,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from antipode_shims.mysql._position.flavor import Asking

_COMMENT = "antipode 1"
_COLUMN_TRIGGERS = ("insert", "update", "delete")
_SIDE_TRIGGERS = ("insert", "move", "moved", "update", "gone", "delete")
#: On the side table itself, with which it goes.
_SIDES_OWN = "merge"
_FIRST_INVISIBLE = (8, 0, 23)
_VIEWS = (
    "SELECT TABLE_NAME AS name, VIEW_DEFINITION AS made_of FROM information_schema.VIEWS"
    " WHERE TABLE_SCHEMA NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')"
    " LIMIT 1024"
)


class Literal(NamedTuple):
    """What a statement compares a column with.

    Attributes:
        sent: in the statement's own bytes.
        charset: the column's character set; empty for what is no text.
    """

    sent: bytes
    charset: str


def migration(
    table: str, *, key: Sequence[str] = ("id",), side_table: bool = False
) -> tuple[str, ...]:
    """The statements that let *table* keep lineages, for whoever runs your migrations.

    They need the privileges ``ALTER``, ``CREATE`` and ``TRIGGER``, and where there is a binary log
    ``SUPER`` or ``log_bin_trust_function_creators=ON`` while they run. Adding the column is instant
    on both servers.

    Args:
        table: ``table`` or ``schema.table``.
        key: the columns of its primary key, in its order.
        side_table: keep them in a table ``<table>_ap`` in place of the invisible column, which
            MySQL has from 8.0.23 on.
    """
    graves = f"CREATE TABLE IF NOT EXISTS {tombstones_as(beside(table, TOMBSTONES))}"
    if side_table:
        return (graves, _side(table), *side_triggers(table, key))
    added = (
        f"ALTER TABLE {quoted(table)} ADD COLUMN {quoted(COLUMN)} MEDIUMBLOB NULL INVISIBLE"
        f" COMMENT '{_COMMENT}'"
    )
    return (graves, added, *column_triggers(table, key))


def undo(table: str, *, side_table: bool = False) -> tuple[str, ...]:
    """The statements that take :func:`migration` back, but for the table of tombstones."""
    names = _SIDE_TRIGGERS if side_table else _COLUMN_TRIGGERS
    triggers = (f"DROP TRIGGER {quoted(beside(table, trigger_name(table, on)))}" for on in names)
    if side_table:
        return (*triggers, f"DROP TABLE {quoted(side_of(table))}")
    return (*triggers, f"ALTER TABLE {quoted(table)} DROP COLUMN {quoted(COLUMN)}")


def lacks_invisible_columns(version: str) -> bool:
    """Whether a server of that version, as it spells it, needs side tables."""
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if "mariadb" in version.lower() or numbers is None:
        return False
    return tuple(int(each) for each in numbers.groups()) < _FIRST_INVISIBLE


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


def showing(tables: Iterable[str]) -> Asking[frozenset[str]]:
    """Ask which views show rows of *tables*, over any number of other views.

    One of which this user may not see what it is made of may show them.
    """
    try:
        rows = yield Ask(_VIEWS)
    except Refused:
        return frozenset()
    views = {text(row["name"]): text(row["made_of"]) for row in rows}
    shown = {table.rpartition(".")[2].lower() for table in tables}
    found: set[str] = set()
    while more := {name for name in views.keys() - found if _reads(views[name], shown)}:
        found |= more
        shown |= {name.lower() for name in more}
    return frozenset(found)


def _reads(made_of: str, shown: Collection[str]) -> bool:
    names = names_in(made_of.encode())
    last = (name.rpartition(b".")[2].strip(b'`"').lower().decode() for name in names)
    return not made_of or any(name in shown for name in last)


def missing(tables: Collection[str]) -> Asking[tuple[str, ...]]:
    """Ask which of *tables* lack the column. Needs no privilege but some on the tables."""
    lacking: list[str] = []
    for table in tables:
        schema, name = _place(table)
        rows = yield Ask(
            "SELECT COLUMN_COMMENT AS said FROM information_schema.COLUMNS"
            f" WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {name}"
            f" AND COLUMN_NAME = {literal(COLUMN)}"
        )
        if [text(row["said"]) for row in rows] != [_COMMENT]:
            lacking.append(table)
    return tuple(lacking)


def sided(tables: Collection[str]) -> Asking[tuple[str, ...]]:
    """Ask which of *tables* have a side table. Needs no privilege but some on the side tables.

    A key that each session spells in its own time zone finds nothing there.
    """
    having: list[str] = []
    for table in tables:
        schema, name = _place(table)
        rows = yield Ask(
            "SELECT TABLE_COMMENT AS said FROM information_schema.TABLES"
            f" WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {_place(side_of(table))[1]}"
            " AND NOT EXISTS (SELECT 1 FROM information_schema.COLUMNS"
            f" WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {name}"
            " AND COLUMN_KEY = 'PRI' AND DATA_TYPE = 'timestamp')"
        )
        if [text(row["said"]) for row in rows] == [_COMMENT]:
            having.append(table)
    return tuple(having)


def triggers_missing(table: str, *, side_table: bool = False) -> Asking[tuple[str, ...]]:
    """Ask which triggers a table lacks. Sees them only with the privilege ``TRIGGER`` on it."""
    schema, name = _place(table)
    of_side = _place(side_of(table))[1]
    rows = yield Ask(
        "SELECT TRIGGER_NAME AS name FROM information_schema.TRIGGERS"
        f" WHERE EVENT_OBJECT_SCHEMA = {schema} AND EVENT_OBJECT_TABLE IN ({name}, {of_side})"
    )
    there = {text(row["name"]) for row in rows}
    needed = (*_SIDE_TRIGGERS, _SIDES_OWN) if side_table else _COLUMN_TRIGGERS
    named = (trigger_name(table, on) for on in needed)
    return tuple(name for name in named if name not in there)


def tombstones(table: str, keys: Iterable[Sequence[Literal]]) -> bytes:
    """The question for the lineages that the deletions of rows left, by the columns of a key."""
    name = table.rpartition(".")[2]
    sought = ", ".join(key_of([_value(each) for each in key]) for key in keys)
    place = quoted(beside(table, TOMBSTONES))
    asked = f"SELECT l FROM {place} WHERE t = {literal(name)} AND k IN ({sought})"
    return asked.encode("utf-8", "surrogateescape")


def _side(table: str) -> str:
    """The side table: a row without a lineage is one that a plain client inserted."""
    name = quoted(side_of(table))
    return (
        f"CREATE TABLE {name} (k VARBINARY({KEY_BYTES}) NOT NULL PRIMARY KEY, l MEDIUMBLOB NULL)"
        f" COMMENT '{_COMMENT}'"
    )


def _value(each: Literal) -> str:
    sent = each.sent.decode("utf-8", "surrogateescape")
    return f"CONVERT({sent} USING {each.charset})" if each.charset else sent


def _place(table: str) -> tuple[str, str]:
    schema, _, name = table.rpartition(".")
    return (literal(schema) if schema else "DATABASE()"), literal(name)
