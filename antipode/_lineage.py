"""The lineage: an immutable set of dependencies with one rule of order (paper section 4.1)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from ._write_id import MAX_VERSION, Incomplete, Promise, WriteId, check_range, check_text

#: An item of no kind that this version gives a meaning (docs/spec/lineage-format.md).
_UNKNOWN_ITEM = re.compile(r"[A-HIJL-QSTV-Za-gjl-nqstv-z0-9._-][A-Za-z0-9._-]*")

_Slot = tuple[str, str, bool, str | None]


def _newer(held: WriteId, write: WriteId) -> WriteId:
    """The one of two writes in the same slot that stays: larger version, then newer hour."""
    ours, theirs = held.version, write.version
    if ours == theirs:
        return held if held.minted_h >= write.minted_h else write
    return held if ours > theirs else write  # type: ignore[operator]  # a slot has one type


def _dominates(exact: WriteId, covering: WriteId) -> bool:
    """Whether waiting for *exact* already waits for *covering* of the same slot."""
    return exact.version >= covering.version  # type: ignore[operator]  # a slot has one type


def _add(entries: dict[_Slot, WriteId], write: WriteId) -> None:
    """Put *write* in, by the rule, so that no entry of *entries* implies another.

    Exact and covering positions keep a maximum each: one slot would lose exact 10 under
    covering 20. A covering position at or below the exact one adds nothing and is dropped.
    """
    version, covering = write.version, write.covering
    opaque = version if isinstance(version, str) else None
    slot = (write.datastore, write.key, covering, opaque)
    held = entries.get(slot)
    if held is write:
        return
    if held is not None:
        write = _newer(held, write)
    other_slot = (write.datastore, write.key, not covering, opaque)
    other = entries.get(other_slot)
    if other is None:
        entries[slot] = write
    elif not covering:
        entries[slot] = write
        if _dominates(write, other):
            del entries[other_slot]
    elif not _dominates(other, write):
        entries[slot] = write


def _slot(write: WriteId) -> _Slot:
    """Where *write* lives: integers of one log share a slot, opaque versions have one each."""
    version = write.version
    opaque = version if isinstance(version, str) else None
    return write.datastore, write.key, write.covering, opaque


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

    __slots__ = ("_entries", "_hash", "_incomplete", "_open_branches", "_promises", "_unknown")

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
        entries: dict[_Slot, WriteId] = {}
        for write in writes:
            _add(entries, write)
        self._entries = entries
        self._incomplete = frozenset(_mark(mark) for mark in incomplete)
        latest: dict[tuple[str, str], Promise] = {}
        for promise in promises:
            held = latest.get((promise.datastore, promise.id))
            if held is None or held.expires_s < promise.expires_s:
                latest[promise.datastore, promise.id] = promise
        self._promises = frozenset(latest.values())
        check_range("open_branches", open_branches, MAX_VERSION)
        self._open_branches = open_branches
        self._unknown = frozenset(unknown)
        for item in self._unknown:
            if not _UNKNOWN_ITEM.fullmatch(item):
                msg = f"not an item of an unknown kind: {item!r}"
                raise ValueError(msg)
        self._hash: int | None = None

    def _with(self, entries: dict[_Slot, WriteId]) -> Lineage:
        """A copy with other entries, which are already under the rule."""
        new = Lineage.__new__(Lineage)
        new._entries = entries
        new._incomplete = self._incomplete
        new._promises = self._promises
        new._open_branches = self._open_branches
        new._unknown = self._unknown
        new._hash = None
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
        writes = {write.datastore for write in self._entries.values()}
        return frozenset(writes.union(promise.datastore for promise in self._promises))

    @property
    def empty(self) -> bool:
        """Whether nothing at all is in it, neither writes nor marks."""
        return not (
            self._entries
            or self._incomplete
            or self._promises
            or self._open_branches
            or self._unknown
        )

    def append(self, write: WriteId) -> Lineage:
        """This lineage with *write* in it."""
        entries = self._entries.copy()
        _add(entries, write)
        return self._with(entries)

    def remove(self, write: WriteId) -> Lineage:
        """This lineage without the entry of *write*'s datastore, key and version.

        The mint hour does not matter, nor whether it is covering. A write that is not there,
        or that a later version replaced, changes nothing.
        """
        entries = {
            slot: held
            for slot, held in self._entries.items()
            if (held.datastore, held.key, held.version)
            != (write.datastore, write.key, write.version)
        }
        return self._with(entries)

    def merge(self, *others: Lineage) -> Lineage:
        """The dependencies of this lineage and of all *others*."""
        entries = self._entries.copy()
        merged = self._with(entries)
        for other in others:
            for write in other._entries.values():
                _add(entries, write)
            merged._join_marks(other)
        return merged

    def _join_marks(self, other: Lineage) -> None:
        """Take over all but the entries; for a lineage that nobody else has seen yet."""
        if other._incomplete:
            self._incomplete |= other._incomplete
        if other._unknown:
            self._unknown |= other._unknown
        self._open_branches = max(self._open_branches, other._open_branches)
        if other._promises and other._promises != self._promises:
            self._promises = Lineage(promises=[*self._promises, *other._promises])._promises

    def only(self, *datastores: str) -> Lineage:
        """The part about *datastores*; marks without a known subject stay."""
        kept = frozenset(datastores)
        new = self._with({slot: w for slot, w in self._entries.items() if slot[0] in kept})
        new._incomplete = frozenset(
            mark for mark in self._incomplete if not mark.subject or mark.subject in kept
        )
        new._promises = frozenset(p for p in self._promises if p.datastore in kept)
        return new

    def marked(self, *marks: Incomplete | tuple[str, str]) -> Lineage:
        """This lineage with *marks* added to ``incomplete``."""
        new = self._with(self._entries)
        new._incomplete = self._incomplete.union(map(_mark, marks))
        return new

    def without_unknown(self) -> Lineage:
        """This lineage without the items that this version does not know."""
        new = self._with(self._entries)
        new._unknown = frozenset()
        return new

    def __contains__(self, write: object) -> bool:
        """Whether exactly this entry is in it."""
        return isinstance(write, WriteId) and (self._entries.get(_slot(write)) == write)

    def __iter__(self) -> Iterator[WriteId]:
        """The writes, in no promised order."""
        return iter(self._entries.values())

    def __len__(self) -> int:
        """The number of writes. A lineage of length 0 may still be incomplete."""
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        """Equal in every field; the order in which writes came does not matter."""
        if not isinstance(other, Lineage):
            return NotImplemented
        return (
            self._entries == other._entries
            and self._incomplete == other._incomplete
            and self._promises == other._promises
            and self._open_branches == other._open_branches
            and self._unknown == other._unknown
        )

    def __hash__(self) -> int:
        """Consistent with equality; computed once."""
        if self._hash is None:
            self._hash = hash((frozenset(self._entries.values()), self._incomplete))
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
