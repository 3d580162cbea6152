"""The SQL that stores lineages with rows: names, columns, and what the triggers say. Pure text.

Where servers have invisible columns, triggers fill the column of the row itself. Where they have
none (MySQL before 8.0.23), triggers on the table keep a row of a *side table* for each of its rows,
by its key and in its transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode import Lineage
from antipode.shim import encode
from antipode_shims._sql.superseded import CARRIED
from antipode_shims.mysql._format import KEY_BYTES, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: The column with the lineages.
COLUMN = "_ap"
#: What separates the texts of lineages that were merged on the server.
SEPARATOR = ","
#: How many bytes several texts together may have; over it the older ones go, and a mark says so.
MOST_BYTES = 1024
#: The table of deletions.
TOMBSTONES = "antipode_tombstone"

#: The session's variables: the lineage, the pattern of what it passes, and until which Unix hour a
#: tombstone is kept.
LINEAGE, PASSED, UNTIL = "@antipode_lineage", "@antipode_passed", "@antipode_until"

#: Sent to a connection that is given back.
FORGET = f"SET {LINEAGE} = NULL"

#: It names no datastore: what went may have been about any, and no fence stands for it.
_MARK = encode(Lineage(incomplete=[("", "size")]))
_INSERT, _UPDATE, _DELETE = "AFTER INSERT", "AFTER UPDATE", "AFTER DELETE"


def literal(name: str) -> str:
    """A text."""
    return "'" + name.replace("\\", "\\\\").replace("'", "''") + "'"


def beside(table: str, name: str) -> str:
    """Another table of the schema that *table* names, if any."""
    schema = table.rpartition(".")[0]
    return f"{schema}.{name}" if schema else name


def side_of(table: str) -> str:
    """The table that keeps the lineages of one without the column."""
    return f"{table}{COLUMN}"


def trigger_name(table: str, on: str) -> str:
    """One of a table's triggers."""
    return f"{table.rpartition('.')[2][:50]}{COLUMN}_{on}"


def key_of(values: Sequence[str]) -> str:
    """What identifies a row's tombstone: its key's one value, or several, each after its length.

    As bytes, so that 1 and '1' are alike. A key that is too long for its column is hashed there:
    no deletion may fail for the sake of its tombstone.
    """
    parts = [f"CAST({value} AS BINARY)" for value in values]
    lengths = (f"LENGTH({part}), {part}" for part in parts)
    key = parts[0] if len(parts) == 1 else f"CONCAT_WS(':', {', '.join(lengths)})"
    return f"IF(LENGTH({key}) > {KEY_BYTES}, SHA2({key}, 512), {key})"


def column_triggers(table: str, key: Sequence[str]) -> Iterator[str]:
    """For a table with the column: an insert stores, an update merges, a delete leaves it."""
    yield (
        f"CREATE TRIGGER {_trigger(table, 'insert')} BEFORE INSERT ON {quoted(table)} FOR EACH ROW"
        f" SET NEW.{quoted(COLUMN)} = {LINEAGE}"
    )
    yield _merging(table, "update", table, COLUMN)
    yield _burying(table, key)


def side_triggers(table: str, key: Sequence[str]) -> Iterator[str]:
    """For a table with a side table, which has one of its own that merges.

    All run after the row's own change: before it, ``UPDATE IGNORE`` would leave what they did.
    MariaDB runs them for a row that was not changed as well, which is then still there.
    """
    side = quoted(side_of(table))
    new, old = (_row_key(row, key) for row in ("NEW", "OLD"))
    there = " AND ".join(f"there.{quoted(each)} = OLD.{quoted(each)}" for each in key)
    still = (
        f"EXISTS (SELECT 1 FROM {quoted(table)} there"
        f" WHERE {there} AND {_row_key('there', key)} = {old})"
    )
    moved = f"{new} <> {old} AND NOT {still}"
    yield _merging(table, "merge", side_of(table), "l")
    yield _doing(table, "insert", _INSERT, f"REPLACE INTO {side} (k, l) VALUES ({new}, {LINEAGE})")
    yield _doing(
        table,
        "move",
        _UPDATE,
        f"REPLACE INTO {side} (k, l) SELECT {new}, l FROM {side} WHERE k = {old} AND {moved}",
    )
    yield _doing(table, "moved", _UPDATE, f"DELETE FROM {side} WHERE k = {old} AND {moved}")
    yield _doing(
        table,
        "update",
        _UPDATE,
        f"INSERT INTO {side} (k, l) SELECT {new}, {LINEAGE} FROM DUAL"
        f" WHERE {LINEAGE} IS NOT NULL AND ({new} = {old} OR NOT {still})"
        " ON DUPLICATE KEY UPDATE l = VALUES(l)",
    )
    yield _doing(table, "gone", _DELETE, f"DELETE FROM {side} WHERE k = {old}")
    yield _burying(table, key)


