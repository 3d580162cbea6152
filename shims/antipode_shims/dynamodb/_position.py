"""Stamps, which are the versions of items, and the names of items in a lineage. No I/O."""

from __future__ import annotations

import base64
import os
import re
import secrets
import threading
import time
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Bits of a stamp below its microseconds: the process, and whether it is of a deletion.
_LOW_BITS = 12
_PROCESSES = 2 ** (_LOW_BITS - 1)
_LONGEST_NUMBER = 38 + 130
#: How much later a stamp may be than the clock here for the next one to be after it.
_MOST_AHEAD_US = 60_000_000
#: Clocks of writers differ by less: of two stamps further apart, the larger is of the later write.
SKEW_US = 1_000_000

#: A deletion that is younger may not have been seen where its item is not there: that which it
#: deleted may have to arrive yet. Items usually reach other regions within a second.
ARRIVES_US = 2_000_000

_REGION = re.compile(r"[a-z0-9-]+")
_TABLE = re.compile(r"[A-Za-z0-9_.-]+")
_ESCAPED = re.compile(r"[%,=]|^[#*]")


def micros_of(stamp: int) -> int:
    """The Unix microsecond of *stamp*, by its writer's clock."""
    return stamp >> _LOW_BITS


def hour_of(stamp: int) -> int:
    """The Unix hour of *stamp*."""
    return micros_of(stamp) // 3_600_000_000


def deletes(stamp: int) -> bool:
    """Whether *stamp* is of a deletion: no item has it."""
    return bool(stamp & 1)


def settled(stamp: int, now_us: int) -> bool:
    """Whether what a write of *stamp* found at home has reached other regions by *now_us*."""
    return now_us - micros_of(stamp) >= ARRIVES_US


def supersedes(later: int, earlier: int) -> bool:
    """Whether *later*, a stamp of the same item, is surely of a later write.

    One process stamps in order. Two clocks agree to a second.
    """
    if later <= earlier:
        return False
    one_process = (later ^ earlier) & (2**_LOW_BITS - 2) == 0
    return one_process or micros_of(later) - micros_of(earlier) > SKEW_US


class Stamper:
    """What stamps the writes of one process: a hybrid clock, which never goes back.

    Args:
        now_us: Unix microseconds.
        process: a number below 2,048 that is this process's; None: a random one.
    """

    def __init__(
        self,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        process: int | None = None,
    ) -> None:
        self._now_us = now_us
        self._lock = threading.Lock()
        self._last_us = 0
        self._process = process
        if process is None:
            self.another_process()

    def another_process(self) -> None:
        """Draw the number again, in a child that a fork made."""
        self._process = secrets.randbelow(_PROCESSES)
        self._lock = threading.Lock()

    def next(self, *, deleted: bool = False, after: int = 0) -> int:
        """A stamp later than every one before, and than *after*, which is of a cause.

        An *after* that is more than a minute ahead of the clock counts for nothing: one clock that
        is wrong is not to set all others.
        """
        now_us = self._now_us()
        seen_us = micros_of(after)
        if seen_us > now_us + _MOST_AHEAD_US:
            seen_us = 0
        with self._lock:
            us = max(now_us, self._last_us + 1, seen_us + 1)
            self._last_us = us
            return us << _LOW_BITS | (self._process or 0) << 1 | deleted


STAMPER = Stamper()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=STAMPER.another_process)


class Item(NamedTuple):
    """An item by its primary key.

    Attributes:
        table: the table's name.
        key: the attributes of the key, sorted by their names: name, type and value, as the API has
            them, but numbers in their shortest form and bytes in Base64.
    """

    table: str
    key: tuple[tuple[str, str, str], ...]

    @property
    def wire(self) -> dict[str, dict[str, Any]]:
        """The key as a request has it."""
        return {
            name: {kind: base64.b64decode(value) if kind == "B" else value}
            for name, kind, value in self.key
        }

    def named(self, region: str) -> str:
        """Its name in a lineage, as something that was written in *region*."""
        pairs = (f"{_escape(name)}={_value_text(kind, value)}" for name, kind, value in self.key)
        return f"{self.table}/{','.join(pairs)}@{region}"


class Place(NamedTuple):
    """What the key of a write names.

    Attributes:
        item: the item.
        region: where it was written.
    """

    item: Item
    region: str

    @classmethod
    def parse(cls, key: str) -> Place | None:
        """The item and the region of a write's *key*; None where it names none."""
        rest, _, region = key.rpartition("@")
        table, _, pairs = rest.partition("/")
        if not (_TABLE.fullmatch(table) and _REGION.fullmatch(region) and pairs):
            return None
        found = [_attribute(pair) for pair in pairs.split(",")]
        attributes = tuple(each for each in found if each is not None)
        return cls(Item(table, attributes), region) if len(attributes) == len(found) else None


def item_of(table: str, values: Mapping[str, Any], names: object = None) -> Item | None:
    """The item of *table* whose key has these *values*.

    Args:
        table: its name, or its ARN.
        values: attributes by their names, as the API or as boto3's resources have them.
        names: of the key's attributes among *values*; None: all.

    Returns:
        None where one of them is missing or is no value of a key.
    """
    chosen: Any = values if names is None else names
    found: list[tuple[str, str, str]] = []
    for name in sorted(chosen):
        typed = _typed(values.get(name))
        if typed is None:
            return None
        found.append((name, *typed))
    return Item(table_name(table), tuple(found)) if found else None


def table_name(table: str) -> str:
    """The name of a table that may be given by its ARN."""
    return table.rpartition(":table/")[2].partition("/")[0]


def _typed(value: Any) -> tuple[str, str] | None:
    """Type and value of an attribute of a key."""
    if isinstance(value, dict) and len(value) == 1:
        ((kind, value),) = value.items()
    else:
        kind = _kind_of(value)
    if kind == "S" and isinstance(value, str):
        return "S", value
    if kind == "N":
        return _number(value)
    if kind == "B":
        raw = value if isinstance(value, (bytes, bytearray)) else getattr(value, "value", None)
        return None if raw is None else ("B", base64.b64encode(bytes(raw)).decode())
    return None


def _kind_of(value: Any) -> str:
    if isinstance(value, str):
        return "S"
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return "N"
    return "B"


def _number(value: Any) -> tuple[str, str] | None:
    """A number in its shortest form: two that are equal are one key."""
    try:
        number = Decimal(value)
    except (InvalidOperation, TypeError, ValueError):
        return None
    if not number.is_finite() or abs(number.adjusted()) > _LONGEST_NUMBER:
        return None
    text = format(number, "f")  # Exact: normalize() would round to the context's digits.
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "N", text if number else "0"


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def _value_text(kind: str, value: str) -> str:
    if kind == "N":
        return f"#{value}"
    if kind == "B":
        return "*" + value.rstrip("=").replace("+", "-").replace("/", "_")
    return _escape(value)


def _attribute(pair: str) -> tuple[str, str, str] | None:
    name, equals, text = pair.partition("=")
    if not (name and equals):
        return None
    if text.startswith("#"):
        typed = _number(text[1:])
        return None if typed is None else (unquote(name), *typed)
    if text.startswith("*"):
        padded = text[1:].replace("-", "+").replace("_", "/") + "=" * (-(len(text) - 1) % 4)
        return unquote(name), "B", padded
    return unquote(name), "S", unquote(text)
