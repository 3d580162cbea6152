"""The dry run: nothing waits, and what should have waited is written down (paper section 6.3).

Loaded by ``mode="dry-run"`` alone. Verdict, notes and records: docs/spec/dry-run.md.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _seam
from ._config import config
from ._evidence import Evidence
from ._lineage import exact_of, names, without_notes
from ._metrics import count, log_once
from ._notes import Notes
from ._records import UNWRITTEN, Records, encoded, members
from ._registry import shims_of
from ._scope import INCOMING_SUBJECT, scope_in
from ._site import caller
from ._write_id import Promise

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from types import CodeType, FrameType

    from ._barrier import Barrier
    from ._lineage import Lineage
    from ._scope import Scope
    from ._write_id import Dependency, WriteId
    from .shim import Shim

#: Counts of reads whose values have a lineage that nobody knows.
_UNKNOWN_LINEAGES = frozenset({"companion_absent", "foreign", "unreadable"})
#: What stands for a log where records name a promise.
PROMISES = "promise"
_RUNNING_TEST = "PYTEST_CURRENT_TEST"
#: The test that started this process; in a process of pytest's own it is another each time.
_STARTED_BY = os.environ.get(_RUNNING_TEST)
_MOST_PLACES = 10_000


class _Place(NamedTuple):
    """A line of the application's code.

    Attributes:
        file: relative to the working directory where it is below it.
        line: from 1.
        text: as records have it.
    """

    file: str
    line: int
    text: str


class DryRun:
    """What this process's dry run knows and writes."""

    def __init__(self, directory: str | None, region: str | None) -> None:
        """Write records into *directory*; None: none, findings are counted and logged alone."""
        self._here = _working_directory()
        self._region = region or ""
        self._records = None if directory is None else Records(directory, region)
        self._lock = threading.Lock()
        self._evidence = Evidence(self._record_evidence)
        self._places: dict[tuple[CodeType, int], _Place] = {}
        self._told: set[tuple[str, _Place]] = set()
        # By the identity of who wrote: the scope, which may end first, and the datastore.
        self._uncommitted: dict[int, tuple[weakref.ref[Scope], str]] = {}

    def opened(self, scope: Scope, *, incoming: bool) -> None:
        """A request begins."""
        self._evidence.over()
        opened = "incoming" if incoming else "here"
        site = None if incoming else self.site()
        self._record("scope", scope, site, members({"opened": opened}))

    def ended(self) -> None:
        """The block of a request is over."""
        self._evidence.over()

    def wrote(self, scope: Scope, writes: Sequence[Dependency]) -> None:
        """The store acknowledged *writes*, or a branch promised them."""
        self._evidence.over()
        for write in writes:
            if isinstance(write, Promise) or not write.covering:
                self._record("write", scope, self.site(), f'"write":{_encoded(_named(write))}')
                if scope.answered:
                    self._lint("after-response", write.datastore, "", scope, self.site())

    def concerned(self, scope: Scope, shim: Shim) -> bool:
        """Whether a read that a client of *shim* is about to send has anything to be judged by.

        Most have not: this is part of every read.
        """
        if self._evidence.open_reads:
            self._evidence.over()
        return shim.reads_from == "replica" and names(scope.known, shim.datastore)

    def reads(self, scope: Scope | None, shim: Shim) -> None:
        """Judge a read that a client of *shim* sends."""
        if scope is None or not self.concerned(scope, shim):
            return
        datastore = shim.datastore
        known = scope.known
        exact: list[Dependency] = [*exact_of(known, datastore)]
        if known.promises:
            exact += [each for each in known.promises if each.datastore == datastore]
        if not exact:
            return
        notes = self._notes(scope)
        missed = [write for write in exact if not notes.covers(self._region, write)]
        place = self._place(caller())
        verdict = "unguarded" if missed else "guarded"
        about = (
            f'"site":{place.text},"datastore":{encode_basestring_ascii(datastore)},"verdict":"{verdict}"'
            f',"writes":{_list(missed or exact)}'
        )
        others = len(known) + len(known.promises) - len(exact)
        if missed and others and (unknown := _unknown(known)):
            about += f',"unknown":{encoded(unknown)}'
        number = self._record("read", scope, None, about)
        if missed:
            self._found(shim, place, missed, number)

    def _found(self, shim: Shim, where: _Place, missed: list[Dependency], number: int) -> None:
        datastore = shim.datastore
        finding = datastore, where
        count("unguarded_read", datastore)
        if finding not in self._told:
            self._told.add(finding)
            log_once(
                "unguarded_read",
                datastore,
                where[:2],
                "%s:%s reads %r without a barrier for what its request wrote there: %s",
                where.file,
                where.line,
                datastore,
                ", ".join(sorted(map(str, missed))[:3]),
            )
        seen = missed if shim.promises else [w for w in missed if not isinstance(w, Promise)]
        if number == UNWRITTEN or not seen:
            return
        if not self._evidence.wants(finding):
            count("dry_run_evidence_dropped", datastore)
            return
        test = _test()
        of = {"of": number} if test is None else {"test": test, "of": number}
        self._evidence.seek(shim, seen, of)

    def barrier(self, call: Barrier) -> None:
        """A barrier ends well, or would have: what it guards need not be waited for again."""
        self._evidence.over()
        wanted = call.wanted
        guards = [write for writes in wanted.pending.values() for write in writes]
        self._guard(call.scope, guards)
        site = call.site or self.site()
        about = {
            "at": call.at,
            "only": None if call.only is None else sorted(call.only),
            "exclude": sorted(call.exclude),
            "dry": call.dry,
        }
        self._record("barrier", call.scope, site, f'"guards":{_list(guards)},{members(about)}')
        if not guards and not wanted.fenced and not call.checks:
            detail = "nothing of it can be waited for" if wanted.settled else "its lineage is empty"
            self._lint("nothing-to-wait-for", "", detail, call.scope, site)

    def showed(self, scope: Scope | None, shim: Shim, writes: Sequence[WriteId]) -> None:
        """A read showed *writes*: they need not be waited for where it was made.

        Not those of a log that the scope depended on without a barrier: whether the read showed
        that already is a matter of lag, and no verdict is.
        """
        self._evidence.over()
        if scope is None or shim.reads_from != "replica":
            return
        notes = self._notes(scope)
        owed = {
            (write.datastore, write.key)
            for write in scope.known
            if not (write.covering or notes.covers(self._region, write))
        }
        self._guard(scope, [each for each in writes if (each.datastore, each.key) not in owed])

    def _guard(self, scope: Scope | None, writes: Sequence[Dependency]) -> None:
        if scope is None or not writes:
            return
        notes = self._notes(scope)
        with self._lock:
            for write in writes:
                notes.guard(self._region, write)

    def uncommitted(self, scope: Scope | None, shim: Shim, who: object, *, wrote: bool) -> None:
        """A transaction of *who* has written, or is over."""
        if not wrote and not self._uncommitted:
            return
        with self._lock:
            if not wrote:
                self._uncommitted.pop(id(who), None)
            elif scope is not None:
                self._uncommitted[id(who)] = weakref.ref(scope), shim.datastore

    def counted(self, name: str, datastore: str) -> None:
        """A count may be of a read whose value has a lineage that nobody knows."""
        # What is unreadable elsewhere was no read. What came in baggage is taken in just now.
        if name in _UNKNOWN_LINEAGES and datastore != INCOMING_SUBJECT and shims_of(datastore):
            detail = {"companion_absent": "absent"}.get(name, name)
            self._lint("unknown-lineage", datastore, detail, scope_in(), self.site())

    def unscoped(self, what: str, datastore: str) -> None:
        """Something found no scope."""
        self._evidence.over()
        if what == "write":
            self._lint("unscoped-write", datastore, "", None, self.site())

    def absorb(self, scope: Scope, lineage: Lineage) -> Lineage:
        """Move the notes in *lineage* to *scope*."""
        if not lineage.unknown:
            return lineage
        notes = self._notes(scope)
        with self._lock:
            notes.take(lineage.unknown)
        return without_notes(lineage)

    def notes(self, scope: Scope) -> frozenset[str]:
        """The items that travel with the lineage of *scope*, which leaves now."""
        self._evidence.over()
        if self._uncommitted:
            self._leaves_early(scope)
        notes = self._notes(scope)
        with self._lock:
            return notes.items(config().egress)

    def _leaves_early(self, scope: Scope) -> None:
        """Something may be sent that depends on writes without positions."""
        with self._lock:
            open_in = {name for held, name in self._uncommitted.values() if held() is scope}
        for datastore in sorted(open_in):
            self._lint("in-transaction", datastore, "", scope, self.site())

    def site(self) -> FrameType:
        """The nearest frame outside of libraries."""
        return caller()

    def _notes(self, scope: Scope) -> Notes:
        held = scope.notes
        if held is None:
            with self._lock:
                held = scope.notes = scope.notes or Notes()
        return held

    def _place(self, site: FrameType) -> _Place:
        here = site.f_code, site.f_lineno
        known = self._places.get(here)
        if known is None:
            if len(self._places) >= _MOST_PLACES:
                self._places.clear()  # Code that was made while it ran would be kept for ever.
                self._told.clear()
            known = self._places[here] = self._found_at(*here)
        return known

    def _found_at(self, code: CodeType, line: int) -> _Place:
        file = code.co_filename
        if file.startswith(self._here):
            file = file[len(self._here) :].replace(os.sep, "/")
        place = {"file": file, "line": line, "function": code.co_name}
        return _Place(file, line, encoded(place))

    def _lint(
        self, lint: str, datastore: str, detail: str, scope: Scope | None, site: FrameType
    ) -> None:
        about = {"lint": lint, "datastore": datastore, "detail": detail}
        self._record("lint", scope, site, members(about))

    def _record(self, kind: str, scope: Scope | None, site: FrameType | None, about: str) -> int:
        """Write a record of *scope*, where there are records; its number."""
        if self._records is None:
            return UNWRITTEN
        if site is not None:
            about = f'"site":{self._place(site).text},{about}'
        if (test := _test()) is not None:
            about = f'"test":{encoded(test)},{about}'
        return self._records.put(kind, f'"request":{self._request(scope)},{about}')

    def _request(self, scope: Scope | None) -> str:
        """The id of the request of *scope*, as records have it."""
        if scope is None:
            return "null"
        _ = scope.known  # The id may be in what came and was not looked at yet.
        notes = self._notes(scope)
        if not (request := notes.drawn):
            with self._lock:
                request = notes.request
        return f'"{request}"'

    def _record_evidence(self, about: Mapping[str, Any]) -> None:
        if self._records is not None:
            self._records.put("evidence", members(about))

    def settle(self, timeout_s: float) -> None:
        """Wait until the reads that are over were looked into once, at most *timeout_s*."""
        self._evidence.over()
        self._evidence.settle(timeout_s)

    def close(self) -> None:
        """Stop looking, and close the file."""
        self._evidence.close()
        if self._records is not None:
            self._records.close()

    def after_fork(self) -> None:
        """Begin a file of the child's own."""
        self._lock = threading.Lock()
        self._evidence = Evidence(self._record_evidence)
        self._uncommitted = {}
        if self._records is not None:
            self._records.after_fork()


