"""Receipts: which publications were routed in this region. Pure: no client, no I/O.

A publication is visible when it and all before it of the same publisher were seen here. What
this process cannot have seen, because it did not listen yet or no longer remembers, it says
so; it never concludes that such a publication was routed.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from antipode import Status
from antipode.shim import PROMISE_GRACE_S

from .publisher import ROLL_S, birth_s

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from antipode import Promise, WriteId
    from antipode.shim import Wake

#: Publishers remembered; over it the one heard first is forgotten.
MAX_PUBLISHERS = 4096
#: Publications remembered ahead of a gap, for each publisher.
MAX_AHEAD = 1024
#: Publications whose first question, and deliveries, are remembered.
MAX_ASKED = 4096
#: Promises remembered that were fulfilled; over it the one seen first is forgotten.
MAX_FULFILLED = 65_536
#: Seconds by which the clocks of publishers and readers may differ.
SKEW_S = 5.0

_GAP = (
    "an earlier publication of this publisher never arrived here though later ones did: it was "
    "published before this process listened, refused, or lost"
)
_AWAY = "it may have passed while the connection of the receipts was down"
_MISSED = "what fulfils it may have passed before this process listened, or was forgotten since"
_STRANGER = "its publisher began before this process listened, or was forgotten since"


@dataclass(slots=True)
class _Publisher:
    prefix: int = 0
    epoch: int = 0
    ahead: set[int] = field(default_factory=set)
    gap_since_s: float = 0.0
    broken: bool = False

    def see(self, sequence: int, now_s: float) -> None:
        if sequence <= self.prefix or sequence in self.ahead:
            return
        if sequence > self.prefix + 1:
            if not self.ahead:
                self.gap_since_s = now_s
            self.ahead.add(sequence)
            if len(self.ahead) > MAX_AHEAD:
                self.broken = True
                self.ahead.clear()
            return
        if self.broken:
            return
        self.prefix = sequence
        while self.prefix + 1 in self.ahead:
            self.prefix += 1
            self.ahead.discard(self.prefix)
        if self.ahead:
            self.gap_since_s = now_s


class Ledger:
    """What one process saw of the publications of one datastore. Thread-safe, bounded."""

    def __init__(
        self,
        *,
        gap_age_s: float,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Begin to listen now.

        Args:
            gap_age_s: seconds after which a publication that may have been missed counts as
                missed.
            monotonic: the clock of ages.
            wall: the clock that creation times are compared with.
        """
        self.gap_age_s = gap_age_s
        self._monotonic = monotonic
        self._wall = wall
        self._lock = threading.Lock()
        self._publishers: OrderedDict[str, _Publisher] = OrderedDict()
        self._delivered: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._asked: OrderedDict[tuple[str, int], float] = OrderedDict()
        self._fulfilled: OrderedDict[str, None] = OrderedDict()
        self._wakes: set[Wake] = set()
        self._remembers_from_s = wall()
        self._epoch = 0
        self.changes = 0

    def listening(self) -> None:
        """Note that listening began, again: what passed before may have been missed."""
        with self._lock:
            self._epoch += 1
            self._remembers_from_s = max(self._remembers_from_s, self._wall())
        self.notify()

    def see(self, write: WriteId) -> None:
        """Note that *write* was routed in this region."""
        if not isinstance(write.version, int):
            return
        with self._lock:
            publisher = self._publishers.get(write.key)
            if publisher is None:
                publisher = self._publishers[write.key] = _Publisher()
                if len(self._publishers) > MAX_PUBLISHERS:
                    self._forget_oldest()
            publisher.see(write.version, self._monotonic())
            publisher.epoch = self._epoch
        self.notify()

    def deliver(self, write: WriteId, *, after: int) -> None:
        """Note that this process received *write*: visible here as such.

        Args:
            write: the publication.
            after: the latest publication of the same publisher on which it depends; that one
                is visible only by what was seen.
        """
        if not isinstance(write.version, int):
            return
        with self._lock:
            self._delivered[write.key, write.version] = after
            if len(self._delivered) > MAX_ASKED:
                self._delivered.popitem(last=False)
        self.see(write)

    def fulfil(self, promise: Promise) -> None:
        """Note that a message was routed, or received, that fulfils *promise*."""
        with self._lock:
            self._fulfilled[promise.id] = None
            if len(self._fulfilled) > MAX_FULFILLED:
                self._fulfilled.popitem(last=False)
        self.notify()

    def judge_promises(self, promises: Collection[Promise]) -> dict[Promise, tuple[Status, str]]:
        """For each of *promises*, its outcome and the cause.

        That nothing was seen is no proof that nothing was sent: past its expiry an unseen
        promise is not abandoned here, but undecidable.
        """
        with self._lock:
            return {promise: self._judge_promise(promise) for promise in promises}

    def _judge_promise(self, promise: Promise) -> tuple[Status, str]:
        if promise.id in self._fulfilled:
            return Status.VISIBLE, ""
        if promise.expires_s + PROMISE_GRACE_S < self._wall():
            return Status.UNDECIDABLE, _MISSED
        return Status.NOT_YET, ""

    def _forget_oldest(self) -> None:
        """Forget the publisher that was heard first, and note what may be forgotten now."""
        oldest, _ = self._publishers.popitem(last=False)
        born_s = min(birth_s(oldest) or 0.0, self._wall())
        self._remembers_from_s = max(self._remembers_from_s, born_s)

    def judge(self, writes: Collection[WriteId]) -> dict[WriteId, tuple[Status, str]]:
        """For each of *writes*, its outcome and the cause."""
        with self._lock:
            now_s = self._monotonic()
            return {write: self._judge(write, now_s) for write in writes}

    def _judge(self, write: WriteId, now_s: float) -> tuple[Status, str]:
        if not isinstance(write.version, int):
            return Status.UNDECIDABLE, "not a publication with a number: forged, or not ours"
        publisher = self._publishers.get(write.key)
        prefix = publisher.prefix if publisher is not None else 0
        name = write.key, write.version
        after = self._delivered.get(name)
        if write.version <= prefix or (after is not None and prefix >= after):
            self._asked.pop(name, None)
            return Status.VISIBLE, ""
        asked_s = self._asked.setdefault(name, now_s)
        if len(self._asked) > MAX_ASKED:
            self._asked.popitem(last=False)
        patient = now_s - asked_s < self.gap_age_s
        if publisher is None:
            return self._judge_stranger(write, patient=patient)
        if publisher.broken or (
            publisher.ahead and now_s - publisher.gap_since_s >= self.gap_age_s
        ):
            return Status.UNDECIDABLE, _GAP
        if publisher.epoch != self._epoch and not patient:
            return Status.UNDECIDABLE, _AWAY
        return Status.NOT_YET, ""

    def _judge_stranger(self, write: WriteId, *, patient: bool) -> tuple[Status, str]:
        born_s = birth_s(write.key)
        if born_s is None:
            return Status.UNKNOWN_LOG, _STRANGER
        if born_s > self._remembers_from_s + SKEW_S:
            return Status.NOT_YET, ""
        # It published for ROLL_S at the most: what it sent is either old, or may be on its way.
        over = self._wall() > born_s + ROLL_S + SKEW_S + self.gap_age_s
        return (Status.UNKNOWN_LOG, _STRANGER) if over or not patient else (Status.NOT_YET, "")

    def subscribe(self, wake: Wake) -> None:
        """Set *wake* whenever something was seen."""
        with self._lock:
            self._wakes.add(wake)

    def unsubscribe(self, wake: Wake) -> None:
        """Undo :meth:`subscribe`."""
        with self._lock:
            self._wakes.discard(wake)

    def notify(self) -> None:
        """Make whoever waits poll again."""
        with self._lock:
            self.changes += 1
            wakes = tuple(self._wakes)
        for wake in wakes:
            wake.set()
