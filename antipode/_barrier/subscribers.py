"""Who waits at a watcher, in order: what a poll must ask for, and whom what it showed meets.

Pure: no I/O, clock or lock. Of one log, or one key, a larger version comes after a smaller. So
what a server does not show yet at one version it shows at none after it, and what it shows at one
it shows at all before it: a poll asks for the first of those that wait there and for the last, and
costs what became visible.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Union

from antipode._lineage.outcomes import Status
from antipode._lineage.write_id import Promise, WriteId

from .contract import Observation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from antipode._lineage.write_id import Dependency


#: Logs and keys that one poll asks about.
MOST_PLACES = 100
#: Of those that wait at one place, how many a poll asks for all that they want.
FEW = 8
#: How many times as many it asks for where all of these were met.
_MORE = 4

#: A log or a key; what has no order is a place of its own.
_Name = Union[tuple[str, str], "Dependency"]


class Subscriber(Protocol):
    """Somebody who waits at a watcher. Called from the watcher's thread."""

    def wanted(self, datastore: str) -> Collection[Dependency]:
        """What it still waits for; empty when it waits no longer."""
        ...

    def take(self, datastore: str, observation: Observation, left_s: float | None = None) -> None:
        """Receive what a poll showed, of its own writes and of others'.

        At *left_s* the poll before left it waiting, of which it was not told; None: it was told.
        """
        ...

    def unreachable(self, datastore: str, cause: str) -> None:
        """Learn that a poll failed and will be repeated."""
        ...

    def failed(self, datastore: str, cause: str) -> None:
        """Learn that there will be no further poll."""
        ...


class Waiting:
    """One subscriber.

    Attributes:
        subscriber: who it is.
        number: in which order it joined.
        joined_us: when.
        wanted: what it waits for.
        names: the places of that.
        stands: places and versions of that which no poll has met.
        told: the last poll of which it was told, or that was before it joined.
    """

    __slots__ = ("joined_us", "names", "number", "stands", "subscriber", "told", "wanted")

    def __init__(self, subscriber: Subscriber, number: int, joined_us: int, told: int) -> None:
        """It wants nothing yet."""
        self.subscriber = subscriber
        self.number = number
        self.joined_us = joined_us
        self.told = told
        self.wanted: frozenset[Dependency] = frozenset()
        self.names: frozenset[_Name] = frozenset()
        self.stands: set[tuple[_Name, int]] = set()


class _Place:
    """Those that stand at one place, by version, and by who joined first."""

    __slots__ = ("entries", "few")

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, Waiting]] = []
        self.few = FEW

    def take(self, from_version: int, to_version: int) -> list[tuple[int, int, Waiting]]:
        """Take out those who wait for one of these versions."""
        first: Any = (from_version,)
        end: Any = (to_version + 1,)
        span = slice(bisect_left(self.entries, first), bisect_left(self.entries, end))
        taken = self.entries[span]
        del self.entries[span]
        return taken


class _Last(NamedTuple):
    """The last poll that showed anything: which one, when, and what."""

    number: int
    now_s: float
    observation: Observation


class Told(NamedTuple):
    """Whom to tell of a poll.

    Attributes:
        observation: what.
        whom: and when the poll before left each of them waiting; None where it knows.
    """

    observation: Observation
    whom: Mapping[Waiting, float | None]


