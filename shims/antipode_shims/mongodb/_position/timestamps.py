"""MongoDB positions: BSON timestamps as integers, and the names of the logs that they are in.

A replica set's oplog is ordered by (term, timestamp) as in Raft: one term is the log of one
primary, and never re-issued. What a majority has acknowledged is in the log of every later
primary, so that it is one log for ever, whatever the term.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from bson import Timestamp

_INCREMENT_BITS = 32
_INCREMENT_MASK = 2**_INCREMENT_BITS - 1


class OpTime(NamedTuple):
    """A place in an oplog; compares as the servers compare it.

    Attributes:
        term: of the primary that wrote the entry.
        version: its timestamp, as :func:`version_of` gives it.
    """

    term: int
    version: int

    @classmethod
    def of(cls, document: Any) -> OpTime | None:
        """What ``{ts, t}`` in a reply says; None when it is none."""
        try:
            term, version = int(document["t"]), version_of(document["ts"])
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        return cls(term, version) if term >= 0 else None


def version_of(timestamp: Any) -> int:
    """A BSON timestamp as one integer that is ordered alike: seconds, then increment."""
    return int(timestamp.time) << _INCREMENT_BITS | int(timestamp.inc)


def timestamp_of(version: int) -> Timestamp:
    """The BSON timestamp of *version*."""
    from bson import Timestamp

    return Timestamp(version >> _INCREMENT_BITS, version & _INCREMENT_MASK)


def seconds_of(version: int) -> int:
    """The Unix second in which the position was issued, by its primary's clock."""
    return version >> _INCREMENT_BITS


def log_key(set_name: str, term: int | None) -> str:
    """The log of one term of a replica set; None: of what its majority has acknowledged."""
    return set_name if term is None else f"{set_name}.{term}"


class Log(NamedTuple):
    """A log of the replica set that was asked.

    Attributes:
        term: whose log it is; None for what the majority has acknowledged.
    """

    term: int | None


def log_of(key: str, set_name: str) -> Log | None:
    """The log that *key* names, None when it is none of the set *set_name*.

    The name is known from the server that is asked, so that dots in it are no ambiguity.
    """
    if key == set_name:
        return Log(None)
    prefix, _, term = key.rpartition(".")
    if prefix == set_name and term.isascii() and term.isdecimal():
        return Log(int(term))
    return None
