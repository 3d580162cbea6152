"""Which tables a statement names, by its text alone. Pure.

Only to know whether something has to be set before it, and what it read that its result does not
show: what that shows, the server itself describes.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from antipode_shims._sql.texts import LONGEST, LONGEST_KEPT, Kept
from antipode_shims.postgresql._hidden import unhidden

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The table that a statement writes to.
_TARGET = re.compile(
    r"\s*(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM|MERGE\s+INTO)\s+(?:ONLY\s+)?[\w$.\"\x80-\U0010ffff]+",
    re.IGNORECASE,
)
#: An insert that returns nothing but what it has written, and that is alone.
_OWN = re.compile(
    r"\s*INSERT\b(?!.*(?:\b(?:SELECT|TABLE|CONFLICT)\b|;\s*\S))", re.IGNORECASE | re.DOTALL
)
#: It ends what a session was told, all of it or perhaps.
_FORGETS = re.compile(r"\bRESET\b|\bDISCARD\b|antipode\.lineage", re.IGNORECASE)
_BACK = re.compile(r"\bROLLBACK\b", re.IGNORECASE)


class Mentions(NamedTuple):
    """What a text names of some tables.

    Attributes:
        all: how often it names each of them, by the names that are sought; not as what qualifies a
            column.
        sources: the same, without the table that it writes to.
        own: whether it returns only what it has written itself.
        forgets: whether the session's setting may be another after it.
        back: whether it may roll back to a savepoint.
    """

    all: Mapping[str, int]
    sources: Mapping[str, int]
    own: bool
    forgets: bool
    back: bool


_kept: Kept[tuple[str, tuple[str, ...]], Mentions] = Kept()


def mentions(sql: str, names: tuple[str, ...]) -> Mentions:
    """What *sql* says of *names*, each ``table`` or ``schema.table``."""
    if len(sql) > LONGEST:
        every = dict.fromkeys(names, 1)
        return Mentions(every, every, own=False, forgets=True, back=True)
    plain = unhidden(sql, _blank)
    if plain is None:
        return _plainly(sql, names)  # One name too many costs little.
    found = _kept.get((plain, names))
    if found is not None:
        return found
    found = _plainly(plain, names)
    return found if len(plain) > LONGEST_KEPT else _kept.keep((plain, names), found)


def _plainly(plain: str, names: tuple[str, ...]) -> Mentions:
    every = _counted(plain, names)
    target = _TARGET.match(plain)
    return Mentions(
        every,
        _counted(plain[target.end() :], names) if target is not None else every,
        _OWN.match(plain) is not None,
        _FORGETS.search(plain) is not None,
        _BACK.search(plain) is not None,
    )


def _blank(hidden: str) -> str:
    """Texts and comments name nothing; names and the bodies of functions do."""
    if hidden[0] in '"$':
        return hidden
    return " " if hidden[:2] in ("--", "/*") else "''"


def _counted(plain: str, names: tuple[str, ...]) -> Mapping[str, int]:
    found = {name: len(_pattern(name).findall(plain)) for name in names}
    return {name: times for name, times in found.items() if times}


@lru_cache(maxsize=512)
def _pattern(name: str) -> re.Pattern[str]:
    """Finds a table's name; not before a dot, nor where rows of it are locked."""
    last = re.escape(name.rpartition(".")[2])
    return re.compile(
        rf"(?<![\w$\x80-\U0010ffff])(?<!\bOF\s)\"?{last}\"?(?![\w$\"\x80-\U0010ffff]|\s*\.)",
        re.IGNORECASE,
    )
