"""One poll of a region, as a conversation without I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from antipode import Status
from antipode.shim import Observation

from ._position import Place, Version

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Mapping

    from antipode import WriteId
    from antipode_shims._aws.homes import Homes

FAILED = "FAILED"


class Shown(NamedTuple):
    """What a bucket has of a version.

    Attributes:
        present: whether it is there, an object or a delete marker; of a copy, whether a read that
            names no version shows it or a newer one.
        replication: its status at its source, as ``x-amz-replication-status``; empty without one.
        newest: the newest version of the key, where it was asked for; empty where there is none.
    """

    present: bool
    replication: str = ""
    newest: str = ""


class Question(NamedTuple):
    """Versions to be asked for; none asks whether the region answers.

    Attributes:
        region: where; empty for the region that is polled.
        versions: which.
        whole: whether the newest version is wanted of the key of one that is not there.
        copies: whether they are copies: these may be there before reads show them.
    """

    region: str
    versions: tuple[Version, ...]
    whole: bool = False
    copies: bool = False


#: What each version is; None where the region has no such bucket.
Answer: TypeAlias = "Mapping[Version, Shown | None]"
#: Yields questions; is sent the answer, or why another region gave none.
Look: TypeAlias = "Generator[Question, Answer | Exception, Observation]"


def judge(here: Shown, home: Shown | None, *, at_home: bool) -> Status:
    """What a bucket that has *here* shows of a write.

    Args:
        here: what the bucket that is polled has.
        home: what the bucket that took the write has; None where it was not asked, or was away.
        at_home: whether they are one bucket.
    """
    if here.present:
        return Status.VISIBLE
    if at_home:
        home = here
    if home is None or home.present:
        failed = home is not None and home.replication == FAILED
        return Status.LOST if failed else Status.NOT_YET
    if not home.newest:
        return Status.LOST
    return Status.SUPERSEDED if here.newest == home.newest else Status.NOT_YET


@dataclass(slots=True)
class _Looked:
    """What one poll has found so far."""

    region: str
    buckets: Mapping[str, str]
    homes: Homes[Shown]
    places: dict[WriteId, Place]
    here: dict[WriteId, Shown | None] = field(default_factory=dict)
    statuses: dict[WriteId, Status] = field(default_factory=dict)

    def local(self, write: WriteId) -> Version:
        """The version of *write*, in the bucket of this region that has its copies."""
        place = self.places[write]
        bucket = self.buckets.get(place.bucket, place.bucket)
        return Version(bucket, place.key, str(write.version))

    def is_at_home(self, write: WriteId) -> bool:
        """Whether the bucket that is polled is the one that took *write*."""
        place = self.places[write]
        return place.region == self.region and self.local(write).bucket == place.bucket

    def judge(self) -> list[WriteId]:
        """Judge each write; those that are pending."""
        for write in self.places:
            here = self.here.get(write)
            if here is None:
                self.statuses[write] = Status.UNKNOWN_LOG
                continue
            home, at_home = self.homes.said(write), self.is_at_home(write)
            self.statuses[write] = judge(here, home, at_home=at_home)
        return [write for write in self.places if self.statuses[write] is Status.NOT_YET]


def look(
    writes: Collection[WriteId], region: str, buckets: Mapping[str, str], homes: Homes[Shown]
) -> Look:
    """What *region* shows of *writes*.

    Args:
        writes: which.
        region: that is polled.
        buckets: for buckets of other regions, the one here that has their copies.
        homes: what the regions of writes have said.
    """
    statuses: dict[WriteId, Status] = {}
    places: dict[WriteId, Place] = {}
    for write in writes:
        place = Place.parse(write.key)
        if place is None:
            statuses[write] = Status.UNKNOWN_LOG
        elif isinstance(write.version, int):
            statuses[write] = Status.UNDECIDABLE
        else:
            places[write] = place
    looked = _Looked(region, buckets, homes, places, statuses=statuses)
    if places:
        yield from _conversation(looked)
    else:
        _answered((yield Question("", ())))
    homes.forget(write for write in places if statuses[write] is not Status.NOT_YET)
    causes = {write: cause for write in places if (cause := homes.cause(write))}
    return Observation(region, statuses, causes=causes)


def _conversation(looked: _Looked) -> Generator[Question, Answer | Exception, None]:
    at_home: dict[bool, list[WriteId]] = {True: [], False: []}
    for write in looked.places:
        at_home[looked.is_at_home(write)].append(write)
    for whole, writes in at_home.items():
        if writes:  # What is gone where it was written is gone at once, or overwritten.
            yield from _ask_here(looked, writes, whole=whole, copies=not whole)
    asked: dict[str, list[WriteId]] = {}
    for write in looked.judge():
        if looked.homes.missed(write):
            asked.setdefault(looked.places[write].region, []).append(write)
    for region, writes in asked.items():
        yield from _ask_home(looked, region, writes)
        yield from _ask_here(looked, writes, whole=True, copies=True)
    looked.judge()


def _ask_here(
    looked: _Looked, writes: list[WriteId], *, whole: bool, copies: bool
) -> Generator[Question, Answer | Exception, None]:
    versions = {write: looked.local(write) for write in writes}
    told = _answered((yield Question("", tuple(dict.fromkeys(versions.values())), whole, copies)))
    looked.here.update({write: told.get(version) for write, version in versions.items()})


def _ask_home(
    looked: _Looked, region: str, writes: list[WriteId]
) -> Generator[Question, Answer | Exception, None]:
    """Ask the region that took *writes*."""
    versions = {
        write: Version(looked.places[write].bucket, looked.places[write].key, str(write.version))
        for write in writes
    }
    told = yield Question(region, tuple(dict.fromkeys(versions.values())), whole=True)
    for write, version in versions.items():
        if isinstance(told, Exception):
            cause = f"{region} cannot be asked about it: {told}"
            looked.homes.learn(write, None, cause)
            continue
        home = told.get(version)
        looked.homes.learn(write, home, _cause(version, region, home))


def _cause(version: Version, region: str, home: Shown | None) -> str:
    """Why a write may not come, for a person."""
    bucket = f"the bucket {version.bucket!r} in {region}"
    if home is None:
        return f"{bucket} is not there"
    if home.present and not home.replication:
        return f"{bucket} reports no replication of it: does a rule copy it?"
    return f"{bucket} could not copy it: {FAILED}" if home.replication == FAILED else ""


def _answered(told: Answer | Exception) -> Answer:
    """The answer of the region that is polled, whose errors end the poll."""
    if isinstance(told, Exception):
        raise told
    return told
