"""Which keys a covered command names, and what becomes of each that it writes.

Static tables, as those of :mod:`.._commands`; from ``COMMAND`` of Redis 7.0 and the manual of
Redis 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from antipode_shims.redis._commands import name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_ALL = frozenset(
    """
    DEL EXISTS MGET PFCOUNT PFMERGE SDIFF SDIFFSTORE SINTER SINTERSTORE SUNION SUNIONSTORE TOUCH
    UNLINK
    """.split()  # noqa: SIM905 - a table that is read by eye
)
_TWO = frozenset(
    """
    BLMOVE BRPOPLPUSH COPY GEOSEARCHSTORE LCS LMOVE RENAME RENAMENX RPOPLPUSH SMOVE ZRANGESTORE
    """.split()  # noqa: SIM905 - a table that is read by eye
)
_PAIRS = frozenset({"MSET", "MSETNX"})
_ALL_BUT_LAST = frozenset({"BLPOP", "BRPOP", "BZPOPMAX", "BZPOPMIN"})
#: How many keys follow is said by the word at this place.
_COUNTED = {
    **dict.fromkeys(("LMPOP", "SINTERCARD", "ZDIFF", "ZINTER", "ZINTERCARD", "ZMPOP", "ZUNION"), 1),
    **dict.fromkeys(("BLMPOP", "BZMPOP", "EVALSHA_RO", "EVAL_RO", "FCALL_RO"), 2),
    **dict.fromkeys(("ZDIFFSTORE", "ZINTERSTORE", "ZUNIONSTORE"), 2),
}
_KEYLESS = frozenset({"DBSIZE", "FLUSHALL", "FLUSHDB", "KEYS", "RANDOMKEY", "SCAN", "SWAPDB"})
#: Writes whose first key is made from the others.
_MADE = frozenset(
    """
    BITOP GEOSEARCHSTORE PFMERGE SDIFFSTORE SINTERSTORE SUNIONSTORE ZDIFFSTORE ZINTERSTORE
    ZRANGESTORE ZUNIONSTORE
    """.split()  # noqa: SIM905 - a table that is read by eye
)
_MOVED = frozenset({"BLMOVE", "BRPOPLPUSH", "LMOVE", "RPOPLPUSH", "SMOVE"})
_DELETED = frozenset({"DEL", "DELEX", "GETDEL", "MOVE", "UNLINK"})
_STORING = frozenset({"GEORADIUS", "GEORADIUSBYMEMBER", "SORT"})
#: Writes whose replies show what was there.
SHOWING = frozenset(
    """
    BITFIELD BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN DECR DECRBY GEORADIUS
    GEORADIUSBYMEMBER GETDEL GETEX GETSET HGETDEL HGETEX HINCRBY HINCRBYFLOAT INCR INCRBY
    INCRBYFLOAT LMOVE LMPOP LPOP MSETNX RENAMENX RPOP RPOPLPUSH SETNX SORT SPOP XAUTOCLAIM XCLAIM
    XREADGROUP ZINCRBY ZMPOP ZPOPMAX ZPOPMIN
    """.split()  # noqa: SIM905 - a table that is read by eye
)
#: Writes that wait on the server for what comes.
_BLOCKING = frozenset(
    {"BLMOVE", "BLMPOP", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZMPOP", "BZPOPMAX", "BZPOPMIN"}
)


class Mode(Enum):
    """What becomes of the stored lineage of a written key; the values go to the script."""

    MERGE = "m"
    DELETE = "d"
    FROM = "f"  # Replaced by that of the one source, where the key now has its string.
    EQUAL = "e"  # Replaced where the key now has the value that was written.


@dataclass(frozen=True, slots=True)
class Target:
    """A key that a command writes."""

    key: Any
    mode: Mode = Mode.MERGE
    sources: tuple[Any, ...] = ()


def words_of(args: Sequence[Any]) -> Sequence[Any]:
    """A command with its name in one word each, as it goes over the wire."""
    first = args[0]
    if isinstance(first, str) and " " in first:
        return [*first.split(), *args[1:]]
    return args


def upper(word: Any) -> str:
    """A word of a command in capitals."""
    text = word.decode("latin-1") if isinstance(word, (bytes, bytearray)) else str(word)
    return text.upper()


def blocks(name: str, words: Sequence[Any]) -> bool:
    """Whether a command may wait on the server."""
    if name in ("XREAD", "XREADGROUP"):
        return "BLOCK" in map(upper, words[1 : _streams(words)])
    return name in _BLOCKING


def keys_of(args: Sequence[Any]) -> Sequence[Any]:  # noqa: PLR0911 - one for each form
    """The keys that a covered command names; none where it goes by all, or is malformed."""
    words, name = words_of(args), name_of(args)
    if name in _KEYLESS:
        return ()
    if name in _ALL:
        return words[1:]
    if name in _TWO:
        return words[1:3]
    if name in _PAIRS:
        return words[1::2]
    if name in _ALL_BUT_LAST:
        return words[1:-1]
    if name in _COUNTED or name == "MSETEX":
        return _counted(name, words)
    if name == "BITOP":
        return words[2:]
    if name in ("XREAD", "XREADGROUP"):
        at = _streams(words) + 1
        return words[at : at + (len(words) - at) // 2]
    if name in _STORING:
        return [*words[1:2], *_stored(words)]
    first = 1 + name.count(" ")
    return words[first : first + 1]


def _streams(words: Sequence[Any]) -> int:
    return next((at for at, word in enumerate(words) if upper(word) == "STREAMS"), len(words))


def _counted(name: str, words: Sequence[Any]) -> Sequence[Any]:
    at = _COUNTED.get(name, 1)
    try:
        number = int(words[at])
    except (IndexError, ValueError):
        return ()
    if name == "MSETEX":
        return words[2 : 2 + 2 * number : 2]
    made = words[1:2] if name in _MADE else ()
    return [*made, *words[at + 1 : at + 1 + number]]


def _stored(words: Sequence[Any]) -> Sequence[Any]:
    return [
        words[at + 1]
        for at in range(2, len(words) - 1)
        if upper(words[at]) in ("STORE", "STOREDIST")
    ]


def targets_of(args: Sequence[Any]) -> list[Target]:
    """What a covered write writes, in the order in which lineages are to be moved."""
    name, keys = name_of(args), list(keys_of(args))
    if name in _DELETED:
        return [Target(key, Mode.DELETE) for key in keys]
    if name == "GETSET":
        return [Target(keys[0], Mode.EQUAL)] if keys else []
    if name in _STORING and len(keys) > 1:
        return [Target(key, sources=(keys[0],)) for key in keys[1:]]
    if name in _MADE and keys:
        return [Target(keys[0], sources=tuple(keys[1:]))]
    if len(keys) == 2:  # noqa: PLR2004 - from one to the other
        return _between(name, keys[0], keys[1], set(map(upper, args[3:])))
    return [Target(key) for key in keys]


def _between(name: str, source: Any, target: Any, options: set[str]) -> list[Target]:
    if name in _MOVED:
        return [Target(target, sources=(source,)), Target(source)]
    if name in ("RENAME", "RENAMENX"):
        mode = Mode.FROM if name == "RENAME" else Mode.MERGE
        return [Target(target, mode, (source,)), Target(source, Mode.DELETE)]
    if name == "COPY":
        mode = Mode.FROM if "REPLACE" in options else Mode.MERGE
        return [] if "DB" in options else [Target(target, mode, (source,))]
    return [Target(source), Target(target)]
