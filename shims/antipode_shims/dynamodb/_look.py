"""One look at a region, as a conversation without I/O."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from antipode import Status
from antipode.shim import Observation

from ._position import Place, deletes, settled, supersedes
from ._promises import record_of, writes_in

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Mapping

    from antipode import Lineage, Promise, WriteId
    from antipode_shims._aws.homes import Homes

    from ._position import Item


#: What counts of the writes of a promise's transaction.
_MET = frozenset({Status.VISIBLE, Status.SUPERSEDED})
_SILENT = "its record names no writes: the client that fulfilled it is not instrumented"


class Shown(NamedTuple):
    """What a region has of an item.

    Attributes:
        present: whether it is there.
        stamp: of who wrote it; None without one.
        digest: of the whole item, where it has no stamp and was read whole; else empty.
        writes: of a promise's record, the text of what its transaction wrote.
    """

    present: bool
    stamp: int | None = None
    digest: str = ""
    writes: str = ""


class Question(NamedTuple):
    """Items to be read consistently; none asks whether the region answers.

    Attributes:
        region: where; empty for the region that is looked at.
        items: which.
        whole: whether what has no stamp is to have its digest.
        records: whether they are records of promises.
    """

    region: str
    items: tuple[Item, ...]
    whole: bool = False
    records: bool = False


#: What each item is; None where the region has no such table.
Answer: TypeAlias = "Mapping[Item, Shown | None]"
#: Yields questions; is sent the answer, or why another region gave none.
Look: TypeAlias = "Generator[Question, Answer | Exception, Observation]"


def judge(
    version: int, here: Shown, home: Shown | None, *, at_home: bool, arrived: bool = True
) -> Status:
    """What a region that has *here* shows of a write.

    Args:
        version: the write's stamp.
        here: what the region that is looked at has.
        home: what the region that took the write has; None where it was not asked, or was away.
        at_home: whether they are one region.
        arrived: of a deletion, whether what it deleted is known to have come there.
    """
    if _is(version, here) and (at_home or arrived):
        return Status.VISIBLE
    if at_home:  # Whatever is there instead came after the write, which was acknowledged.
        return Status.SUPERSEDED
    if here.stamp is not None and supersedes(here.stamp, version):
        return Status.SUPERSEDED
    if home is None or _is(version, home):
        return Status.NOT_YET
    same = here == home and (here.stamp is not None or bool(here.digest) or not here.present)
    return Status.SUPERSEDED if same else Status.NOT_YET


def _is(version: int, shown: Shown) -> bool:
    """Whether *shown* is what the write of *version* made of the item."""
    return not shown.present if deletes(version) else shown.stamp == version


@dataclass(slots=True)
class _Looked:
    """What one look has found so far."""

    region: str
    homes: Homes[Shown]
    places: dict[WriteId, Place]
    now_us: int
    here: dict[Item, Shown | None] = field(default_factory=dict)
    statuses: dict[WriteId, Status] = field(default_factory=dict)

    def judge(self) -> list[WriteId]:
        """Judge each write; those that are pending."""
        for write, (item, region) in self.places.items():
            here = self.here.get(item)
            if here is None:
                self.statuses[write] = Status.UNKNOWN_LOG
                continue
            home = self.homes.said(write)
            at_home = region == self.region
            arrived = self._arrived(write, here)
            number = _number(write)
            self.statuses[write] = judge(number, here, home, at_home=at_home, arrived=arrived)
        return [write for write in self.places if self.statuses[write] is Status.NOT_YET]

    def _arrived(self, write: WriteId, here: Shown) -> bool:
        """Whether what *write* deleted has come: one poll saw it, or it was long ago."""
        number = _number(write)
        if not deletes(number):
            return True
        if here.present:
            self.homes.saw(write)
        return self.homes.has_seen(write) or settled(number, self.now_us)

    def asked(self, pending: list[WriteId]) -> dict[str, list[WriteId]]:
        """By region, the pending writes about which it is to be asked now."""
        found: dict[str, list[WriteId]] = {}
        for write in pending:
            place = self.places[write]
            here = self.here[place.item]
            later = here is not None and here.stamp is not None and here.stamp > _number(write)
            if self.homes.missed(write, doubtful=later):
                found.setdefault(place.region, []).append(write)
        return found

    def unstamped(self, pending: list[WriteId]) -> list[Item]:
        """Items without a stamp in both regions: only all that is in them tells them apart."""
        found = dict.fromkeys(
            self.places[write].item
            for write in pending
            if (home := self.homes.said(write)) is not None and home.digest
        )
        return [item for item in found if (here := self.here[item]) and here[:2] == (True, None)]


def look(
    writes: Collection[WriteId], region: str, homes: Homes[Shown], *, now_us: int | None = None
) -> Look:
    """What *region* shows of *writes*, at the Unix microsecond *now_us*; None: now."""
    statuses: dict[WriteId, Status] = {}
    places: dict[WriteId, Place] = {}
    for write in writes:
        place = Place.parse(write.key)
        if place is None:
            statuses[write] = Status.UNKNOWN_LOG
        elif isinstance(write.version, str):
            statuses[write] = Status.UNDECIDABLE
        else:
            places[write] = place
    now_us = time.time_ns() // 1000 if now_us is None else now_us
    looked = _Looked(region, homes, places, now_us, statuses=statuses)
    if places:
        yield from _conversation(looked)
    else:
        _answered((yield Question("", ())))
    homes.forget(write for write in places if statuses[write] is not Status.NOT_YET)
    causes = {write: cause for write in places if (cause := homes.cause(write))}
    return Observation(region, statuses, causes=causes)


def look_for(promises: Collection[Promise], table: str, region: str, homes: Homes[Shown]) -> Look:
    """Which of *promises* are fulfilled in *region*: all that their transactions wrote is there."""
    records = {promise: record_of(promise, table) for promise in promises}
    told = _answered((yield Question("", tuple(records.values()), records=True)))
    named: dict[Promise, Lineage] = {}
    causes: dict[Promise, str] = {}
    for promise, item in records.items():
        shown = told.get(item)
        if shown is None or not shown.present:
            continue
        if (writes := writes_in(shown.writes)) is None:
            causes[promise] = _SILENT
        else:
            named[promise] = writes
    wanted = {write for writes in named.values() for write in writes}
    statuses = (yield from look(wanted, region, homes)).statuses if wanted else {}
    fulfilled = {
        promise: Status.VISIBLE
        if all(statuses[each] in _MET for each in writes)
        else Status.NOT_YET
        for promise, writes in named.items()
    }
    return Observation(region, {}, promises=fulfilled, promise_causes=causes)


def _conversation(looked: _Looked) -> Generator[Question, Answer | Exception, None]:
    items = tuple(dict.fromkeys(place.item for place in looked.places.values()))
    looked.here.update(_answered((yield Question("", items))))
    if not (pending := looked.judge()):
        return
    for region, writes in looked.asked(pending).items():
        wanted = tuple(dict.fromkeys(looked.places[write].item for write in writes))
        told = yield Question(region, wanted, whole=True)
        for write in writes:
            if isinstance(told, Exception):
                looked.homes.learn(write, None, f"{region} cannot be asked about it: {told}")
            else:
                looked.homes.learn(write, told.get(looked.places[write].item))
    if unstamped := looked.unstamped(pending):
        looked.here.update(_answered((yield Question("", tuple(unstamped), whole=True))))
    looked.judge()


def _answered(told: Answer | Exception) -> Answer:
    """The answer of the region that is looked at, whose errors end the look."""
    if isinstance(told, Exception):
        raise told
    return told


def _number(write: WriteId) -> int:
    return int(write.version)
