"""What stays of a lineage that is too large: docs/spec/lineage-format.md, Bounded text."""

from __future__ import annotations

import sys
from binascii import crc32
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from .codec import (
    encode_items,
    encode_mark,
    encode_promise,
    encode_write,
    join,
    may_be_dependency,
    newest_hour,
)
from .grammar import MAX_ITEMS
from .lineage import Lineage
from .write_id import Incomplete, Promise, WriteId

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_SOMETHING = Incomplete("", "size")
#: Items that a scope holds, and those that stay of it where it would hold more.
MOST_HELD = MAX_ITEMS
LEFT = 3_072
#: The part of a bound that marks may take, before all of one reason become one.
_MARKS_PART = 4


class Shortened(NamedTuple):
    """What stays, and the datastores that lost entries; empty for what nobody can name."""

    lineage: Lineage
    dropped: frozenset[str]


class _Part(NamedTuple):
    """Something that may be dropped, and the mark it leaves then; None where it needs none."""

    mark: Incomplete | None
    item: str
    what: WriteId | Promise | str


class _Marks:
    """The marks of a text that is made shorter. What cannot be named singly is named together."""

    def __init__(self, marks: Collection[Incomplete], most_chars: int, most: int) -> None:
        self.held: set[Incomplete] = set()
        self.chars = 0
        self.merged = False
        self._most_chars, self._most = most_chars, most
        self._take(marks)

    def _take(self, marks: Collection[Incomplete]) -> None:
        for mark in marks:
            self.add(mark)

    def add(self, mark: Incomplete) -> None:
        """Add *mark*, of the empty subject once they are merged."""
        if self.merged:
            mark = Incomplete("", mark.reason)
        if mark not in self.held:
            self.held.add(mark)
            self.chars += len(encode_mark(mark)) + 1

    @property
    def crowding(self) -> bool:
        """Whether they take room of entries that would say more."""
        return not self.merged and (self.chars > self._most_chars or len(self.held) > self._most)

    def merge(self) -> None:
        """Let those of one reason be one, of the empty subject, and all that come as well."""
        held, self.held, self.chars, self.merged = self.held, set(), 0, True
        self._take(held)


def shortened(lineage: Lineage, room: int, most: int) -> Shortened:
    """What stays of *lineage* in a text of at most *room* characters and *most* items.

    One mark alone where nothing else fits; that may be longer than *room*.
    """
    newest_h = newest_hour(lineage)
    marks = _Marks(lineage.incomplete, room // _MARKS_PART, most // _MARKS_PART)
    items = encode_items(lineage, newest_h)
    room -= len(join(newest_h, items)) - marks.chars
    most -= len(items) - len(marks.held)
    parts = _ranked(lineage, newest_h)
    dropped: set[str] = set()
    while marks.chars > room or len(marks.held) > most:
        if not parts or (marks.crowding and parts[-1].mark):
            if marks.merged:
                dropped |= {mark.subject for mark in lineage.incomplete}
                return Shortened(Lineage(incomplete=[_SOMETHING]), frozenset(dropped))
            marks.merge()
            continue
        mark, item, _ = parts.pop()
        room, most = room + len(item) + 1, most + 1
        if mark is not None:
            dropped.add(mark.subject)
            marks.add(mark)
    return Shortened(_rest(lineage, parts, marks.held), frozenset(dropped))


def holdable(lineage: Lineage) -> Shortened:
    """What a scope keeps of *lineage*: merges without end must not take memory without end.

    It is shortened by more than it must, so that this does not happen with each item again.
    """
    if lineage.size <= MOST_HELD:
        return Shortened(lineage, frozenset())
    # The item of the open branches is not one of these.
    return shortened(lineage, sys.maxsize, LEFT + bool(lineage.open_branches))


def _rest(lineage: Lineage, parts: list[_Part], marks: set[Incomplete]) -> Lineage:
    """What is left of *lineage*. Its header may be older: its text is no longer for that."""
    return Lineage(
        (part.what for part in parts if isinstance(part.what, WriteId)),
        incomplete=marks,
        promises=(part.what for part in parts if isinstance(part.what, Promise)),
        open_branches=lineage.open_branches,
        unknown=(part.what for part in parts if isinstance(part.what, str)),
    )


def _ranked(lineage: Lineage, newest_h: int) -> list[_Part]:
    """What may be dropped, last first: the order is the same in every language."""
    promises = [
        _Part(Incomplete(p.datastore, "promise"), encode_promise(p), p) for p in lineage.promises
    ]
    promises.sort(key=lambda part: part.item)
    others = sorted(lineage.unknown)
    unknown = [_Part(_SOMETHING, item, item) for item in others if may_be_dependency(item)]
    harmless = [_Part(None, item, item) for item in others if not may_be_dependency(item)]
    return [*promises, *_ranked_writes(lineage, newest_h), *unknown, *harmless]


def _ranked_writes(lineage: Lineage, newest_h: int) -> Iterator[_Part]:
    """The writes; of those that are equally worth keeping, datastores lose one each in turn."""
    alike: dict[tuple[bool, bool, int, str], list[tuple[int, str, WriteId]]] = defaultdict(list)
    for write in lineage:
        item = encode_write(write, newest_h)
        worth = write.covering, write._outside, -write.written_hour, write.datastore
        alike[worth].append((crc32(item.encode()), item, write))
    ranked = [
        (*worth[:-1], turn, *entry)
        for worth, entries in alike.items()
        for turn, entry in enumerate(sorted(entries, key=lambda each: each[:2]))
    ]
    ranked.sort(key=lambda each: each[:-1])
    return (_Part(Incomplete(write.datastore, "size"), item, write) for *_, item, write in ranked)
