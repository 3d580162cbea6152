"""The lineage: an immutable set of dependencies with one rule of order (paper section 4.1)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from .grammar import MAX_VERSION, is_unknown
from .write_id import Incomplete, WriteId, check_range, check_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .write_id import Promise, PromiseName

#: How the notes of dry runs and of recorders of histories begin (docs/spec/dry-run.md).
NOTE_KINDS = ("0g", "0h", "0m", "0r", "0v")

#: Where a write lives: integers of one log share a slot, opaque versions have one each.
_Slot = tuple[str, str, str | None]
_Entries = dict[_Slot, WriteId]


def _slot(write: WriteId) -> _Slot:
    version = write.version
    return write.datastore, write.key, version if isinstance(version, str) else None


def _newer(held: WriteId, write: WriteId) -> WriteId:
    """The one of two writes in the same slot that stays: larger version, then newer hour.

    Of equal ones the one that was recorded here, so that it counts as such.
    """
    ours, theirs = held.version, write.version
    if ours == theirs:
        if held.written_hour == write.written_hour:
            return write if held._outside else held
        return held if held.written_hour > write.written_hour else write
    return held if ours > theirs else write  # type: ignore[operator]  # a slot has one type


def _join(entries: _Entries, others: Iterable[tuple[_Slot, WriteId]]) -> None:
    """Put *others* into *entries*, each slot keeping its newest."""
    for slot, write in others:
        held = entries.get(slot)
        if held is None:
            entries[slot] = write
        elif held is not write:
            entries[slot] = _newer(held, write)


def _minted_by(write: WriteId, hour: int) -> WriteId:
    """*write*, which came in a text, written in *hour* at the latest."""
    if write.written_hour <= hour:
        return write
    clamped = replace(write, written_hour=hour)
    object.__setattr__(clamped, "_outside", write._outside)
    return clamped


def _undominated(covering: _Entries, exact: _Entries) -> _Entries:
    """The covering positions that say more than the exact one of their slot.

    Each kind keeps a maximum of its own: one slot would lose exact 10 under covering 20.
    A covering position at or below the exact one adds nothing.
    """
    return {
        slot: write
        for slot, write in covering.items()
        if (held := exact.get(slot)) is None or held.version < write.version  # type: ignore[operator]
    }


def _mark(mark: Incomplete | tuple[str, str]) -> Incomplete:
    subject, reason = mark
    check_text("subject", subject)
    check_text("reason", reason)
    return Incomplete(subject, reason)


class Lineage(Collection[WriteId]):
    """The writes that a request has made or seen.

    Immutable and hashable. ``append``, ``remove``, ``merge`` and ``only`` return a new one;
    ``merge`` is associative, commutative and idempotent over every field.

    A lineage is a *prefix* of its request: branches that still run are not in it.
    """

    __slots__ = (
        "_covering",
        "_exact",
        "_hash",
        "_incomplete",
        "_open_branches",
        "_promises",
        "_text",
        "_unknown",
    )

    def __init__(
        self,
        writes: Iterable[WriteId] = (),
        *,
        incomplete: Iterable[Incomplete | tuple[str, str]] = (),
        promises: Iterable[Promise] = (),
        open_branches: int = 0,
        unknown: Iterable[str] = (),
    ) -> None:
        """Gather *writes* under the rule.

        Args:
            writes: dependencies, in any order, with repetitions.
            incomplete: what is known to be missing, as (datastore or service, reason).
            promises: branches that will still write.
            open_branches: how many branches were running without a promise.
            unknown: items of the wire format that this version does not know, kept verbatim.

        Raises:
            TypeError: a mark is no pair of strings, or the number of branches no int.
            ValueError: something could not be put on the wire.
        """
        exact: _Entries = {}
        covering: _Entries = {}
        for write in writes:
            entries, slot = covering if write.covering else exact, _slot(write)
            held = entries.get(slot)
            entries[slot] = write if held is None else _newer(held, write)
        self._exact = exact
        self._covering = _undominated(covering, exact) if covering else covering
        self._incomplete = frozenset(_mark(mark) for mark in incomplete)
        latest: dict[tuple[str, str], Promise] = {}
        for promise in promises:
            known = latest.get((promise.datastore, promise.id))
            if known is None or known.expires_s < promise.expires_s:
                latest[promise.datastore, promise.id] = promise
        self._promises = frozenset(latest.values())
        if open_branches or type(open_branches) is not int:
            check_range("open_branches", open_branches, MAX_VERSION)
        self._open_branches = open_branches
        self._unknown = frozenset(unknown)
        for item in self._unknown:
            if not is_unknown(item):
                msg = f"not an item of an unknown kind: {item!r}"
                raise ValueError(msg)
        self._hash: int | None = None
        #: Its canonical text, once the codec has made it.
        self._text: str | None = None

    def _with(self, exact: _Entries, covering: _Entries) -> Lineage:
        """A copy with other entries, each kind under the rule already."""
        new = Lineage.__new__(Lineage)
        new._exact = exact
        new._covering = _undominated(covering, exact) if covering else covering
        new._incomplete = self._incomplete
        new._promises = self._promises
        new._open_branches = self._open_branches
        new._unknown = self._unknown
        new._hash = new._text = None
        return new

    @property
    def incomplete(self) -> frozenset[Incomplete]:
        """Whatever is known to be missing, as (datastore or service, reason)."""
        return self._incomplete

    @property
    def promises(self) -> frozenset[Promise]:
        """Branches that will still write."""
        return self._promises

    @property
    def open_branches(self) -> int:
        """How many branches ran on without a promise; the largest number that was merged."""
        return self._open_branches

    @property
    def unknown(self) -> frozenset[str]:
        """Items of the wire format that this version does not know, sent on verbatim."""
        return self._unknown

    @property
    def datastores(self) -> frozenset[str]:
        """The datastores of all writes and promises."""
        writes = {write.datastore for write in self}
        return frozenset(writes.union(promise.datastore for promise in self._promises))

    @property
    def empty(self) -> bool:
        """Whether nothing at all is in it, neither writes nor marks."""
        return not (
            self._exact
            or self._covering
            or self._incomplete
            or self._promises
            or self._open_branches
            or self._unknown
        )

    def append(self, write: WriteId) -> Lineage:
        """This lineage with *write* in it."""
        slot = _slot(write)
        entries = (self._covering if write.covering else self._exact).copy()
        held = entries.get(slot)
        entries[slot] = write if held is None else _newer(held, write)
        if write.covering:
            return self._with(self._exact, entries)
        return self._with(entries, self._covering)

    def remove(self, write: WriteId) -> Lineage:
        """This lineage without the entry of *write*'s datastore, key and version.

        The written hour does not matter, nor whether it is covering. A write that is not there,
        or that a later version replaced, changes nothing.
        """
        slot, version = _slot(write), write.version
        exact, covering = (
            {s: held for s, held in entries.items() if s != slot or held.version != version}
            for entries in (self._exact, self._covering)
        )
        return self._with(exact, covering)

    def merge(self, *others: Lineage) -> Lineage:
        """The dependencies of this lineage and of all *others*."""
        exact, covering = self._exact.copy(), self._covering.copy()
        for other in others:
            _join(exact, other._exact.items())
            if other._covering:
                _join(covering, other._covering.items())
        merged = self._with(exact, covering)
        for other in others:
            merged._join_marks(other)
        return merged

    def _join_marks(self, other: Lineage) -> None:
        """Adopt all but the entries; for a lineage that nobody else has seen yet."""
        if other._incomplete:
            self._incomplete |= other._incomplete
        if other._unknown:
            self._unknown |= other._unknown
        if other._open_branches > self._open_branches:  # noqa: PLR1730 - half the price of max()
            self._open_branches = other._open_branches
        if other._promises and other._promises != self._promises:
            self._promises = Lineage(promises=[*self._promises, *other._promises])._promises

    def only(self, *datastores: str) -> Lineage:
        """The part about *datastores*; marks without a known subject stay."""
        kept = frozenset(datastores)
        exact, covering = (
            {slot: write for slot, write in entries.items() if slot[0] in kept}
            for entries in (self._exact, self._covering)
        )
        new = self._with(exact, covering)
        new._incomplete = frozenset(
            mark for mark in self._incomplete if not mark.subject or mark.subject in kept
        )
        new._promises = frozenset(p for p in self._promises if p.datastore in kept)
        return new

    def marked(self, *marks: Incomplete | tuple[str, str]) -> Lineage:
        """This lineage with *marks* added to ``incomplete``."""
        new = self._with(self._exact, self._covering)
        new._incomplete = self._incomplete.union(map(_mark, marks))
        return new

    def beyond(self, other: Lineage) -> Lineage:
        """What this lineage adds to *other*: merged into *other* it gives the merge of both."""
        exact, covering = (
            {slot: write for slot, write in ours.items() if theirs.get(slot) != write}
            for ours, theirs in ((self._exact, other._exact), (self._covering, other._covering))
        )
        new = self._with(exact, covering)
        new._incomplete = self._incomplete - other._incomplete
        new._promises = self._promises - other._promises
        new._unknown = self._unknown - other._unknown
        if self._open_branches <= other._open_branches:
            new._open_branches = 0
        return new

    def branching(self, open_branches: int) -> Lineage:
        """This lineage with at least *open_branches* branches running."""
        if open_branches <= self._open_branches:
            return self
        new = self._with(self._exact, self._covering)
        new._open_branches = open_branches
        return new

    def received(self, *, hour: int, latest_s: int) -> Lineage:
        """This lineage as it counts for who received it in *hour*: nobody writes in the future.

        Later written hours are that one, and promises expire at *latest_s* at the latest.
        """
        late = max([write.written_hour for write in self], default=0) > hour
        if not late and not any(promise.expires_s > latest_s for promise in self._promises):
            return self
        new = self._with(
            {slot: _minted_by(write, hour) for slot, write in self._exact.items()},
            {slot: _minted_by(write, hour) for slot, write in self._covering.items()},
        )
        new._promises = frozenset(
            each if each.expires_s <= latest_s else replace(each, expires_s=latest_s)
            for each in self._promises
        )
        return new

    @property
    def size(self) -> int:
        """How many items its text has, but for the number of open branches."""
        writes = len(self._exact) + len(self._covering)
        return writes + len(self._incomplete) + len(self._promises) + len(self._unknown)

    def without_unknown(self) -> Lineage:
        """This lineage without the items that this version does not know."""
        new = self._with(self._exact, self._covering)
        new._unknown = frozenset()
        return new

    def __contains__(self, write: object) -> bool:
        """Whether exactly this entry is in it."""
        if not isinstance(write, WriteId):
            return False
        return (self._covering if write.covering else self._exact).get(_slot(write)) == write

    def __iter__(self) -> Iterator[WriteId]:
        """The writes, in no promised order."""
        if not self._covering:
            return iter(self._exact.values())
        return chain(self._exact.values(), self._covering.values())

    def __len__(self) -> int:
        """The number of writes. A lineage of length 0 may still be incomplete."""
        return len(self._exact) + len(self._covering)

    def __eq__(self, other: object) -> bool:
        """Equal in every field; the order in which writes came does not matter."""
        if not isinstance(other, Lineage):
            return NotImplemented
        return (
            self._exact == other._exact
            and self._covering == other._covering
            and self._incomplete == other._incomplete
            and self._promises == other._promises
            and self._open_branches == other._open_branches
            and self._unknown == other._unknown
        )

    def __hash__(self) -> int:
        """Consistent with equality; computed once."""
        if self._hash is None:
            self._hash = hash((frozenset(self), self._incomplete))
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by value."""
        return _restore, (
            tuple(self),
            self._incomplete,
            self._promises,
            self._open_branches,
            self._unknown,
        )

    def __repr__(self) -> str:
        """What it holds, for a person."""
        parts = [f"[{', '.join(sorted(str(write) for write in self))}]"]
        if self._incomplete:
            parts.append(f"incomplete=[{', '.join(sorted(str(m) for m in self._incomplete))}]")
        if self._promises:
            parts.append(f"promises={sorted(p.id for p in self._promises)}")
        if self._open_branches:
            parts.append(f"open_branches={self._open_branches}")
        if self._unknown:
            parts.append(f"unknown={sorted(self._unknown)}")
        return f"Lineage({', '.join(parts)})"


