"""A ``SELECT`` that also returns the lineages of the rows that it shows. Pure.

The invisible columns of named tables are appended to the select list of the outermost query, where
that shows rows and not what was made of several. Judged by words alone, as ``_statements``: where
the text leaves a doubt it stays as it is, and its reader learns no lineage from it, which is
counted.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice, pairwise, product
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from .migration import Literal
from .triggers import COLUMN, side_shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

#: What is never closed reaches to the end: nothing is tried that could fail there, again and again.
_TOKEN: Final = re.compile(
    rb"""(?P<text>'(?:[^'\\]+|\\(?:.|\Z)|'')*(?:'|\Z)|"(?:[^"\\]+|\\(?:.|\Z)|"")*(?:"|\Z))"""
    rb"""|(?P<skip>\s+|/\*(?!M?!).*?(?:\*/|\Z)|(?:\#|--(?=\s))[^\n]*)"""
    rb"""|(?P<name>`(?:[^`]|``)+`)"""
    rb"""|(?P<word>[A-Za-z_$\x80-\xff@][\w$@\x80-\xff]*)"""
    rb"""|(?P<number>\d[\w.]*)"""
    rb"""|(?P<mark>.)""",
    re.DOTALL,
)
#: After these the rows of the outermost query are no rows of its tables.
_MADE: Final = frozenset(
    b"DISTINCT DISTINCTROW GROUP HAVING UNION EXCEPT INTERSECT INTO PROCEDURE WITH".split()
)
_AGGREGATES: Final = frozenset(
    b"""
    ANY_VALUE AVG BIT_AND BIT_OR BIT_XOR COUNT GROUP_CONCAT JSON_ARRAYAGG JSON_OBJECTAGG MAX MIN
    STD STDDEV STDDEV_POP STDDEV_SAMP SUM VAR_POP VAR_SAMP VARIANCE
    """.split()
)
#: What may stand after a table where an alias might.
_NO_ALIAS: Final = frozenset(
    b"""
    CROSS FETCH FOR FORCE FROM IGNORE INNER JOIN LEFT LIMIT LOCK NATURAL OFFSET ON ORDER OUTER
    PARTITION RIGHT STRAIGHT_JOIN TABLESAMPLE USE USING WHERE WINDOW
    """.split()
)
_JOINS: Final = frozenset((b"JOIN", b"STRAIGHT_JOIN"))
_LOCKS: Final = frozenset(((b"FOR", b"UPDATE"), (b"FOR", b"SHARE"), (b"LOCK", b"IN")))
_TABLES_END: Final = frozenset((b"WHERE", b"ORDER", b"LIMIT", b"FOR", b"LOCK", b"WINDOW", b"FETCH"))


_NO_SIDES: Final[Mapping[str, Sequence[str]]] = MappingProxyType({})
#: How many of the keys that were not found in a table are searched for among its tombstones.
_MOST_SOUGHT: Final = 100
#: A longer literal is no key: these have 3,072 bytes at most, which escapes or digits may double.
_LONGEST: Final = 8192


class Rewritten(NamedTuple):
    """A statement that returns lineages.

    Attributes:
        sql: the statement.
        columns: how many columns were appended.
    """

    sql: bytes
    columns: int


class _Token(NamedTuple):
    kind: str
    text: bytes
    at: int
    depth: int


def mention(names: Iterable[str]) -> re.Pattern[bytes]:
    """Finds what may be one of *names*, without their schemas; data may have them, too."""
    last = {name.rpartition(".")[2].encode() for name in names}
    alternatives = b"|".join(re.escape(name) for name in sorted(last))
    return re.compile(rb"(?<![\w$])(?:" + alternatives + rb")(?![\w$])", re.IGNORECASE)


class Tables:
    """The tables whose rows have stored lineages."""

    def __init__(self, names: Collection[str]) -> None:
        """Know *names*, ``table`` or ``schema.table``, whose case is ignored."""
        self.names = tuple(names)
        self._known = {tuple(name.lower().encode().split(b".")[-2:]) for name in names}
        self._mention = mention(names)

    def mentioned(self, sql: bytes) -> bool:
        """Whether a statement may be about one of them; data may have their names too."""
        return self._mention.search(sql) is not None

    def select(
        self, sql: bytes, sides: Mapping[str, Sequence[str]] = _NO_SIDES
    ) -> Rewritten | None:
        """*sql* with the lineages of its rows; None where it has to stay as it is.

        Args:
            sql: one statement.
            sides: of the tables whose lineages lie in side tables, the columns of their keys.
        """
        tokens = [token for token in _tokens(sql) if token.kind != "skip"]
        if not tokens or tokens[0].text.upper() != b"SELECT":
            return None
        outer = [token for token in tokens if token.depth == 0]
        start = _from(outer)
        if start is None or _is_made(tokens, outer):
            return None
        shown: list[bytes] = []
        for table, alias in _tables(outer[start:]):
            if not self._has(table):
                continue
            key = sides.get(self._name(table)) if sides else None
            if key is None:
                shown.append(b"%s.`%s`" % (alias, COLUMN.encode()))
            else:
                shown.append(side_shown(table, alias, key, locks=_locks(outer)))
        if not shown:
            return None
        at = outer[start].at
        added = b"".join(b", " + each for each in shown)
        return Rewritten(sql[:at].rstrip() + added + b" " + sql[at:], len(shown))

    def sought(
        self, sql: bytes, keys: Mapping[str, Mapping[str, str]]
    ) -> list[tuple[str, list[tuple[Literal, ...]]]]:
        """The rows that a ``SELECT`` asks for by their keys: tables, and keys as literals.

        Where it names several values of a column, every combination: one too many costs little,
        one too few would leave out a dependency.

        Args:
            sql: one that :meth:`select` takes.
            keys: the columns of each table's primary key, and their character sets.
        """
        tokens = [token for token in _tokens(sql) if token.kind != "skip"]
        outer = [token for token in tokens if token.depth == 0]
        shown = list(_without_subqueries(tokens))
        found: list[tuple[str, list[tuple[Literal, ...]]]] = []
        for table, _ in _tables(outer[_from(outer) or 0 :]):
            name = self._name(table)
            key = keys.get(name, {}).items()
            values = [[Literal(each, c) for each in _equal_to(column, shown)] for column, c in key]
            if values and all(values):
                found.append((name, list(islice(product(*values), _MOST_SOUGHT))))
        return found

    def _name(self, table: tuple[bytes, ...]) -> str:
        folded = b".".join(table).lower().decode("utf-8", "replace")
        last = folded.rpartition(".")[2]
        known = {name.lower(): name for name in self.names}
        return known.get(folded) or known.get(last, "")

    def _has(self, table: tuple[bytes, ...]) -> bool:
        folded = tuple(part.lower() for part in table)
        return folded in self._known or folded[-1:] in self._known