def _working_directory() -> str:
    """With a separator behind it; where it was removed, what no file lies below."""
    try:
        return f"{Path.cwd()}{os.sep}"
    except FileNotFoundError:
        return "\0"


def _named(found: Dependency) -> tuple[str, str, str]:
    """The datastore, the log and the version of *found*, as records name them."""
    if isinstance(found, Promise):
        return found.datastore, PROMISES, found.id
    return found.datastore, found.key, str(found.version)


def _encoded(named: tuple[str, str, str]) -> str:
    datastore, log, version = map(encode_basestring_ascii, named)
    return f'{{"datastore":{datastore},"log":{log},"version":{version}}}'


def _unknown(lineage: Lineage) -> list[str]:
    """The datastores for which nothing is registered here, where barriers fail for that."""
    if config().on_unknown != "raise":
        return []
    names = {each.datastore for each in (*lineage, *lineage.promises)}
    return sorted(name for name in names if not shims_of(name))


def _list(found: Collection[Dependency]) -> str:
    """*found* as records have them, in an order that depends on nothing else."""
    if len(found) == 1:
        (only,) = found
        return f"[{_encoded(_named(only))}]"
    return f"[{','.join(map(_encoded, sorted(set(map(_named, found)))))}]"


def _test() -> str | None:
    """The test that runs, without its phase."""
    running = os.environ.get(_RUNNING_TEST) if "pytest" in sys.modules else _STARTED_BY
    return None if running is None else running.rpartition(" (")[0] or running


def _after_fork() -> None:
    if isinstance(_seam.observer, DryRun):
        _seam.observer.after_fork()


def _at_exit() -> None:
    if _seam.observer is not None:
        _seam.observer.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
