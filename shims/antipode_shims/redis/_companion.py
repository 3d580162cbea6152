"""The companion key: a value's lineage beside it, and how to tell that it is still its own.

``<digest>|<lineage>`` belongs to the value with that digest, ``-|<lineage>`` to a deletion. A
plain client that overwrites or deletes the value leaves a companion that no longer fits.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from enum import Enum
from hashlib import blake2b

from antipode import Lineage, LineageDecodeError, deserialize

_DELETED = b"-"
_DIGEST_BYTES = 9


class Match(Enum):
    """How a value and the companion beside it go together; the values are metric names."""

    OWN = "own"
    ABSENT = "companion_absent"
    FOREIGN = "foreign"
    UNREADABLE = "unreadable"


def companion_of(key: str | bytes, prefix: str) -> str | bytes:
    """The companion's key."""
    return prefix.encode() + key if isinstance(key, bytes) else prefix + key


def digest(value: bytes) -> bytes:
    """Twelve characters that tell a value from an overwriting one."""
    return urlsafe_b64encode(blake2b(value, digest_size=_DIGEST_BYTES).digest())


def pack(value: bytes | None, lineage: str) -> bytes:
    """The companion of *value*, None for a deletion."""
    mark = _DELETED if value is None else digest(value)
    return mark + b"|" + lineage.encode("ascii")


def unpack(value: bytes | None, companion: object, datastore: str) -> tuple[Lineage, Match]:
    """The lineage stored for *value*, and whether the companion is its own.

    Foreign and absent companions give an empty lineage: nothing is known about who wrote the
    value. An unreadable one gives a lineage that says so.
    """
    if companion is None:
        return Lineage(), Match.OWN if value is None else Match.ABSENT
    mark, bar, text = companion.partition(b"|") if isinstance(companion, bytes) else (b"", b"", b"")
    if bar and mark != (_DELETED if value is None else digest(value)):
        return Lineage(), Match.FOREIGN
    try:
        if bar:
            return deserialize(text.decode("ascii")), Match.OWN
    except (LineageDecodeError, UnicodeDecodeError):
        pass  # Said below, as for a companion that is none.
    return Lineage(incomplete=[(datastore, "unreadable")]), Match.UNREADABLE
