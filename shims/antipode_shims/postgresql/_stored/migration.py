"""What tables of your own need to keep lineages: a side table each, and triggers that fill it.

The lineage of a statement comes in a setting of the session, which instrumented connections set
before they write. So bulk writes, `COPY`, upserts, cascades and the ORM's statements need no
rewriting. Connections without the library have no such setting: their inserts store nothing, their
updates keep the older lineage. Nothing here is run by the library itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode import ConfigurationError
from antipode_shims.postgresql._promises import check_name
from antipode_shims.postgresql._table2 import Layout

from .table import SUFFIX, TYPES, Table, identifier, literal
from .triggers import COMMENT, TOMBSTONES, merging, storing, trigger_names, triggers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from antipode_shims.postgresql._look import Asking
    from antipode_shims.postgresql._position import Rows

#: The longest name whose side table has one, too.
_LONGEST = 63 - len(SUFFIX)
_DESCRIBED = (
    "SELECT n.nspname AS schema, c.relname AS name, c.oid AS oid, c.relkind AS kind,"
    " EXISTS (SELECT FROM pg_inherits i WHERE c.oid IN (i.inhparent, i.inhrelid)) AS inherits,"
    " coalesce(x.indimmediate, true) AS immediate, a.attname AS column, a.attnum AS number,"
    " a.atttypid AS type, format_type(a.atttypid, NULL) AS type_name, s.oid AS side,"
    " coalesce(has_table_privilege(s.oid, 'select'), false) AS readable,"
    " coalesce(has_table_privilege(to_regclass(format('%I.%I', n.nspname, {tombstones})),"
    " 'select'), false) AS buried,"
    " array_to_string(ARRAY(SELECT g.tgname FROM pg_trigger g WHERE g.tgrelid = c.oid"
    " AND g.tgenabled IN ('O', 'A') AND NOT g.tgisinternal), ' ') AS triggers"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " LEFT JOIN pg_class s ON s.relnamespace = n.oid AND s.relname = c.relname || '{suffix}'"
    " AND obj_description(s.oid, 'pg_class') = '{comment}'"
    " LEFT JOIN pg_index x ON x.indrelid = c.oid AND x.indisprimary"
    " LEFT JOIN LATERAL unnest(x.indkey::int2[]) WITH ORDINALITY AS u (number, place)"
    " ON u.place <= x.indnkeyatts"
    " LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = u.number"
    " WHERE c.oid = to_regclass({name}) ORDER BY u.place"
)

#: The names of views that show rows of some tables, over any number of other views.
_VIEWS = (
    "WITH RECURSIVE spread AS (SELECT to_regclass(n)::oid AS oid FROM unnest(ARRAY[{names}]) AS n"
    " UNION SELECT r.ev_class FROM spread s JOIN pg_depend d ON d.refobjid = s.oid"
    " AND d.refclassid = 'pg_class'::regclass AND d.classid = 'pg_rewrite'::regclass"
    " JOIN pg_rewrite r ON r.oid = d.objid)"
    " SELECT c.relname AS name FROM spread s JOIN pg_class c ON c.oid = s.oid"
    " WHERE c.relkind IN ('v', 'm')"
)


def views(names: Iterable[str]) -> Asking[tuple[str, ...]]:
    """Ask which views show rows of tables with these *names*, as `described` takes them."""
    rows = yield _VIEWS.format(
        names=", ".join(literal(check_name(name, "tables")) for name in names)
    )
    return tuple(sorted({str(row["name"]) for row in rows}))


def described(name: str) -> Asking[Table | None]:
    """Ask what a table is; None where there is none of that name.

    Args:
        name: ``table`` or ``schema.table``, as SQL has it without quotes.
    """
    rows = yield _DESCRIBED.format(
        tombstones=literal(TOMBSTONES),
        suffix=SUFFIX,
        comment=COMMENT,
        name=literal(check_name(name, "tables")),
    )
    if not rows:
        return None
    first = rows[0]
    keys = [row for row in rows if row["column"] is not None]
    found = Table(
        first["schema"] or "",
        first["name"] or "",
        int(first["oid"] or 0),
        tuple(row["column"] or "" for row in keys),
        tuple(int(row["number"] or 0) for row in keys),
        tuple(int(row["type"] or 0) for row in keys),
        _refused(rows),
    )
    there = (first["triggers"] or "").split(" ")
    lacks = [f"trigger {trigger}" for trigger in trigger_names(found) if trigger not in there]
    if first["side"] is None:
        lacks.insert(0, f"the side table {found.name}{SUFFIX}")
    elif first["readable"] != "t":
        lacks.insert(0, f"this user's SELECT on {found.name}{SUFFIX}")
    if first["buried"] != "t":
        lacks.append(f"{TOMBSTONES}, or this user's SELECT on it")
    return found._replace(lacks=tuple(lacks))


def _refused(rows: Rows) -> str:
    first = rows[0]
    if first["kind"] != "r" or first["inherits"] == "t":
        return "it is no plain table: partitions, parents, views and foreign tables keep none"
    if len((first["name"] or "").encode()) > _LONGEST:
        return f"its name is longer than {_LONGEST} bytes"
    if first["column"] is None:
        return "it has no primary key"
    if first["immediate"] != "t":
        return "its primary key is DEFERRABLE: two rows may have one key for a while"
    for row in rows:
        if int(row["type"] or 0) not in TYPES:
            return (
                f"the column {row['column']!r} of its primary key has the type"
                f" {row['type_name']}; only these are written alike in all sessions:"
                f" {', '.join(TYPES.values())}"
            )
    return ""


def usable(name: str, table: Table | None) -> Table:
    """*table*, which can keep lineages if it is migrated.

    Raises:
        ConfigurationError: it cannot, or there is none.
    """
    if table is None:
        raise ConfigurationError(f"there is no table {name!r}")
    if table.refused:
        raise ConfigurationError(f"{name!r} cannot keep lineages: {table.refused}")
    return table


def migration(table: Table) -> tuple[str, ...]:
    """The statements that let *table* keep lineages; for its owner, who keeps what they make.

    The service's user needs `SELECT` on the side table and on the table of tombstones.
    """
    _, graves, index = Layout(tombstones=TOMBSTONES).ddl()
    place, side = table.beside(TOMBSTONES), table.side_name
    return (
        graves.replace(TOMBSTONES, place, 1),
        index.replace(f"ON {TOMBSTONES}", f"ON {place}"),
        f"CREATE TABLE {side} (k bytea PRIMARY KEY, l text NOT NULL)",
        f"COMMENT ON TABLE {side} IS '{COMMENT}'",
        merging(table.schema),
        storing(table),
        f"REVOKE EXECUTE ON FUNCTION {side}() FROM PUBLIC",
        *triggers(table),
    )


def undo(table: Table) -> tuple[str, ...]:
    """The statements that take :func:`migration` back, but for what other tables share."""
    return (
        *(f"DROP TRIGGER {identifier(n)} ON {table.full_name}" for n in trigger_names(table)),
        f"DROP FUNCTION {table.side_name}()",
        f"DROP TABLE {table.side_name}",
    )
