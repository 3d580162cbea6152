"""Which stored items a lineage passes, as a pattern for the server. Pure.

A position of a log stands for all before it, and a row is updated again and again for causes that
move along a few logs: what merges there should be one item for each log. The server cannot compare
lineages, but replaces by regular expressions; so the writer sends, with its lineage, a pattern
that finds the items that need not be kept where this lineage is: earlier or equal positions of the
same logs, and all else that it says word for word. What the expressions of MariaDB, MySQL and
PostgreSQL share is enough, and no backslash is in them, which SQL modes would read differently.

Of equal positions the writer's hour stays; the other's went with an item that said the same.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_WRITES: Final = frozenset("urkURK")
_AGE: Final = "(?:[0-9a-z]*-)?"
_DIGIT: Final = "[0-9a-z]"
#: Begins an item that carries a text of another version.
CARRIED: Final = "~z"
#: A longer pattern leaves items out: MariaDB's library compiles none to more than 65,535 bytes, a
#: third of which are these, and an update must not fail for the sake of its lineage.
_LONGEST: Final = 16_000


def superseded(text: str) -> str:
    """The pattern for the items that need not be kept where *text* is; empty if there are none.

    Args:
        text: a lineage of format version 1; only in such texts the pattern may be used, and in
            none that carries a text of another version, whose parts resemble items.
    """
    if CARRIED in text:
        return ""
    found: list[str] = []
    #: Of each head, a kind and a datastore: the logs, and their positions with them.
    heads: dict[str, tuple[list[str], list[str]]] = {}
    size = 0
    for item in text.split("~")[1:]:
        head, log, position = _parts(item)
        size += len(head) + len(log) + len(position)
        if size > _LONGEST:
            break
        if head:
            logs, positions = heads.setdefault(head, ([], []))
            logs.append(log)
            positions.append(position)
        else:
            found.append(position)
    found += [
        f"{head}[.](?=[^.]*[.](?:{'|'.join(logs)})(?:[~,]|$))(?:{'|'.join(positions)})"
        for head, (logs, positions) in heads.items()
    ]
    return f"~(?:{'|'.join(found)})(?=[~,]|$)" if found else ""


def _parts(item: str) -> tuple[str, str, str]:
    """The head of a write's item, its log, and what finds its positions; else the item alone.

    The server searches for the logs first, though they come last: of a log that is none of them it
    would try all positions, each digit by digit.
    """
    if item[0] not in _WRITES:
        return "", "", _literal(item)
    head, stamp, key = item.split(".", 2)
    if stamp[0] != "_" and "-" in stamp:
        stamp = stamp.partition("-")[2]
    log = _literal(key)
    version = stamp if stamp[0] == "_" else _at_most(stamp)
    return head, log, f"{_AGE}{version}[.]{log}"


def _literal(text: str) -> str:
    return text.replace(".", "[.]")


@lru_cache(maxsize=1024)
def _at_most(number: str) -> str:
    """Finds the numbers in base 36 up to *number*; they have no leading zeros."""
    rest = len(number) - 1
    smaller = [f"{_DIGIT}{{1,{rest}}}"] if rest else []
    for at, digit in enumerate(number):
        if digit != "0":
            behind = f"{_DIGIT}{{{rest - at}}}" if at < rest else ""
            smaller.append(number[:at] + _below(digit) + behind)
    return f"(?:{'|'.join([*smaller, number])})"


def _below(digit: str) -> str:
    last = chr(ord(digit) - 1)
    return f"[0-{last}]" if digit <= "9" else "[0-9]" if digit == "a" else f"[0-9a-{last}]"
