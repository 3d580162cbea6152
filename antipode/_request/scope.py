"""One mutable, locked scope for each request, shared by its threads and tasks.

It lives in the OpenTelemetry context under a private key. The baggage member is a live handle
on it, so that the stock propagator sends the current lineage whatever contexts were copied
before (docs/spec/scope-and-propagation.md).
"""

from __future__ import annotations

import re
import threading
from contextvars import ContextVar
from dataclasses import replace
from itertools import count as count_up
from typing import TYPE_CHECKING, Protocol

from antipode._lineage.codec import encode
from antipode._lineage.grammar import MEMBER_OVERHEAD
from antipode._lineage.lineage import Lineage, without_promises
from antipode._lineage.shortening import MOST_HELD
from antipode._lineage.write_id import Incomplete
from antipode._runtime import observers
from antipode._runtime.clock import SYSTEM_CLOCK, Allowance
from antipode._runtime.config import config
from antipode._runtime.metrics import count

from .lineage_text import encode_bounded, kept, readable
from .open_writes import open_in, tell_of_unsent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextvars import Token

    from opentelemetry.context import Context
    from typing_extensions import Self

    from antipode._lineage.write_id import Promise, PromiseName, WriteId
    from antipode._runtime.config import Config

    from .generators import Holder

    #: By key, of the room that attached it.
    Attached = Mapping[object, "Attachment"]

#: The subject of the mark that an unreadable incoming lineage leaves.
INCOMING_SUBJECT = "baggage"
_EMPTY = Lineage()
_NOTHING_ATTACHED: Attached = {}
_NO_NOTES: frozenset[str] = frozenset()
#: Texts that wait to be decoded: many requests may join one scope that nobody reads.
_MOST_WAITING = 8
_SNAPSHOT = Incomplete("", "snapshot")
#: Of how many requests the library's own time is taken in one.
TIMED_EVERY = 64
_made = count_up(1)
#: The answer of a request that added nothing.
NOTHING = encode(_EMPTY)
#: What stands for the lineage of a scope, for who takes the characters.
SNAPSHOT = encode(Lineage(incomplete=[_SNAPSHOT]))
#: Whether a branch began in this process: before, nobody asks how many run. No call sets it.
BRANCHED = [False]
#: Whether what runs here is a branch itself: one of those that are open.
in_branch: ContextVar[bool] = ContextVar("antipode-in-branch", default=False)
#: A text of version 1, as far as the alphabet shows: safe in a header, decodable or refused.
_PLAIN = re.compile(r"1[A-Za-z0-9._~-]*")


class Attachment(Protocol):
    """What a room above keeps with a request, until it is stopped. Changed under its lock alone."""

    def joined(self, later: Self) -> Self:
        """This and *later*, which a branch or a later call attaches under the same key."""
        ...

    def branched(self, own: frozenset[str]) -> Self:
        """This for a branch that fulfils the promises of the ids *own* itself."""
        ...

    def ended(self) -> None:
        """The request is over."""
        ...