class Subscribers:
    """Who waits at a watcher. Not thread-safe.

    Each stands wherever the last poll of which it was told had not met what it wants. A poll that
    shows all that one wants shows it there, too: it ends the wait, or the next one does that asks
    for all of it, at once.

    Attributes:
        joined: when each of them joined, in order.
        unasked: whether the next poll comes at once: the last one was not about all of it.
    """

    def __init__(self) -> None:
        """Nobody waits."""
        self.joined: list[int] = []
        self.unasked = False
        self._all: dict[Subscriber, Waiting] = {}
        self._places: dict[_Name, _Place] = {}  # In turn.
        self._due: dict[Waiting, None] = {}  # To be asked for whole.
        self._left = 0  # Places of this round that no poll was about.
        self._promised = 0  # Places that are promises.
        self._joins = self._polls = 0
        self._begun = 0  # How many had joined when the last poll began.
        self._told_all = 0  # The last poll of which everybody was told.
        self._is_first = True  # Whether a pause came before the last poll.
        self._is_moved = False  # After the next pause everybody is asked for whole.
        self._asked: dict[Waiting, None] = {}
        self._wanted: set[Dependency] = set()
        self._about: set[_Name] = set()
        self._last = _Last(0, 0.0, Observation("", {}))

    def __len__(self) -> int:
        """How many wait."""
        return len(self._all)

    def __iter__(self) -> Iterator[Subscriber]:
        """Those that wait."""
        return iter(self._all)

    @property
    def promised(self) -> bool:
        """Whether anybody waits for a promise."""
        return self._promised > 0

    def join(self, subscriber: Subscriber, wanted: Collection[Dependency], now_us: int) -> None:
        """Take somebody in; one that waits already is asked for once more."""
        one = self._all.get(subscriber)
        if one is None:
            one = Waiting(subscriber, self._joins, now_us, self._polls)
            self._joins += 1
            self._all[subscriber] = one
            insort(self.joined, now_us)
        self._move(one, frozenset(wanted))
        self._due[one] = None

    def leave(self, subscriber: Subscriber) -> None:
        """Forget somebody who may wait."""
        one = self._all.pop(subscriber, None)
        if one is not None:
            del self.joined[bisect_left(self.joined, one.joined_us)]
            self._due.pop(one, None)
            for name, version in tuple(one.stands):
                self._unstand(one, name, version)

    def asks(self) -> set[Dependency]:
        """What the next poll is for: at most so many places, or all that one wants; not empty."""
        self._polls += 1
        self._begun = self._joins
        self._asked, self._wanted, self._about = {}, set(), set()
        self._is_first = not self.unasked
        if self._is_first:
            self._left = len(self._places)
            if self._is_moved:
                self._due.update(dict.fromkeys(self._all.values()))
                self._is_moved = False
        begun = []
        for one in self._due:
            if not self._ask(one, MOST_PLACES // 2):
                break
            begun.append(one)
        for one in begun:
            del self._due[one]
        self._take_turns()
        return self._wanted

    def _take_turns(self) -> None:
        """Ask for the first of those at the places whose turn it is, and for the last."""
        for name in tuple(islice(self._places, min(self._left, MOST_PLACES))):
            place = self._places[name]
            first = [one for _, _, one in place.entries[: place.few]]
            if not self._ask(first[0], MOST_PLACES):
                return
            for one in (*first, place.entries[-1][2]):
                self._ask(one, MOST_PLACES)
            self._left -= 1
            if len(self._places) > MOST_PLACES:
                self._places[name] = self._places.pop(name)

    def _ask(self, one: Waiting, most: int) -> bool:
        """Ask for all that *one* wants, unless the poll would be about too many places."""
        if one in self._asked:
            return True
        about = self._about
        if about and not about.issuperset(one.names) and len(about | one.names) > most:
            return False
        about.update(one.names)
        self._wanted |= one.wanted
        self._asked[one] = None
        return True

    def failed(self) -> list[Waiting]:
        """Whom to tell that the poll failed: all who waited when it began."""
        self._told_all = self._polls
        self.unasked = False
        told = [one for one in self._all.values() if one.number < self._begun]
        self._due.update(dict.fromkeys(told))
        return told

    def shown(self, observation: Observation, now_s: float) -> Told:
        """What the poll for what :meth:`asks` returned shows at *now_s*, and whom to tell."""
        late, met, over = self._sorted_out(observation)
        self.unasked = self._left > 0 or bool(self._due)
        touched: dict[Waiting, None] = {}
        for name, version in over:
            touched |= self._taken(name, version, version)
            if (place := self._places.get(name)) is not None:
                self._ask_again(one for _, _, one in place.entries)
        known = set(late)
        for name, version in met.items():
            taken = self._taken(name, 0, version)
            touched |= taken
            place = self._places.get(name)
            if taken and place is not None and place.entries[0][0] < late.get(name, math.inf):
                known.discard(name)  # All of the first are met, and more may be.
                place.few *= _MORE
                self._ask_again(one for _, _, one in place.entries[: place.few])
        for name in known & self._places.keys():
            self._places[name].few = FEW
        return self._judged(observation, now_s, touched, met)

    def _sorted_out(
        self, observation: Observation
    ) -> tuple[dict[_Name, int], dict[_Name, int], list[tuple[_Name, int]]]:
        """By place, the first version that is late and the last that is met; and what is over."""
        late: dict[_Name, int] = {}
        met: dict[_Name, int] = {}
        over: list[tuple[_Name, int]] = []
        for each in self._wanted:
            status, _ = observation.of(each)
            name, version = _name(each), _version(each)
            if status.pending:
                late[name] = min(version, late.get(name, version))
            elif status.met:
                met[name] = max(version, met.get(name, version))
            else:
                over.append((name, version))
        return late, met, over

    def _judged(
        self,
        observation: Observation,
        now_s: float,
        touched: Iterable[Waiting],
        met: dict[_Name, int],
    ) -> Told:
        """Tell those whom the poll asked for, and those of *touched* of whom it shows all."""
        told = list(self._asked)
        found: dict[WriteId, Status] = {}
        for one in touched:
            if one in self._asked:
                continue
            missing = [each for each in one.wanted if each not in self._wanted]
            if all(_version(each) <= met.get(_name(each), -1) for each in missing):
                found.update(
                    (each, Status.VISIBLE) for each in missing if isinstance(each, WriteId)
                )
                told.append(one)
            else:
                self._ask_again([one])
        if found:
            observation = replace(observation, statuses={**observation.statuses, **found})
        before, self._last = self._last, _Last(self._polls, now_s, observation)
        if before.number and observation.server != before.observation.server:
            if self._is_first:  # Its history may be another.
                self._ask_again(self._all.values())
            else:  # Where it changes from poll to poll, pauses stay.
                self._is_moved = True
        told.sort(key=lambda one: one.number)
        return Told(
            observation,
            {one: before.now_s if self._knows(one) < before.number else None for one in told},
        )

    def _ask_again(self, some: Iterable[Waiting]) -> None:
        """Ask at once for all that those of *some* want whom this poll did not ask for."""
        due = [one for one in some if one not in self._asked]
        self._due.update(dict.fromkeys(due))
        self.unasked = self.unasked or bool(due)

    def _knows(self, one: Waiting) -> int:
        """The last poll of which *one* was told."""
        return max(one.told, self._told_all)

    def settle(self, told: Iterable[Waiting], datastore: str) -> list[int]:
        """Forget those of *told* that wait no longer; when they joined."""
        ended = []
        for one in told:
            if self._all.get(one.subscriber) is not one:
                continue
            one.told = self._polls
            if wanted := one.subscriber.wanted(datastore):
                self._move(one, frozenset(wanted))
            else:
                ended.append(one.joined_us)
                self.leave(one.subscriber)
        return ended

    def _move(self, one: Waiting, wanted: frozenset[Dependency]) -> None:
        """Have *one* stand where the last poll had not met what it wants."""
        if wanted != one.wanted:
            one.wanted, one.names = wanted, frozenset(map(_name, wanted))
        of = self._last.observation.of
        late = [each for each in wanted if of(each)[0].pending] or wanted
        stands = {(_name(each), _version(each)) for each in late}
        for name, version in one.stands - stands:
            self._unstand(one, name, version)
        for name, version in stands - one.stands:
            self._stand(one, name, version)

    def _stand(self, one: Waiting, name: _Name, version: int) -> None:
        if (place := self._places.get(name)) is None:
            place = self._places[name] = _Place()
            self._promised += isinstance(name, Promise)
        one.stands.add((name, version))
        insort(place.entries, (version, one.number, one))

    def _unstand(self, one: Waiting, name: _Name, version: int) -> None:
        one.stands.discard((name, version))
        place = self._places[name]
        del place.entries[bisect_left(place.entries, (version, one.number, one))]
        self._drop_if_empty(name, place)

    def _taken(self, name: _Name, from_version: int, to_version: int) -> dict[Waiting, None]:
        """Take from a place those who wait there for one of these versions."""
        if (place := self._places.get(name)) is None:
            return {}
        taken = place.take(from_version, to_version)
        for version, _, one in taken:
            one.stands.discard((name, version))
        self._drop_if_empty(name, place)
        return dict.fromkeys(one for _, _, one in taken)

    def _drop_if_empty(self, name: _Name, place: _Place) -> None:
        if not place.entries:
            del self._places[name]
            self._promised -= isinstance(name, Promise)
            self._left = min(self._left, len(self._places))


def _name(each: Dependency) -> _Name:
    """Where who waits for it stands."""
    if isinstance(each, WriteId) and isinstance(each.version, int):
        return each.datastore, each.key
    return each


def _version(each: Dependency) -> int:
    return each.version if isinstance(each, WriteId) and isinstance(each.version, int) else 0
