"""The reads of a dry run: noted as they are sent, judged and written down behind them.

The verdict is that of docs/spec/dry-run.md, and is about the moment at which a read was noted.
"""

from __future__ import annotations

import threading
from asyncio import _get_running_loop, current_task
from collections import deque
from threading import get_ident
from typing import TYPE_CHECKING, NamedTuple, Protocol

from antipode._barrier.registry import shims_of
from antipode._lineage.lineage import exact_of, names
from antipode._lineage.write_id import Promise
from antipode._runtime.call_site import caller
from antipode._runtime.config import config
from antipode._runtime.metrics import count, log_once

from .notes import Notes, covers
from .records import UNWRITTEN, encoded, text, writes_text
from .source_lines import STARTED_BY, in_tests, running_test

if TYPE_CHECKING:
    from types import FrameType

    from antipode._lineage.lineage import Lineage
    from antipode._lineage.write_id import Dependency
    from antipode._runtime.observers import Client, Request, Unjudged

    from .notes import Guards
    from .source_lines import Line, Place, Places
    from .staleness_check import Evidence, Runner

    #: Who reads, and in which test; the request, and which client; what the request depends on, and
    #: what of it is guarded; where. A tuple: no class is made as fast.
    _Read = tuple[Runner, str | None, Request, Client, Lineage, Guards, Line]

_NO_GUARDS: Guards = {}
_MOST_TOLD = 10_000


class RecordWriter(Protocol):
    """Writes a record down."""

    def __call__(
        self,
        kind: str,
        request: Request | None,
        place: Place | None,
        about: str,
        *,
        test: str | None,
        age_s: float,
    ) -> int:
        """The number of the record, of what *request* did *age_s* ago."""
        ...


class _Unguarded(NamedTuple):
    """What is to be done about an unguarded read besides its record.

    Attributes:
        missed: what no guard covers.
        times: how many such reads there were in a row.
        number: of the record.
        when_s: when the first was, by the client's clock.
    """

    client: Client
    place: Place
    missed: list[Dependency]
    times: int
    number: int
    when_s: float
    runner: Runner
    test: str | None


class JudgedReads:
    """Judges the reads of a process in *region*, and has findings looked into."""

    def __init__(self, region: str, places: Places, put: RecordWriter, evidence: Evidence) -> None:
        """Write records by *put*."""
        self._region = region
        self._places = places
        self._put = put
        self._evidence = evidence
        self._in_tests = in_tests()
        self._told: set[tuple[str, Place]] = set()
        # When, what, and how often in a row: of all threads together one, for a crash loses it.
        self._noted: deque[tuple[float, _Read, list[int]]] = deque()
        # Reentrant: a finaliser may run within, and do something else.
        self._judging = threading.RLock()
        self._busy = False

    def concerned(self, request: Request, client: Client) -> Unjudged | None:
        """What a read that *client* is about to send is to be judged by.

        Most by nothing: this is part of every read.
        """
        if client.reads_from == "replica" and names(known := request.known, client.datastore):
            return request, known  # What came before is over with :meth:`note`.
        if self._noted or self._evidence.open_reads:
            self.over()
        return None

    def note(self, client: Client, unjudged: Unjudged, start: FrameType) -> None:
        """Note a read that *client* sends; it is judged with what comes next.

        What the verdict depends on is kept as it is now. Whatever can be left for later is no part
        of the read.
        """
        # Each function of ours that is called here takes a microsecond, and servers are fast.
        request, known = unjudged
        loop, notes, site = _get_running_loop(), request.notes, caller(start)
        read = (
            get_ident() if loop is None else current_task(loop) or get_ident(),
            running_test() if self._in_tests else STARTED_BY,
            request,
            client,
            known,
            notes.guards if isinstance(notes, Notes) else _NO_GUARDS,
            (site.f_code, site.f_lineno),
        )
        if self._noted or self._evidence.open_reads:
            if self._again(read):
                return
            self.over()
        self._noted.append((client.clock.monotonic(), read, [1]))
        if len(self._noted) > 1:
            self._judge()  # Another thread noted one meanwhile, and one is the most that is left.

    def over(self) -> None:
        """This task or thread does something else: what it read before is over."""
        if self._noted:
            self._judge()
        if self._evidence.open_reads:
            self._evidence.over()

    def _again(self, read: _Read) -> bool:
        """Whether *read* is the one that was noted last once more, and is counted with it."""
        with self._judging:
            if self._busy or not self._noted:
                return False
            _, last, times = self._noted[-1]
            if last != read:
                return False
            times[0] += 1
            return True

    def _judge(self) -> None:
        """Judge what was noted.

        Reads stay noted until they are written down: whoever does something else waits for that,
        so that records are in the order of what they tell of.
        """
        unguarded: list[_Unguarded] = []
        with self._judging:
            while self._noted and not self._busy:
                self._busy = True
                try:
                    if (found := self._write(*self._noted[0])) is not None:
                        unguarded.append(found)
                finally:
                    self._noted.popleft()
                    self._busy = False
        for each in unguarded:
            self._found(each)

    def _write(self, when_s: float, read: _Read, times: list[int]) -> _Unguarded | None:
        """Write *read* down; what is to be done besides, if it is unguarded."""
        runner, test, request, client, known, guards, line = read
        datastore = client.datastore
        exact: list[Dependency] = [*exact_of(known, datastore)]
        if known.promises:
            exact += [each for each in known.promises if each.datastore == datastore]
        if not exact:
            return None
        missed = [write for write in exact if not covers(guards, self._region, write)]
        place = self._places.of(line)
        verdict = "unguarded" if missed else "guarded"
        about = (
            f'"datastore":{text(datastore)},"verdict":"{verdict}"'
            f',"writes":{writes_text(missed or exact)}'
        )
        if times[0] > 1:
            about += f',"reads":{times[0]}'
        others = len(known) + len(known.promises) - len(exact)
        if missed and others and (unknown := _unknown(known)):
            about += f',"unknown":{encoded(unknown)}'
        age_s = client.clock.monotonic() - when_s
        number = self._put("read", request, place, about, test=test, age_s=age_s)
        if not missed:
            return None
        return _Unguarded(client, place, missed, times[0], number, when_s, runner, test)

    def _found(self, read: _Unguarded) -> None:
        """Count an unguarded read, tell of it once, and look into it."""
        client, place, missed = read.client, read.place, read.missed
        datastore = client.datastore
        finding = datastore, place
        count("unguarded_read", datastore, read.times)
        if finding not in self._told:
            if len(self._told) >= _MOST_TOLD:
                self._told.clear()
            self._told.add(finding)
            log_once(
                "unguarded_read",
                datastore,
                place[:2],
                "%s:%s reads %r without a barrier for what its request wrote there: %s",
                place.file,
                place.line,
                datastore,
                ", ".join(sorted(map(str, missed))[:3]),
            )
        seen = missed if client.promises else [w for w in missed if not isinstance(w, Promise)]
        if read.number == UNWRITTEN or not seen:
            return
        if not self._evidence.wants(finding):
            count("dry_run_evidence_dropped", datastore)
            return
        of = {"of": read.number} if read.test is None else {"test": read.test, "of": read.number}
        self._evidence.seek(client, seen, of, runner=read.runner, since_s=read.when_s)


def _unknown(lineage: Lineage) -> list[str]:
    """The datastores for which nothing is registered here, where barriers fail for that."""
    if config().on_unknown != "raise":
        return []
    found = {each.datastore for each in (*lineage, *lineage.promises)}
    return sorted(name for name in found if not shims_of(name))
