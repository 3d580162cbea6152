"""The companion key: a value's stored lineage, and how to know that it is still its own.

``<digest>|<lineage>`` belongs to the string with that digest, ``~|<lineage>`` to a value that is no
string, ``-|<lineage>`` to a deletion. A plain client that overwrites or deletes the value leaves a
companion that no longer fits.
"""

from __future__ import annotations

from enum import Enum
from hashlib import sha1

from antipode import Lineage, LineageDecodeError, deserialize
from antipode.shim import unlabelled

_DELETED = b"-"
_OTHER = b"~"
_DIGITS = 16


class Match(Enum):
    """How a value and its companion go together; the values are metric names."""

    OWN = "own"
    ABSENT = "companion_absent"
    FOREIGN = "foreign"
    UNREADABLE = "unreadable"


class Shown(Enum):
    """What a reply shows of a value that it does not give as a whole."""

    SOME = "some"
    NONE = "none"  # The key is not there, or nothing of it was asked for that is.


def companion_of(key: str | bytes, prefix: str) -> str | bytes:
    """The companion's key."""
    return prefix.encode() + key if isinstance(key, bytes) else prefix + key


def digest(value: bytes) -> bytes:
    """Characters that identify a string: the script's ``redis.sha1hex``."""
    return sha1(value, usedforsecurity=False).hexdigest()[:_DIGITS].encode()


def pack(value: bytes | None, lineage: str) -> bytes:
    """The companion of the string *value*, None for a deletion."""
    mark = _DELETED if value is None else digest(value)
    return mark + b"|" + lineage.encode("ascii")


def unpack(value: bytes | Shown | None, companion: object, datastore: str) -> tuple[Lineage, Match]:
    """The lineage stored for *value*, and whether the companion is its own.

    Foreign and absent companions give an empty lineage: nothing is known about who wrote the
    value. An unreadable one gives a lineage that says so.

    Args:
        value: the whole string, None where the key is not there, or what is known of it.
        companion: what is stored with it; None for nothing.
        datastore: for what is unreadable.
    """
    if companion is None:
        nothing = value is None or value is Shown.NONE
        return Lineage(), Match.OWN if nothing else Match.ABSENT
    mark, bar, text = companion.partition(b"|") if isinstance(companion, bytes) else (b"", b"", b"")
    if bar and not _fits(value, mark):
        return Lineage(), Match.FOREIGN
    try:
        if bar:
            return unlabelled(deserialize(text.decode("ascii"))), Match.OWN
    except (LineageDecodeError, UnicodeDecodeError):
        pass  # Said below, as for a companion that is none.
    return Lineage(incomplete=[(datastore, "unreadable")]), Match.UNREADABLE


def _fits(value: bytes | Shown | None, mark: bytes) -> bool:
    if value is Shown.NONE:
        return True  # As a field that is not in a hash that is.
    if value is Shown.SOME:
        return mark != _DELETED
    if value is None or isinstance(value, Shown):
        return mark == _DELETED
    return mark == digest(value)