class Scope:
    """The lineage of one request, while it grows. Thread-safe."""

    # Most requests change few of these: what a scope does not set costs it nothing.
    #: Whether the request still runs: a second extraction then joins this scope.
    open = True
    #: Whether ``stop()`` discarded the lineage; nothing enters any more.
    stopped = False
    #: Whether its response was sent: what is written now is in nobody's lineage but its own.
    answered = False
    #: Whether an extraction opened it, for whoever handles the request to adopt.
    arrived = False
    #: What its headers were read from, by which their request is known again while it runs.
    carrier: object = None
    #: What travels for a dry run; None without one.
    notes: object = None
    #: What a recorder of histories keeps; None without one.
    recorded: object = None
    #: The promises that this branch fulfils itself: they never enter its lineage.
    own: frozenset[PromiseName] = frozenset()
    #: The context around its block, until that has ended and been left.
    around: Context | None = None
    #: Whether what is attached goes on in the scope around it, once its block has ended.
    joins = False
    #: Whether its block runs.
    entered = False
    #: The generator whose block it is; None for any other code.
    holder: Holder | None = None
    #: What :func:`stop` detaches; for :func:`root`, which has no block to do it at the end.
    root_token: Token[Context] | None = None
    #: How long the library's own code has run for it, in seconds, where it is timed.
    spent_s = 0.0
    _allowance: Allowance | None = None
    _lineage = _EMPTY
    _came = _EMPTY
    _text: tuple[Lineage, Config, frozenset[str], str] | None = None

    def __init__(
        self,
        lineage: Lineage | None = None,
        *,
        incoming: tuple[str, ...] = (),
        answers: bool = True,
    ) -> None:
        """Start open.

        Args:
            lineage: what the request starts from; None for nothing.
            incoming: texts that came with the request. They are decoded when somebody asks: a
                service that only passes its lineage on does not pay for that.
            answers: whether they are its caller's, to whom an answer need not bring them back.
        """
        self._lock = threading.Lock()
        self._sampling = threading.Lock()
        self._deferred: list[Callable[[], Lineage]] = []
        self._incoming = incoming
        self._answers = answers
        #: What rooms above keep here; replaced under the lock, and never changed.
        self.attached: Attached = _NOTHING_ATTACHED
        # Added to and taken from without the lock, which a garbage collection may find held.
        self._branches: list[None] = []
        if lineage is not None:
            noted = lineage if observers.noting is None else self._noted(lineage)
            self._lineage = kept(noted)
        if incoming and not answers and observers.noting is not None:
            self._take_in()  # What is noted with a lineage that came is asked for at once.
        if observers.timing:
            # One that never ends gives way to another.
            if observers.timed is None or not next(_made) % TIMED_EVERY:
                observers.timed = self
        elif not next(_made) % TIMED_EVERY:
            observers.timing = observers.telemetry.recording()

    @property
    def lineage(self) -> Lineage:
        """The lineage so far; what reads deferred is sampled now."""
        if self._deferred:
            self._sample()
        return self.known

    @property
    def leaving(self) -> Lineage:
        """The lineage so far, with how many branches of the request still run."""
        lineage = self.lineage
        return lineage.branching(len(self._branches)) if self._branches else lineage

    @property
    def known(self) -> Lineage:
        """The lineage without what reads deferred."""
        if self._incoming:
            with self._lock:
                self._take_in()
        return self._lineage

    @property
    def uncommitted(self) -> frozenset[str]:
        """The datastores in which it has written, in transactions that are open."""
        return frozenset(transaction.datastore for _, transaction in open_in(self))

    def _noted(self, lineage: Lineage) -> Lineage:
        """*lineage* without notes, which who sends some keeps apart and others pass on."""
        if self.own:
            lineage = without_promises(lineage, self.own)
        noting = observers.noting
        return lineage if noting is None else noting.absorb(self, lineage)

    def defer(self, sample: Callable[[], Lineage]) -> None:
        """Add what *sample* returns, when somebody reads the lineage."""
        with self._lock:
            if not self.stopped and sample not in self._deferred:
                self._deferred.append(sample)

    def later(self, sample: Callable[[], Lineage]) -> None:
        """As :meth:`defer`, without a lock: for finalisers, whose thread may hold it already."""
        if not self.stopped:
            self._deferred.append(sample)

    def _sample(self) -> None:
        """Take in what was deferred. A sample goes only when its result is in."""
        with self._sampling:  # Not the scope's own: a sample may ask a server.
            while deferred := self._deferred:
                found = deferred[0]()
                with self._lock:
                    if not self.stopped:
                        self._lineage = kept(self._lineage.merge(self._noted(found)))
                    del deferred[0]

    def _take_in(self) -> None:
        """Decode what came in; under the lock."""
        if self._incoming:
            first, *others = [readable(INCOMING_SUBJECT, each) for each in self._incoming]
            self._start_from(first.merge(*others) if others else first)
            self._incoming = ()  # Only now: until then, who reads without the lock waits for it.

    def _start_from(self, came: Lineage) -> None:
        """Add *came*, which came with the request; under the lock."""
        if self._answers and self._came.size < MOST_HELD:
            # Else an answer brings back what its caller knows.
            self._came = came if self._came is _EMPTY else self._came.merge(came)
        noted = self._noted(came)
        self._lineage = kept(noted if self._lineage is _EMPTY else self._lineage.merge(noted))

    def receive(self, texts: tuple[str, ...]) -> None:
        """Add the lineages that came with a second extraction of the same request."""
        with self._lock:
            if not self.stopped:
                self._incoming += tuple(text for text in texts if text not in self._incoming)
            if len(self._incoming) > _MOST_WAITING:
                self._take_in()

    def start_from(self, came: Lineage) -> None:
        """Add *came*, which came with the request in another way than in its baggage."""
        with self._lock:
            self._take_in()
            if not self.stopped:
                self._start_from(came)

    def append(self, *writes: WriteId) -> Lineage:
        """Add *writes*; an entry without a written hour gets the current one."""
        with self._lock:
            if self._incoming:
                self._take_in()
            if not self.stopped:
                for write in writes:
                    entry = write if write.written_hour else stamped(write)
                    self._lineage = kept(self._lineage.append(entry))
            found = self._lineage
        if self.answered:
            self._late(writes)
        if self.holder is not None:
            for write in writes:
                self.holder.wrote(write.datastore)
        if (observer := observers.dry_run) is not None:
            observer.wrote(self, writes)
        return found

    def _late(self, writes: Iterable[WriteId]) -> None:
        """Count what whoever got the response does not depend on."""
        for write in writes:
            if not write.covering:
                count("after_response_write", write.datastore)

    def merge(self, lineage: Lineage) -> Lineage:
        """Add everything of *lineage*."""
        with self._lock:
            self._take_in()
            if not self.stopped:
                self._lineage = kept(self._lineage.merge(self._noted(lineage)))
            return self._lineage

    def remove(self, *writes: WriteId) -> Lineage:
        """Drop *writes*."""
        with self._lock:
            self._take_in()
            for write in writes:
                self._lineage = self._lineage.remove(write)
            return self._lineage

    def began(self) -> None:
        """A branch of the request begins: what leaves before it is over says so."""
        self._branches.append(None)
        BRANCHED[0] = True

    def finished(self) -> None:
        """A branch of the request is over."""
        self._branches.pop()

    @property
    def open_branches(self) -> int:
        """How many branches of the request run."""
        return len(self._branches)

    @property
    def other_branches(self) -> int:
        """The same besides the one that asks, if that is one."""
        return max(len(self._branches) - in_branch.get(), 0)

    def forget(self, *promises: Promise) -> None:
        """Drop *promises*, of which nothing can be known any more."""
        with self._lock:
            self._take_in()
            self._lineage = without_promises(self._lineage, {each.name for each in promises})

    def allowance(self) -> Allowance:
        """The time that reads of the request may wait automatically, all of them together."""
        found = self._allowance
        if found is None:
            with self._lock:
                settings = config()
                seconds = min(settings.auto_timeout, settings.max_timeout)
                found = self._allowance = self._allowance or Allowance(seconds)
        return found

    def parts(
        self,
    ) -> tuple[Lineage, Lineage, list[Callable[[], Lineage]], Attached, list[None]]:
        """The lineage, what of it came, samples to come, attachments, the branches that run."""
        with self._lock:
            self._take_in()
            deferred = list(self._deferred)
            return self._lineage, self._came, deferred, self.attached, self._branches

    def mark_incomplete(self, subject: str, reason: str) -> Lineage:
        """Note that something of *subject* is missing, and why."""
        return self.merge(Lineage(incomplete=[(subject, reason)]))

    def end(self) -> None:
        """Note that the request is over; branches that still run keep the lineage."""
        self.carrier = self.holder = None
        self.open = False
        if self.attached and not self.joins:  # As for few requests.
            for each in self.attached.values():
                each.ended()
        if observers.timed is self:
            observers.timing, observers.timed = False, None
            if self.spent_s:
                observers.telemetry.spent(self.spent_s)

    def stop(self) -> None:
        """Discard the lineage and what is attached, for all branches."""
        with self._lock:
            self.open, self.stopped = False, True
            self._lineage = _EMPTY
            self._incoming = ()
            self._deferred = []
            self.attached = _NOTHING_ATTACHED

    def attach(self, key: object, new: Attachment) -> None:
        """Keep *new* here, joined with what is attached under *key*, until the request stops."""
        with self._lock:
            if not self.stopped:
                held = self.attached.get(key)
                joined = new if held is None else held.joined(new)
                self.attached = {**self.attached, key: joined}

    def text(self) -> str:
        """The lineage as it leaves this process in baggage: bounded and filtered."""
        if self.attached:  # As for few requests.
            tell_of_unsent(self)
        settings = config()
        held = self._text
        if held and held[0] is self._lineage and held[1] is settings and self._plain(held[2]):
            return held[3]
        if self._incoming and (incoming := self._passing(settings)) is not None:
            return incoming
        if (observer := observers.dry_run) is not None:
            observer.leaves(self)
        known = not (self._deferred or self._incoming or self._branches)
        lineage = self._lineage if known else self.leaving
        notes = _NO_NOTES if observers.noting is None else self._notes()
        if held and held[0] is lineage and held[1] is settings and held[2] == notes:
            return held[3]
        most, egress = settings.max_lineage_bytes, settings.egress
        text = encode_bounded(lineage, max_bytes=most, egress=egress, notes=notes)
        self._text = (lineage, settings, notes, text)
        observers.telemetry.left("baggage", text, lineage)
        return text

    def text_with(self, text: str, there: Iterable[str]) -> str:
        """*text*, its own of now, and the texts of *there* together, shortened as a whole.

        Anyone may be the author of those: a header has them already.
        """
        others = [readable(INCOMING_SUBJECT, each) for each in there if each != text]
        if not others:
            return text
        self.leaves()
        return _text(self.leaving.merge(*others), config(), self._notes())

    def _plain(self, notes: frozenset[str]) -> bool:
        """Whether what leaves is the lineage alone: no branch, no read, no *notes* to come."""
        more = self._incoming or self._deferred or self._branches or notes
        return not more and observers.noting is None

    def leaves(self) -> None:
        """Note that something is sent, whether or not a lineage goes with it."""
        if self.attached:
            tell_of_unsent(self)
        if (observer := observers.dry_run) is not None:
            observer.leaves(self)

    def added(self) -> Lineage:
        """The lineage without what came with the request, as its response starts.

        Whoever sent the request has that already; sending it back could only push other entries
        over the bound. What is written from now on is counted as written after the response.
        """
        self.answered = True
        if self._lineage is _EMPTY and not (self._deferred or self._branches):
            return _EMPTY  # What came was not even decoded.
        return self.lineage.beyond(self._came).branching(len(self._branches))

    def answer(self) -> str:
        """What the response carries: the text of what was added."""
        if self.attached:
            tell_of_unsent(self)
        added = self.added()
        if added is _EMPTY and observers.noting is None:
            return NOTHING
        self.leaves()
        settings, notes = config(), self._notes()
        if added.empty and not notes:
            return NOTHING
        text = _text(added, settings, notes)
        observers.telemetry.left("baggage", text, added)
        return text

    def snapshot(self) -> str:
        """What says that a lineage is missing, for who takes the characters of the handle.

        Where somebody notes something with lineages that leave, they come with that of now.
        """
        settings = config()  # First: it is with this that a dry run begins.
        if observers.noting is None:
            return SNAPSHOT
        return _text(self.lineage.marked(_SNAPSHOT), settings, self._notes())

    def _notes(self) -> frozenset[str]:
        """What travels besides; asked for after the lineage, with which some may have come."""
        noting = observers.noting
        return _NO_NOTES if noting is None else noting.notes(self)

    def _passing(self, settings: Config) -> str | None:
        """What came in, where it may leave as it is: nothing was added, no limit applies."""
        incoming = self._incoming
        if len(incoming) != 1 or self._lineage is not _EMPTY or settings.egress is not None:
            return None
        if self._deferred or self._branches or observers.noting is not None:
            return None
        (text,) = incoming
        fits = len(text) + MEMBER_OVERHEAD <= settings.max_lineage_bytes
        return text if fits and _PLAIN.fullmatch(text) else None


def _text(lineage: Lineage, settings: Config, notes: frozenset[str]) -> str:
    """*lineage* and *notes* as they may leave this process."""
    return encode_bounded(
        lineage, max_bytes=settings.max_lineage_bytes, egress=settings.egress, notes=notes
    )


def stamped(write: WriteId) -> WriteId:
    """*write* with a written hour, so that it can age: where it states none, the current one."""
    return write if write.written_hour else replace(write, written_hour=SYSTEM_CLOCK.hour())
