"""The dry run: nothing waits, and what should have waited is written down (paper section 6.3).

Loaded by ``mode="dry-run"`` alone. Verdict, notes and records: docs/spec/dry-run.md.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from time import monotonic
from typing import TYPE_CHECKING, Any

from antipode._barrier.registry import shims_of
from antipode._lineage.lineage import without_notes
from antipode._lineage.write_id import Promise
from antipode._request.context import scope_in
from antipode._request.scope import INCOMING_SUBJECT
from antipode._runtime import observers
from antipode._runtime.call_site import caller
from antipode._runtime.config import config
from antipode._runtime.datastores import clients_without_names
from antipode._runtime.ruled import NOT_OURS, rules_in_force, unmatched_rules
from antipode._runtime.unnamed import url_of

from .declared_roles import DeclaredRoles
from .notes import Notes
from .read_verdicts import JudgedReads
from .records import UNWRITTEN, Records, encoded, members, named, write_text, writes_text
from .shared_reads import SharedReads
from .source_lines import Places, running_test
from .staleness_check import Evidence

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from types import CodeType, FrameType

    from antipode._lineage.lineage import Lineage
    from antipode._lineage.write_id import Dependency, WriteId
    from antipode._runtime.datastores import Rule
    from antipode._runtime.observers import BarrierCall, Client, Request

    from .shared_reads import Read
    from .source_lines import Line, Place

#: Seconds that the end of a process waits for servers that are being asked what they are.
_ROLES_S = 1.0
#: Counts of reads whose values have a lineage that nobody knows.
_UNKNOWN_LINEAGES = frozenset({"companion_absent", "foreign", "unreadable"})


class DryRun:
    """What this process's dry run knows and writes."""

    def __init__(self, directory: str | None, region: str | None) -> None:
        """Write records into *directory*; None: none, findings are counted and logged alone."""
        self._region = region or ""
        self._records = None if directory is None else Records(directory, region)
        self._lock = threading.Lock()
        self._places = Places()
        self._start()

    def _start(self) -> None:
        self._evidence = Evidence(self._record_evidence)
        self._roles = DeclaredRoles()
        #: Clients that no rule names, where they were made; None once that is written down.
        self._unnamed: dict[tuple[str, Place], tuple[Request | None, str, str | None] | None] = {}
        #: The entries of rules that were written down, and as what; None before the first record.
        self._rules: set[tuple[str, bool]] | None = None
        self._shared = SharedReads(self._are_one, self._tell_of_shared)
        self._reads = JudgedReads(
            self._region, self._places, self._put, self._evidence, self._roles
        )

    def opened(self, request: Request, *, incoming: bool) -> None:
        """A request begins."""
        self._evidence.over()
        self._shared.opened(request)
        if self._unnamed:
            self._tell_of_forgotten()
        opened = "incoming" if incoming else "here"
        site = None if incoming else self.site()
        self._record("scope", request, site, members({"opened": opened}))

    def ended(self) -> None:
        """The block of a request is over."""
        self._evidence.over()

    def wrote(self, request: Request, writes: Sequence[Dependency]) -> None:
        """The store acknowledged *writes*, or a branch promised them."""
        self._evidence.over()
        for write in writes:
            if isinstance(write, Promise) or not write.covering:
                self._record("write", request, self.site(), f'"write":{write_text(named(write))}')
                if request.answered:
                    self._lint("after-response", write.datastore, "", request, self.site())

    def reads(self, request: Request, client: Client) -> None:
        """*client* is about to send a read."""
        if client.reads_from == "replica":
            self._shared.read(request, client.datastore)
        self._reads.judge(request, client)

    def _are_one(self, one: Request, other: Request) -> bool:
        return self._request(one) == self._request(other)

    def _tell_of_shared(
        self, request: Request, read: Read, started: Line | None, waits: Line | None
    ) -> None:
        """What came of *read* goes to another request, too, which waits for its task."""
        said = [("started", started), ("awaited by another request", waits)]
        found = [(what, self._places.of(line)) for what, line in said if line is not None]
        detail = ", ".join(f"{what} at {place.file}:{place.line}" for what, place in found)
        about = {"lint": "shared-read", "datastore": read.datastore, "detail": detail}
        self._put("lint", request, self._places.of(read.line), members(about), test=running_test())

    def barrier(self, call: BarrierCall) -> None:
        """A barrier ends well, or would have: what it guards need not be waited for again."""
        self._evidence.over()
        self._guard(call.request, call.guards)
        site = call.site or self.site()
        about = {
            "at": call.at,
            "only": None if call.only is None else sorted(call.only),
            "exclude": sorted(call.exclude),
            "dry": call.dry,
        }
        self._record(
            "barrier", call.request, site, f'"guards":{writes_text(call.guards)},{members(about)}'
        )
        if not (call.guards or call.fenced or call.checks):
            detail = "nothing of it can be waited for" if call.settled else "its lineage is empty"
            self._lint("nothing-to-wait-for", "", detail, call.request, site)

    def showed(self, request: Request | None, client: Client, writes: Sequence[WriteId]) -> None:
        """A read showed *writes*: they need not be waited for where it was made.

        Not those of a log that the request depended on without a barrier: whether the read showed
        that already is a matter of lag, and no verdict is.
        """
        self._evidence.over()
        if request is None or client.reads_from != "replica":
            return
        notes = self._notes(request)
        owed = {
            (write.datastore, write.key)
            for write in request.known
            if not (write.covering or notes.covers(self._region, write))
        }
        self._guard(request, [each for each in writes if (each.datastore, each.key) not in owed])

    def _guard(self, request: Request | None, writes: Sequence[Dependency]) -> None:
        if request is None or not writes:
            return
        notes = self._notes(request)
        with self._lock:
            for write in writes:
                notes.guard(self._region, write)

    def before_commit(
        self, request: Request, what: str, datastore: str, wrote: tuple[CodeType, int]
    ) -> None:
        """A read or barrier cannot see what its request wrote in an open transaction."""
        place = self._places.of(wrote)
        detail = f"{what}, written at {place.file}:{place.line}"
        self._lint("read-before-commit", datastore, detail, request, self.site())

    def unlabelled(self, request: Request, datastore: str, handler: CodeType | None) -> None:
        """A message that *request* handles had no lineage in its headers."""
        if handler is None:
            self._lint("message-without-lineage", datastore, "", request, self.site())
        else:
            about = {"lint": "message-without-lineage", "datastore": datastore, "detail": ""}
            place = self._places.of((handler, handler.co_firstlineno))
            self._put("lint", request, place, members(about), test=running_test())

    def sent(self, request: Request, to: str, destination: str = "") -> None:
        """*request* publishes a message."""
        self._record("message", request, self.site(), _message("sent", to, destination))

    def handled(self, request: Request, to: str, destination: str = "") -> None:
        """*request* handles one."""
        about = _message("handled", to, destination)
        self._put("message", request, None, about, test=running_test())

    def called(self, request: Request, service: str) -> None:
        """*request* called a service that answered without a lineage."""
        self._record("call", request, self.site(), members({"to": service}))

    def unnamed(self, where: str, entry: str, *, ruled: bool) -> None:
        """A client was made that no rule names; another call may still give it a name."""
        site = self.site()
        place = self._places.of((site.f_code, site.f_lineno))
        if (where, place) not in self._unnamed:
            self._unnamed[where, place] = scope_in(), entry, running_test()
        if ruled:
            self._tell_of_unnamed([where])

    def _tell_of_unnamed(self, names: Collection[str]) -> None:
        """Write down the clients at *names* that have no name, each place once."""
        for key in [each for each in tuple(self._unnamed) if each[0] in names]:
            if (found := self._unnamed[key]) is None:
                continue
            self._unnamed[key] = None
            request, entry, test = found
            where, place = key
            url = entry.partition("=")[2]
            said = f"{where}: add {entry} to ANTIPODE_DATASTORES, or -={url}"
            about = {"lint": "unnamed-client", "datastore": "", "detail": said}
            self._put("lint", request, place, members(about), test=test)

    def matched(self, rule: Rule) -> None:
        """A client was made that *rule* names; before the first record it is noted with that."""
        if self._rules is not None and rule.datastore != NOT_OURS:
            self._rule(rule, matched=True)

    def _tell_of_rules(self) -> None:
        """Write down the rules in force, and whether a client was made by each."""
        without = unmatched_rules()
        for rule in rules_in_force():
            if rule.datastore != NOT_OURS:
                self._rule(rule, matched=rule not in without)

    def _rule(self, rule: Rule, *, matched: bool) -> None:
        """Write down *rule*, once as what it is."""
        entry = f"{rule.datastore}={url_of(rule.store, rule.places[0], rule.database)}"
        with self._lock:
            if self._records is None or self._rules is None or (entry, matched) in self._rules:
                return
            self._rules.add((entry, matched))
        about = {"datastore": rule.datastore, "database": rule.database, "entry": entry}
        self._records.put("rule", members({**about, "matched": matched}))

    def late(self) -> None:
        """``setup()`` was called while a request was handled."""
        self._lint("late-setup", "", "", scope_in(), self.site())

    def _tell_of_forgotten(self) -> None:
        """Write down what was made a request ago, at least, and still has no name."""
        if any(self._unnamed.values()):
            self._tell_of_unnamed(clients_without_names())

    def counted(self, name: str, datastore: str) -> None:
        """A count may be of a read whose value has a lineage that nobody knows."""
        # What is unreadable elsewhere was no read. What came in baggage is taken in just now.
        if name in _UNKNOWN_LINEAGES and datastore != INCOMING_SUBJECT and shims_of(datastore):
            detail = {"companion_absent": "absent"}.get(name, name)
            self._lint("unknown-lineage", datastore, detail, scope_in(), self.site())

    def unscoped(self, what: str, datastore: str) -> None:
        """Something found no scope."""
        self._evidence.over()
        if what in ("read", "write"):
            self._lint(f"unscoped-{what}", datastore, "", None, self.site())

    def absorb(self, request: Request, lineage: Lineage) -> Lineage:
        """Move the notes in *lineage* to *request*."""
        if not lineage.unknown:
            return lineage
        notes = self._notes(request)
        with self._lock:
            notes.take(lineage.unknown)
        return without_notes(lineage)

    def notes(self, request: Request) -> frozenset[str]:
        """The items that travel with the lineage of *request*, which leaves now."""
        self._evidence.over()
        notes = self._notes(request)
        with self._lock:
            return notes.items(config().egress)

    def leaves(self, request: Request) -> None:
        """What is sent may depend on writes that have no positions yet."""
        self.unsent(request, request.uncommitted)

    def unsent(self, request: Request, datastores: Collection[str]) -> None:
        """The same of what is stored: in *datastores* a transaction is open."""
        for datastore in sorted(datastores):
            self._lint("in-transaction", datastore, "", request, self.site())

    def site(self) -> FrameType:
        """The nearest frame outside of libraries."""
        return caller()

    def _notes(self, request: Request) -> Notes:
        held = request.notes
        if not isinstance(held, Notes):
            with self._lock:
                held = request.notes
                if not isinstance(held, Notes):
                    held = request.notes = Notes()
        return held

    def _lint(
        self, lint: str, datastore: str, detail: str, request: Request | None, site: FrameType
    ) -> None:
        about = {"lint": lint, "datastore": datastore, "detail": detail}
        self._record("lint", request, site, members(about))

    def _record(
        self, kind: str, request: Request | None, site: FrameType | None, about: str
    ) -> None:
        """Write a record of *request*, where there are records."""
        if self._records is not None:
            place = None if site is None else self._places.of((site.f_code, site.f_lineno))
            self._put(kind, request, place, about, test=running_test())

    def _put(
        self,
        kind: str,
        request: Request | None,
        place: Place | None,
        about: str,
        *,
        test: str | None,
    ) -> int:
        """Write a record of what *request* did, where there are records; its number."""
        if self._records is None:
            return UNWRITTEN
        if place is not None:
            about = f'"site":{place.text},{about}'
        if test is not None:
            about = f'"test":{encoded(test)},{about}'
        number = self._records.put(kind, f'"request":{self._request(request)},{about}')
        if self._rules is None:
            self._rules = set()
            self._tell_of_rules()
        return number

    def _request(self, request: Request | None) -> str:
        """The id of the request of *request*, as records have it."""
        if request is None:
            return "null"
        _ = request.known  # The id may be in what came and was not decoded yet.
        notes = self._notes(request)
        if not (drawn := notes.drawn):
            with self._lock:
                drawn = notes.request
        return f'"{drawn}"'

    def _record_evidence(self, about: Mapping[str, Any]) -> None:
        if self._records is not None:
            self._records.put("evidence", members(about))

    def settle(self, timeout_s: float) -> None:
        """Wait until the reads that are over were observed once, at most *timeout_s*."""
        self._evidence.over()
        deadline = monotonic() + timeout_s
        self._evidence.settle(timeout_s)
        self._roles.settle(max(deadline - monotonic(), 0.0))

    def close(self) -> None:
        """Stop observing, and close the file."""
        self._shared.close()
        self._tell_of_forgotten()
        if self._rules is not None:
            self._tell_of_rules()
        self._evidence.close()
        self._roles.settle(_ROLES_S)
        if self._records is not None:
            self._records.close()

    def after_fork(self) -> None:
        """Begin a file of the child's own."""
        self._lock = threading.Lock()
        self._start()
        if self._records is not None:
            self._records.after_fork()
        if (processes := sys.modules.get("multiprocessing.util")) is not None:
            # Its children exit without what atexit knows.
            processes.register_after_fork(self, _closed_at_the_end)


def _message(step: str, to: str, destination: str) -> str:
    known = {"destination": destination} if destination else {}
    return members({"step": step, "to": to, **known})


def _closed_at_the_end(observer: DryRun) -> None:
    from multiprocessing.util import Finalize

    Finalize(None, observer.close, exitpriority=0)


def _after_fork() -> None:
    if isinstance(observers.dry_run, DryRun):
        observers.dry_run.after_fork()


def _at_exit() -> None:
    if observers.dry_run is not None:
        observers.dry_run.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