def exact_of(lineage: Lineage, datastore: str) -> list[WriteId]:
    """The exact entries of *datastore* in *lineage*."""
    entries = lineage._exact
    return [w for slot, w in entries.items() if slot[0] == datastore] if entries else []


def with_unknown(lineage: Lineage, items: frozenset[str]) -> Lineage:
    """*lineage* with *items*, well-formed ones, in place of those that this version ignores."""
    new = lineage.without_unknown()
    new._unknown = items
    return new


def without_promises(lineage: Lineage, names: Collection[PromiseName]) -> Lineage:
    """*lineage* without the promises of these *names*, whenever they expire."""
    kept = frozenset(promise for promise in lineage.promises if promise.name not in names)
    if len(kept) == len(lineage.promises):
        return lineage
    new = lineage.marked()
    new._promises = kept
    return new


def without_notes(lineage: Lineage) -> Lineage:
    """*lineage* without what dry runs and recorders of histories note, which is no dependency."""
    items = lineage.unknown
    kept = frozenset(item for item in items if not item.startswith(NOTE_KINDS))
    return lineage if len(kept) == len(items) else with_unknown(lineage, kept)


def _restore(
    writes: tuple[WriteId, ...],
    incomplete: frozenset[Incomplete],
    promises: frozenset[Promise],
    open_branches: int,
    unknown: frozenset[str],
) -> Lineage:
    return Lineage(
        writes,
        incomplete=incomplete,
        promises=promises,
        open_branches=open_branches,
        unknown=unknown,
    )
