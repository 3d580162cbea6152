"""Lineages as numbers, one for each log, of which a server itself keeps the larger."""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING, Any

from antipode import Lineage, WriteId
from antipode.shim import config

if TYPE_CHECKING:
    from collections.abc import Iterable

#: How many positions one write merges as numbers; a longer lineage is one text.
MOST_POSITIONS = 16
#: How many logs one client merges as numbers within a day. Stores have few logs that live; what
#: has a log for each message or object is kept as text, of which a document holds so many.
MOST_LOGS = 64

#: Bytes of the names of all logs of one write; a longer lineage is one text, which is bounded.
_MOST_BYTES = 1_024
_COVERING = "/c"
_LARGEST = 2**63
_DAY_S = 86_400.0
_UNSAFE = re.compile(rb"[^A-Za-z0-9_-]")
_ESCAPED = re.compile(rb"~([0-9a-f]{2})")


class Numbers:
    """What of the lineages of one client is kept as numbers. Thread-safe."""

    def __init__(self) -> None:
        """Know no log yet."""
        self._logs: set[str] = set()
        self._since_s = time.monotonic()
        self._lock = threading.Lock()

    def of(self, lineage: Lineage) -> dict[str, dict[str, Any]] | None:
        """*lineage* as positions by their logs; None where they would not say all of it.

        Nor where some may not leave the process: a text says that they are missing.
        """
        from bson import Int64

        egress = config().egress
        if egress is not None and not lineage.datastores <= egress:
            return None
        writes = list(lineage)
        if len(writes) > MOST_POSITIONS or Lineage(writes) != lineage:
            return None
        numbers: dict[str, dict[str, Any]] = {}
        for write in writes:
            if not isinstance(write.version, int) or write.version >= _LARGEST:
                return None
            numbers[_name(write)] = {"v": Int64(write.version), "h": write.written_hour}
        short = sum(map(len, numbers)) <= _MOST_BYTES
        return numbers if short and self._admit(numbers) else None

    def _admit(self, logs: Iterable[str]) -> bool:
        with self._lock:
            if time.monotonic() - self._since_s > _DAY_S:
                self._logs.clear()
                self._since_s = time.monotonic()
            together = self._logs.union(logs)
            if len(together) > MOST_LOGS:
                return self._logs.issuperset(logs)
            self._logs = together
            return True


def lineage_of(numbers: dict[str, Any]) -> Lineage | None:
    """The lineage of such positions; None where they are none."""
    try:
        return Lineage(_write(name, each) for name, each in numbers.items())
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _name(write: WriteId) -> str:
    """A field name that paths of updates and expressions may hold."""
    covering = _COVERING if write.covering else ""
    return f"{_escaped(write.datastore)}/{_escaped(write.key)}{covering}"


def _write(name: str, number: Any) -> WriteId:
    datastore, key, *covering = name.split("/")
    if covering not in ([], ["c"]):
        raise ValueError(name)
    version, hour = int(number["v"]), int(number["h"])
    return WriteId(_plain(datastore), _plain(key), version, hour, covering=bool(covering))


def _escaped(name: str) -> str:
    return _UNSAFE.sub(lambda one: b"~%02x" % one[0][0], name.encode("utf-8")).decode("ascii")


def _plain(name: str) -> str:
    return _ESCAPED.sub(lambda one: bytes((int(one[1], 16),)), name.encode("ascii")).decode("utf-8")
