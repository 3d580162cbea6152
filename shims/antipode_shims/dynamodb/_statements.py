"""What a statement of PartiQL writes, where its stamp goes, and which index it reads. No I/O.

Understood is what names one item: an ``INSERT`` of a map, an ``UPDATE`` or a ``DELETE`` whose
``WHERE`` compares the key for equality. Whatever else it has stays as it is.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from ._format import OURS, STAMP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')
    |(?P<name>"(?:[^"]|"")*")
    |(?P<word>[A-Za-z_]\w*)
    |(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<mark>\?)
    |(?P<sign><<|>>|<=|>=|<>|!=|[{}\[\](),:=<>.*+/|-]))""",
    re.VERBOSE,
)
_OPENING, _CLOSING = {"{", "[", "(", "<<"}, {"}", "]", ")", ">>"}
#: A comparison of an attribute with a value.
_COMPARED = 3
#: A table, a dot and its index.
_INDEXED = 3


class Token(NamedTuple):
    """A part of a statement.

    Attributes:
        kind: a group of the pattern.
        text: as it is written.
        start: where it begins.
        depth: how many brackets it is in.
        marks: how many placeholders come before it.
    """

    kind: str
    text: str
    start: int
    depth: int
    marks: int

    @property
    def named(self) -> str | None:
        """The table or attribute that it names; None where it names none."""
        if self.kind in ("text", "name"):
            quote = self.text[0]
            return self.text[1:-1].replace(quote * 2, quote)
        return self.text if self.kind == "word" else None


class Statement(NamedTuple):
    """A statement that writes one item.

    Attributes:
        table: its name.
        values: of attributes, as the API has them: those of the item that it inserts, or those
            that its item is compared with.
        deletes: whether it deletes its item.
        at: where the stamp is set; 0 for a deletion, which sets none.
        inserts: whether the stamp is the first attribute of a map.
    """

    table: str
    values: dict[str, Any]
    deletes: bool = False
    at: int = 0
    inserts: bool = False

    def stamped(self, text: str, stamp: int) -> str:
        """The statement *text*, which this is of, as one that sets *stamp*, too."""
        if self.deletes:
            return text
        ours = f"'{STAMP}': {stamp}, " if self.inserts else f'SET "{STAMP}" = {stamp} '
        return f"{text[: self.at]}{ours}{text[self.at :]}"


def parse(text: Any, parameters: Sequence[Any] = ()) -> Statement | None:
    """The item that a statement writes; None where it is not understood, or reads.

    Args:
        text: of the statement.
        parameters: the values of its placeholders, as the API has them.
    """
    tokens = list(_tokens(text)) if isinstance(text, str) else []
    if len(tokens) < _COMPARED or tokens[-1].kind == "unknown":
        return None
    verb, second = tokens[0].text.upper(), tokens[1].text.upper()
    if (verb, second) == ("INSERT", "INTO"):
        return _insertion(tokens, parameters)
    if verb == "UPDATE" and tokens[2].text.upper() in ("SET", "REMOVE"):
        return _change(tokens, parameters, table=tokens[1], at=tokens[2].start)
    if (verb, second) == ("DELETE", "FROM") and tokens[3:] and tokens[3].text.upper() == "WHERE":
        return _change(tokens, parameters, table=tokens[2], at=0)
    return None


def index_of(text: Any) -> str:
    """The index that a ``SELECT`` reads, of ``FROM "table"."index"``; empty where it reads none."""
    tokens = _tokens(text) if isinstance(text, str) else iter(())
    if not any(each.kind == "word" and each.text.upper() == "FROM" for each in tokens):
        return ""
    after = list(islice(tokens, _INDEXED))
    if len(after) < _INDEXED or after[1].text != ".":
        return ""
    return after[2].named or ""


def _tokens(text: str) -> Iterator[Token]:
    """The parts of a statement; one that is not known is the last."""
    at = depth = marks = 0
    end = len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            yield Token("unknown", "", at, depth, marks)
            return
        kind, part = found.lastgroup, found[found.lastgroup]
        depth -= kind == "sign" and part in _CLOSING
        yield Token(kind, part, found.start(kind), depth, marks)
        depth += kind == "sign" and part in _OPENING
        marks += kind == "mark"
        at = found.end()


def _insertion(tokens: list[Token], parameters: Sequence[Any]) -> Statement | None:
    table, *rest = tokens[2:]
    if len(rest) < _COMPARED or rest[0].text.upper() != "VALUE" or rest[1].text != "{":
        return None
    if table.named is None or rest[-1].text != "}" or rest[-1].depth:
        return None
    values = {}
    for at, token in enumerate(rest[:-2]):
        if token.depth == 1 and rest[at + 1].text == ":" and (name := token.named) is not None:
            values[name] = _value(rest[at + 2], parameters)
    # An item without attributes has no key: the service refuses it.
    if not values or OURS & values.keys():
        return None
    return Statement(table.named, values, at=rest[2].start, inserts=True)


def _change(
    tokens: list[Token], parameters: Sequence[Any], *, table: Token, at: int
) -> Statement | None:
    words = [each.text.upper() if each.kind == "word" and not each.depth else "" for each in tokens]
    if table.named is None or words.count("WHERE") != 1 or {"OR", "NOT"} & set(words):
        return None
    if any(each.named in OURS for each in tokens):
        return None
    start = words.index("WHERE") + 1
    end = words.index("RETURNING") if "RETURNING" in words else len(tokens)
    values: dict[str, Any] = {}
    condition: list[Token] = []
    for token, word in zip(tokens[start:end], words[start:end], strict=True):
        if word != "AND":
            condition.append(token)
            continue
        values.update(_compared(condition, parameters))
        condition = []
    values.update(_compared(condition, parameters))
    return Statement(table.named, values, deletes=not at, at=at)


def _compared(condition: list[Token], parameters: Sequence[Any]) -> dict[str, Any]:
    """The attribute that a condition compares for equality, with its value."""
    if len(condition) != _COMPARED or condition[1].text != "=":
        return {}
    name = condition[0].named
    return {} if name is None else {name: _value(condition[2], parameters)}


def _value(token: Token, parameters: Sequence[Any]) -> Any:
    """What a token stands for, as the API has it; None where that is no text and no number."""
    if token.kind == "mark":
        return parameters[token.marks] if token.marks < len(parameters) else None
    if token.kind == "text":
        return {"S": token.named}
    return {"N": token.text} if token.kind == "number" else None
