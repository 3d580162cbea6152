"""A value is visible before its position is: what a read returns covers what it showed anyway.

One writer, and a reader in each region who looks as fast as he can, so that many of his looks fall
into the moment in which a write becomes visible. What he was told is compared with the position
that the writer was given for that very write, once everything is over.
"""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import antipode
from antipode import Lineage, WriteId
from tests.end_to_end._xcy_stores import KEEPERS, TIMEOUT_S, at_once, opened, over

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOR_S = 1.5
#: Looks that make the claim worth something.
FEWEST = 15
#: How many values are written before the first of them is deleted.
AHEAD = 5
STORES = pytest.mark.parametrize("store", over(*KEEPERS), indirect=True)


class Look(NamedTuple):
    """What one read returned of the write of that number."""

    number: int
    lineage: Lineage


class Writer:
    """Writes for a while and until enough was seen, and remembers the position of each write.

    Attributes:
        looks: what was seen at home, and in the other region.
        positions: of the writes, by their numbers.
        number: of the last write that is done.
        done: set when no more come.
    """

    def __init__(self, store: Any, write: Callable[[int], Lineage]) -> None:
        self._store = store
        self._write = write
        self.looks: tuple[list[Look], list[Look]] = ([], [])
        self.positions: dict[int, WriteId] = {}
        self.number = -1
        self.done = threading.Event()

    def run(self) -> None:
        started_s = time.monotonic()
        try:
            for number in itertools.count():
                with antipode.scope():
                    (self.positions[number],) = self._write(number).only(self._store.name)
                self.number = number
                passed_s = time.monotonic() - started_s
                if passed_s > (FOR_S if min(map(len, self.looks)) >= FEWEST else TIMEOUT_S):
                    break
        finally:
            self.done.set()

    def short(self) -> list[Look]:
        """The looks whose lineage does not cover the write, or lacks what was stored with it.

        There are enough of them in each region to make this worth something.
        """
        assert min(map(len, self.looks)) >= FEWEST
        return [
            look
            for look in itertools.chain(*self.looks)
            if cause(look.number) not in look.lineage
            or not self._store.covers(look.lineage, self.positions[look.number])
        ]


def cause(number: int) -> WriteId:
    """What the write of that number depends on, in another store."""
    return WriteId("elsewhere", "log", number, 490_000)


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Iterator[Any]:
    with opened(request, {"posts": request.param[0]}) as (made,):
        yield made


@pytest.fixture
def key() -> str:
    return f"race-{uuid.uuid4().hex}"


@STORES
def test_position_covers_value(store: Any, key: str) -> None:
    """Whoever sees a value waits for its write, and has the lineage of that write and no other."""

    def write(number: int) -> Lineage:
        written: Lineage = store.put(key, str(number).encode(), Lineage([cause(number)]))
        return written

    writer = Writer(store, write)

    def looking(read: Callable[[str], Any], looks: list[Look]) -> Callable[[], None]:
        def look() -> None:
            while not writer.done.is_set():
                with antipode.scope():
                    value, lineage = read(key)
                if value is not None:
                    looks.append(Look(int(value), lineage))

        return look

    at_home, away = writer.looks
    at_once(writer.run, looking(store.get_at_home, at_home), looking(store.get, away))
    assert not writer.short()


@STORES
def test_position_covers_absence(store: Any, key: str) -> None:
    """Whoever sees that something is gone waits for its deletion, and for what that depended on."""
    name = (key + "-{}").format

    def write(number: int) -> Lineage:
        with antipode.scope():
            store.put(name(number + AHEAD), b"1")
        deleted: Lineage = store.delete(name(number), Lineage([cause(number)]))
        return deleted

    writer = Writer(store, write)
    with antipode.scope():
        for number in range(AHEAD):
            store.put(name(number), b"1")

    def looking(read: Callable[[str], Any], looks: list[Look]) -> Callable[[], None]:
        def look() -> None:
            number, there = 0, False
            while not writer.done.is_set():
                with antipode.scope():
                    value, lineage = read(name(number))
                if there and value is None:
                    looks.append(Look(number, lineage))
                there = value is not None
                if not there:  # It is gone, or has not come yet.
                    number = writer.number + 2

        return look

    at_home, away = writer.looks
    at_once(writer.run, looking(store.get_at_home, at_home), looking(store.get, away))
    assert not writer.short()
