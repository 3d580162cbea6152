"""Where one barrier would have guarded an unguarded read and its siblings."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from ._model import Advice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ._model import Occurrence
    from ._records import Entry, Record, Records, Site

#: Process, request, and which of its scopes there: a consumer has one for each message.
_Scope = tuple[str, str | None, int]


class Advisor:
    """Places barriers in the requests of *records*.

    A barrier guards what is in the lineage when it is called. So a read's barrier can stand
    before the first unguarded read of the same scope at which all that it depends on had come
    in; it guards every later one of which the same holds. Before a read that needs none it would
    only wait earlier.
    """

    def __init__(self, records: Records, ids: Mapping[tuple[str, int, Entry], str]) -> None:
        """Note the reads of each scope.

        Args:
            records: of all processes.
            ids: the finding of each unguarded read's process, number and entry.
        """
        self._ids = ids
        self._scopes: dict[tuple[str, int], _Scope] = {}
        self._reads: defaultdict[_Scope, list[Record]] = defaultdict(list)
        self._mentioned: dict[tuple[_Scope, Entry], int] = {}
        self._written: set[tuple[_Scope, Entry]] = set()
        self._arrived: dict[tuple[str, Entry], float] = {}
        self._cached: dict[tuple[str, int], frozenset[tuple[str, str]]] = {}
        opened: Counter[tuple[str, str | None]] = Counter()
        for line in records.lines:  # Those of one process in their order.
            request = line.process, line.request
            opened[request] += line.kind == "scope"
            self._note(line, (*request, opened[request]))

    def _note(self, line: Record, scope: _Scope) -> None:
        for entry in line.writes:
            self._mentioned.setdefault((scope, entry), line.n)
            if line.kind == "write":
                self._written.add((scope, entry))
                if line.request is not None:
                    made = line.request, entry
                    self._arrived[made] = min(line.t, self._arrived.get(made, line.t))
        if line.kind == "read" and line.verdict == "unguarded":
            self._reads[scope].append(line)
            self._scopes[line.process, line.n] = scope

    def advice(self, finding: str, found: Sequence[Occurrence]) -> Advice:
        """The place that most of the reads *found* have in common."""
        places: Counter[Site] = Counter()
        guards: defaultdict[Site, set[tuple[str, str]]] = defaultdict(set)
        for read in {(one.read.process, one.read.n): one.read for one in found}.values():
            before = next(one for one in self._siblings(read) if self._guards(one, read))
            places[before.site] += 1
            guards[before.site] |= self._guarded(before)
        best = min(places, key=lambda site: (-places[site], site))
        others = sorted(name for name, _ in guards[best] if name != finding)
        datastores = sorted({datastore for _, datastore in guards[best]})
        return Advice(best, (finding, *others), tuple(datastores))

    def _siblings(self, read: Record) -> Sequence[Record]:
        """The unguarded reads of the same scope; it alone outside of a request."""
        scope = self._scopes[read.process, read.n]
        return [read] if read.request is None else self._reads[scope]

    def _guarded(self, before: Record) -> frozenset[tuple[str, str]]:
        """The findings, and their datastores, of all reads that a barrier there guards."""
        where = before.process, before.n
        if where not in self._cached:
            self._cached[where] = frozenset(
                (self._ids[read.process, read.n, entry], read.datastore)
                for read in self._siblings(before)
                if self._guards(before, read)
                for entry in read.writes
            )
        return self._cached[where]

    def _guards(self, before: Record, read: Record) -> bool:
        """Whether a barrier just before *before* guards all that *read* depends on."""
        return before.n <= read.n and all(self._had(before, entry) for entry in read.writes)

    def _had(self, read: Record, entry: Entry) -> bool:
        """Whether the lineage held *entry* when *read* was sent."""
        if entry.datastore == read.datastore:
            return entry in read.writes  # It lists all of its datastore's that no guard covers.
        scope = self._scopes[read.process, read.n]
        first = self._mentioned.get((scope, entry))
        if first is not None and first <= read.n:
            return True
        if (scope, entry) in self._written or read.request is None:
            return False
        # Written elsewhere: it came with the request, or with a response before this read.
        made = self._arrived.get((read.request, entry))
        return made is not None and made <= read.t
