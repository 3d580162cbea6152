"""The rows that a statement asks for by their keys, by its text and its parameters. Pure.

For the deletions of rows that are not found, and of rows whose keys are not shown. Where a text
names several values of a column it is every combination: one key too many costs little.
"""

from __future__ import annotations

import re
import uuid
from functools import lru_cache
from itertools import islice, product
from typing import TYPE_CHECKING, NamedTuple

from .table import BOOLEAN, INTEGERS, UUID

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .table import Table

#: How many keys of one statement are sought in a table.
MOST_SOUGHT = 1000
#: What is never closed reaches to the end.
_TOKEN = re.compile(
    r"(?P<skip>\s+|--[^\r\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<odd>(?:[eEbBxXnN]|[uU]&)'(?:[^']|'')*(?:'|\Z))"
    r"|(?P<text>'(?:[^']|'')*(?:'|\Z))"
    r'|(?P<name>"(?:[^"]|"")*(?:"|\Z))'
    r"|(?P<word>[^\W\d][\w$]*)"
    r"|(?P<parameter>\$\d+)"
    r"|(?P<number>-?\d[\w.]*)"
    r"|(?P<mark>::|.)",
    re.DOTALL,
)
_TRUE = frozenset([b"t", b"true", b"y", b"yes", b"on", b"1"])
_FALSE = frozenset([b"f", b"false", b"n", b"no", b"off", b"0"])


class Spoken(NamedTuple):
    """A statement as it was sent.

    Attributes:
        text: with ``$1`` and so on where its parameters are.
        parameters: in text or in binary; None for NULL.
        binary: which are in binary.
    """

    text: bytes
    parameters: Sequence[bytes | None] = ()
    binary: Sequence[bool] = ()


class _Token(NamedTuple):
    kind: str
    text: str


def sought(spoken: Spoken, table: Table) -> list[tuple[bytes, ...]]:
    """The keys of *table* that a statement compares with literals or parameters by = or IN.

    Of more than `MOST_SOUGHT` there is one too many.
    """
    tokens = _tokens(spoken.text)
    values = [
        list(_equal_to(column, kind, tokens, spoken))
        for column, kind in zip(table.columns, table.types, strict=True)
    ]
    return list(islice(product(*values), MOST_SOUGHT + 1)) if all(values) else []


@lru_cache(maxsize=256)
def _tokens(text: bytes) -> tuple[_Token, ...]:
    return tuple(
        _Token(match.lastgroup or "", match.group())
        for match in _TOKEN.finditer(text.decode("utf-8", "surrogateescape"))
        if match.lastgroup != "skip"
    )


def spelled(value: bytes, kind: int, *, binary: bool = False) -> bytes | None:
    """The text of a key's value of the type *kind*, as the server has it; None for none."""
    try:
        if kind in INTEGERS:
            number = int.from_bytes(value, "big", signed=True) if binary else int(value)
            return str(number).encode()
        if kind == UUID:
            made = uuid.UUID(bytes=bytes(value)) if binary else uuid.UUID(bytes(value).decode())
            return str(made).encode()
    except ValueError:
        return None
    if kind == BOOLEAN:
        folded = value.lower()
        yes = folded == b"\1" if binary else folded in _TRUE
        return b"true" if yes else b"false" if binary or folded in _FALSE else None
    return bytes(value)


def _equal_to(column: str, kind: int, tokens: Sequence[_Token], spoken: Spoken) -> Iterator[bytes]:
    for at, token in enumerate(tokens[:-2]):
        if not _is(token, column):
            continue
        mark, begins = tokens[at + 1].text.upper(), at + 2
        listed = mark == "IN" and tokens[begins].text == "("
        if listed or mark == "=":
            yield from _values(kind, tokens, begins + listed, spoken, listed=listed)


def _is(token: _Token, column: str) -> bool:
    if token.kind == "name":
        return token.text[1:-1].replace('""', '"') == column
    return token.kind == "word" and token.text.lower() == column


def _values(
    kind: int, tokens: Sequence[_Token], at: int, spoken: Spoken, *, listed: bool
) -> Iterator[bytes]:
    """The value there, or each of a list up to its end."""
    while at < len(tokens):
        value = _value(tokens[at], kind, spoken)
        if value is not None:
            yield value
        while at < len(tokens) and tokens[at].text not in (",", ")"):
            at += 1
        if not listed or at >= len(tokens) or tokens[at].text == ")":
            return
        at += 1


def _value(token: _Token, kind: int, spoken: Spoken) -> bytes | None:
    if token.kind == "parameter":
        place = int(token.text[1:]) - 1
        given = spoken.parameters[place] if place < len(spoken.parameters) else None
        return None if given is None else spelled(bytes(given), kind, binary=spoken.binary[place])
    raw = token.text.encode("utf-8", "surrogateescape")
    if token.kind == "text":
        return spelled(raw[1:-1].replace(b"''", b"'"), kind)
    return spelled(raw, kind) if token.kind in ("number", "word") and kind in _BARE else None


_BARE = INTEGERS | {BOOLEAN}