@lru_cache(maxsize=8)
def tables_of(names: tuple[str, ...]) -> Tables:
    """The tables of that name, their patterns compiled once."""
    return Tables(names)


def _tokens(sql: bytes) -> Iterator[_Token]:
    depth = 0
    for match in _TOKEN.finditer(sql):
        text, kind = match.group(), match.lastgroup or ""
        if kind == "mark" and text == b")":
            depth -= 1
        yield _Token(kind, text, match.start(), depth)
        if kind == "mark" and text == b"(":
            depth += 1


def _from(outer: list[_Token]) -> int | None:
    """Where the outermost query's tables begin."""
    return next((i for i, token in enumerate(outer) if _word(token) == b"FROM"), None)


def _is_made(tokens: list[_Token], outer: list[_Token]) -> bool:
    """Whether a row of the result is more than one row of each table, or several statements."""
    if any(_word(token) in _MADE or token.text == b";" for token in outer[:-1]):
        return True
    return any(_word(name) in _AGGREGATES and mark.text == b"(" for name, mark in pairwise(tokens))


def _locks(outer: list[_Token]) -> bool:
    """Whether the query locks the rows that it shows."""
    return any((_word(one), _word(two)) in _LOCKS for one, two in pairwise(outer))


def _tables(outer: list[_Token]) -> Iterator[tuple[tuple[bytes, ...], bytes]]:
    """Each table of the outermost ``FROM`` and the name by which its columns are called."""
    due, at = True, 1
    while at < len(outer):
        word = _word(outer[at])
        if word in _TABLES_END:
            return
        if due and outer[at].kind in ("word", "name") and word not in _NO_ALIAS:
            table, alias, at = _reference(outer, at)
            yield table, alias
            due = False
            continue
        due = word in _JOINS or outer[at].text == b","
        at += 1


def _reference(outer: list[_Token], at: int) -> tuple[tuple[bytes, ...], bytes, int]:
    """One table, the name by which its columns are called, and what comes after."""
    parts = [outer[at].text]
    at += 1
    while at + 1 < len(outer) and outer[at].text == b".":
        parts.append(outer[at + 1].text)
        at += 2
    alias = b".".join(parts)
    if at < len(outer) and _word(outer[at]) == b"PARTITION":
        at += 3
    if at < len(outer) and _word(outer[at]) == b"AS":
        at += 1
    if at < len(outer) and outer[at].kind in ("word", "name") and _word(outer[at]) not in _NO_ALIAS:
        alias = outer[at].text
        at += 1
    return tuple(part.strip(b"`").replace(b"``", b"`") for part in parts), alias, at


def _without_subqueries(tokens: Iterable[_Token]) -> Iterator[_Token]:
    """What is said of the outermost query's rows."""
    hidden = 0
    for token in tokens:
        if hidden and token.depth < hidden:
            hidden = 0
        if not hidden and token.depth and _word(token) == b"SELECT":
            hidden = token.depth
        if not hidden:
            yield token


def _equal_to(column: str, tokens: list[_Token]) -> Iterator[bytes]:
    """The literals with which a query compares *column*, by ``=`` or in the list of an ``IN``."""
    folded = column.lower().encode()
    for at, (name, mark) in enumerate(pairwise(tokens), 2):
        if name.text.strip(b"`").lower() != folded:
            continue
        listed = _word(mark) == b"IN" and [each.text for each in tokens[at : at + 1]] == [b"("]
        if listed or mark.text == b"=":
            yield from _literals(tokens, at + listed, listed=listed)


def _literals(tokens: list[_Token], at: int, *, listed: bool) -> Iterator[bytes]:
    """The literal there, or each of a list up to its end, or to what is none."""
    while at < len(tokens):
        near = tokens[at : at + 4]
        literal = _literal(near[:3])
        if 0 < len(literal) <= _LONGEST:
            yield literal
        end = next((i for i, token in enumerate(near) if token.text in (b",", b")")), None)
        if not listed or end is None or near[end].text == b")":
            return
        at += end + 1


def _literal(tokens: list[_Token]) -> bytes:
    """The number or text that comes first, with what may stand before it; nothing for others."""
    literal = b""
    for token in tokens:
        literal += token.text
        if token.kind in ("number", "text"):
            return literal
        if token.text[:1] == b"_":  # A character set: _binary X'00', _latin1 'x'.
            literal += b" "
        elif token.text.upper() not in (b"-", b"X", b"B", b"N"):
            break
    return b""


def _word(token: _Token) -> bytes:
    return token.text.upper() if token.kind == "word" else b""
