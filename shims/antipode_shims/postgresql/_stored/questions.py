"""The questions for the stored lineages of rows, by the keys that a result shows. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode_shims._sql.table2 import SEPARATOR

from .sought import spelled
from .table import BOOLEAN, literal
from .triggers import TOMBSTONES, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from .table import Table

#: How many rows one question is about.
MOST_KEYS = 1000
_TEXTS = frozenset({25, 1043})


def key_values(
    result: Any, columns: Sequence[int], types: Sequence[int]
) -> Iterator[tuple[bytes, ...]]:
    """The keys that *columns* of a result show, as the texts of their values.

    Where an outer join found no row there is none.

    Args:
        result: of libpq's, in text or binary.
        columns: that are the key, in its order.
        types: of the key's columns.
    """
    read = [_reader(result, column, kind) for column, kind in zip(columns, types, strict=True)]
    for row in range(result.ntuples):
        key = tuple([value(row) for value in read])
        if None not in key:
            yield key  # type: ignore[misc]


def _reader(result: Any, column: int, kind: int) -> Callable[[int], bytes | None]:
    """What returns the text of a column in a row; None for NULL."""
    binary = bool(result.fformat(column))
    value: Callable[[int, int], bytes | None] = result.get_value
    if kind in _TEXTS or not (binary or kind == BOOLEAN):
        return lambda row: value(row, column)

    def read(row: int) -> bytes | None:
        given = value(row, column)
        return None if given is None else spelled(given, kind, binary=binary)

    return read


def asking(
    noted: Iterable[tuple[Table, bool, Sequence[tuple[bytes, ...]]]],
    escape: Callable[[bytes], bytes],
    *,
    same: bool,
) -> Iterator[str]:
    """The questions, with one row for an answer each: ``lineages``, texts, and ``absent``.

    Both the rows that are there and those that were deleted: a row that was read may be deleted by
    now, and perhaps there is another under its key.

    Args:
        noted: the tables, whether their rows were shown, and the keys of these.
        escape: makes a literal of bytes.
        same: whether the transaction that asks is the one that read. If that has one snapshot, a
            row that was shown is there: an earlier deletion under its key is nobody's.
    """
    for table, shown, keys in noted:
        width = range(len(table.columns))
        key = key_of([f"v.c{number}" for number in width])
        rows = ", ".join(f"({', '.join(_sent(escape(value)) for value in each)})" for each in keys)
        named = ", ".join(f"c{number}" for number in width)
        yield (
            "SELECT string_agg(DISTINCT CASE WHEN s.l IS NOT NULL OR d.l IS NOT NULL"
            f" THEN concat_ws('{SEPARATOR}', s.l, d.l) END, '{SEPARATOR}') AS lineages,"
            f" count(*) FILTER (WHERE {shown} AND s.l IS NULL AND d.l IS NULL) AS absent"
            f" FROM (SELECT {key} AS k FROM (VALUES {rows}) AS v ({named})) AS q"
            f" LEFT JOIN {table.side_name} AS s ON s.k = q.k"
            f" LEFT JOIN {table.beside(TOMBSTONES)} AS d"
            f" ON d.t = {literal(table.name)} AND d.k = q.k"
            f" AND NOT ({shown and same} AND current_setting('transaction_isolation')"
            " IN ('repeatable read', 'serializable'))"
        )


def nothing() -> str:
    """The question for no row."""
    return "SELECT NULL AS lineages, 0 AS absent"


def _sent(quoted: bytes) -> str:
    """A literal, of bytes that are sent as they are."""
    return f"{quoted.decode('utf-8', 'surrogateescape')}::text"