def side_shown(parts: Sequence[bytes], alias: bytes, key: Sequence[str], *, locks: bool) -> bytes:
    """What a ``SELECT`` says to show the lineage of a row with a side table.

    Args:
        parts: the name of the row's table, as the statement has it.
        alias: by what the statement calls its columns.
        key: the columns of its primary key.
        locks: whether the statement locks rows. Then it shows the newest, not its transaction's
            snapshot, and so has to do what is stored with them.
    """
    names = [part.decode("utf-8", "surrogateescape").replace("`", "``") for part in parts]
    side = ".".join(f"`{name}`" for name in (*names[:-1], side_of(names[-1])))
    called = alias.decode("utf-8", "surrogateescape")
    beside_it = key_of([f"{called}.`{each.replace('`', '``')}`" for each in key])
    shown = f"SELECT _antipode.l FROM {side} _antipode WHERE _antipode.k = {beside_it}"
    lock = " LOCK IN SHARE MODE" if locks else ""
    return f"({shown}{lock})".encode("utf-8", "surrogateescape")


def _row_key(row: str, key: Sequence[str]) -> str:
    return key_of([f"{row}.{quoted(column)}" for column in key])


def _trigger(table: str, on: str) -> str:
    return quoted(beside(table, trigger_name(table, on)))


def _doing(table: str, on: str, when: str, statement: str) -> str:
    return (
        f"CREATE TRIGGER {_trigger(table, on)} {when} ON {quoted(table)} FOR EACH ROW {statement}"
    )


def _burying(table: str, key: Sequence[str]) -> str:
    gone = _row_key("OLD", key)
    name = literal(table.rpartition(".")[2])
    return _doing(
        table,
        "delete",
        _DELETE,
        f"INSERT INTO {quoted(beside(table, TOMBSTONES))} (t, k, l, h, n)"
        f" SELECT {name}, {gone}, {LINEAGE}, {UNTIL}, 0 FROM DUAL WHERE {LINEAGE} IS NOT NULL"
        " ON DUPLICATE KEY UPDATE l = VALUES(l), h = VALUES(h), n = (n + 1) & 65535",
    )


def _merging(table: str, on: str, place: str, column: str) -> str:
    """The trigger that merges the session's lineage with what lies in a column of *place*.

    The new text comes first. From the others goes what the new one passes, and then the texts of
    which nothing is left; but not where one is of another version of the format, or carries a text
    of one, whose items may mean something else. Without a pattern all stay. Expressions need a
    character set: these bytes are any, and stay as they are; before MySQL 8.0.17 what is replaced
    comes in another.
    """
    new, old = f"NEW.{quoted(column)}", f"OLD.{quoted(column)}"
    older, patterns = _letters(old), _letters(PASSED)
    kept = _letters(f"REGEXP_REPLACE({older}, {patterns}, '')")
    merged = (
        f"REGEXP_REPLACE(CONCAT({_letters(LINEAGE)}, '{SEPARATOR}', {kept}),"
        f" '{SEPARATOR}1[0-9a-z]*(?={SEPARATOR}|$)', '')"
    )
    return (
        f"CREATE TRIGGER {_trigger(table, on)} BEFORE UPDATE ON {quoted(place)} FOR EACH ROW"
        f" SET {new} = CASE WHEN {LINEAGE} IS NULL THEN {old}"
        f" WHEN {old} IS NULL THEN {LINEAGE} WHEN FIND_IN_SET({LINEAGE}, {old}) THEN {old}"
        f" WHEN {PASSED} IS NULL OR {older} REGEXP '(^|{SEPARATOR})[^1]|{CARRIED}'"
        f" THEN CONCAT({LINEAGE}, '{SEPARATOR}', {old})"
        f" ELSE CONVERT({merged} USING latin1) END,"
        f" {new} = IF(LENGTH({new}) <= {MOST_BYTES} OR {new} <=> {old} OR {new} = {LINEAGE},"
        f" {new}, CONCAT({LINEAGE}, '{SEPARATOR}{_MARK}'))"
    )


def _letters(expression: str) -> str:
    return f"CONVERT({expression} USING latin1) COLLATE latin1_bin"
