"""Which dependencies of a lineage a barrier waits for, and what is settled before it starts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from antipode._lineage.codec import may_be_dependency
from antipode._lineage.errors import ConfigurationError
from antipode._lineage.outcomes import Outcome, Status
from antipode._lineage.write_id import Incomplete, Unjudged
from antipode._request.context import scope_in
from antipode._runtime.metrics import count, log_once
from antipode._runtime.ruled import (
    asks_promises,
    has_receipts,
    holds_reads,
    is_ruled,
    lacks,
    never_waits,
    unapplied,
    waits_for_ruled,
)

from .decisions import PROMISE_GRACE_S
from .registry import looking_shim, reads_elsewhere, shims_of, waits_for_any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from antipode._lineage.lineage import Lineage
    from antipode._lineage.write_id import Dependency, Promise, PromiseName

At = Literal["now", "read"]
#: Reasons of incompleteness after which waiting for the primary's position is enough.
DISCHARGED_BY_FENCE = ("size", "unsampled")

#: The cause of what a barrier cannot wait for now, and leaves to reads.
NOT_MADE = "its client is not made yet: the reads that follow wait for it"
#: The same for messages with receipts, which are heard from the client's first connection on.
NOT_HEARD = "its client is not made yet, and nothing hears its messages before: make it at start"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a barrier has to do.

    Attributes:
        pending: for each datastore, what to wait for, now or at the read.
        settled: outcomes that need no waiting.
        incomplete: what is missing within the datastores asked for.
        floored: datastores whose reads satisfy floors.
        unmade: of those, what is not waited for now, since no client is made yet.
        fenced: what of *incomplete* a fence discharges, by datastore.
    """

    pending: dict[str, frozenset[Dependency]]
    settled: tuple[Outcome, ...]
    incomplete: frozenset[Incomplete]
    floored: frozenset[str]
    unmade: dict[str, frozenset[Dependency]]
    fenced: dict[str, frozenset[Incomplete]]


def plan(
    lineage: Lineage,
    *,
    only: AbstractSet[str] | None,
    exclude: AbstractSet[str],
    at: At,
    off: bool,
    now_s: float,
    own: AbstractSet[PromiseName] = frozenset(),
) -> Plan:
    """Sort the dependencies of *lineage* into what is settled and what must be waited for.

    *own* are the promises that who waits is about to fulfil.

    Raises:
        ConfigurationError: two replicas under one name, or no scope to leave a floor in.
    """

    def asked(subject: str) -> bool:
        return (not subject or only is None or subject in only) and subject not in exclude

    pending: defaultdict[str, set[Dependency]] = defaultdict(set)
    settled: list[Outcome] = []
    ways: dict[str, Status | None] = {}
    for write in lineage:
        datastore = write.datastore
        if datastore not in ways:
            wanted = not off and asked(datastore)
            ways[datastore] = _way(datastore, at) if wanted else Status.EXCLUDED
        way = ways[datastore]
        if way is None:
            pending[datastore].add(write)
        else:
            settled.append(_settled(write, way, _CAUSES, reports=only is None))
    for promise in lineage.promises:
        if promise.name in own:
            settled.append(Outcome(promise, Status.EXCLUDED, cause="this branch fulfils it"))
            continue
        wanted = not off and asked(promise.datastore)
        way = _promised(promise, at, now_s) if wanted else Status.EXCLUDED
        if way is None:
            pending[promise.datastore].add(promise)
        else:
            settled.append(_settled(promise, way, _PROMISES, reports=only is None))
    missing = frozenset(mark for mark in _missing(lineage) if not off and asked(mark.subject))
    fenced, unmade = _fenced(missing, at), _unmade(settled) if settled else {}
    if (pending or fenced) and at == "read" and scope_in() is None:
        msg = "barrier(at='read') leaves a floor for later reads: call it within antipode.scope()"
        raise ConfigurationError(msg)
    return Plan(
        {datastore: frozenset(found) for datastore, found in pending.items()},
        tuple(settled),
        missing,
        frozenset(name for name in {*pending, *fenced, *unmade} if _is_floored(name)),
        unmade,
        fenced,
    )


def _unmade(settled: Iterable[Outcome]) -> dict[str, frozenset[Dependency]]:
    """What is not waited for, since no client is made yet that could be waited at now."""
    unmade: defaultdict[str, set[Dependency]] = defaultdict(set)
    for outcome in settled:
        name = outcome.write.datastore
        if outcome.status is Status.UNKNOWN_STORE and _is_unmade(name):
            unmade[name].add(outcome.write)
    return {name: frozenset(found) for name, found in unmade.items()}


def absent_of(lineage: Lineage, *, own: AbstractSet[PromiseName] = frozenset()) -> list[Dependency]:
    """What *lineage* has of datastores that are unknown here: no shim, and no rule names them.

    *own* are the promises that who waits is about to fulfil.
    """
    promises = [each for each in lineage.promises if each.name not in own]
    found: list[Dependency] = [*lineage, *promises]
    return [each for each in found if not (shims_of(each.datastore) or is_ruled(each.datastore))]


def tell_of_unknown_stores(names: Iterable[str]) -> None:
    """Count, and once for each name log, datastores that are unknown here and were let pass."""
    for name in frozenset(names):
        count("unknown_store", name)
        message = "a lineage depends on %r and it was let pass: %s"
        log_once("unknown_store", name, "", message, name, _absence(name))


def _fenced(missing: frozenset[Incomplete], at: At) -> dict[str, frozenset[Incomplete]]:
    """The marks that waiting for the primary's current position discharges.

    Those of entries that a size limit dropped and of reads that were not sampled; never those of
    writes in doubt, which may still commit after the fence.
    """
    fenced: dict[str, frozenset[Incomplete]] = {}
    for name in {mark.subject for mark in missing if mark.reason in DISCHARGED_BY_FENCE}:
        if any(shim.fences for shim in shims_of(name)) and _way(name, at) is None:
            marks = {Incomplete(name, reason) for reason in DISCHARGED_BY_FENCE}
            fenced[name] = missing & marks
    return fenced


ABSENT = "this process has no shim for it"
_LACKING = 'a rule names it, and no client of it is installed: pip install "antipode-xcy[{}]"'
_UNAPPLIED = "a rule names it, and no client of {} is instrumented by rules: call antipode.setup()"
_CAUSES = {
    Status.UNKNOWN_STORE: (
        "nothing that is registered can wait for it; where only a read shows which server answers, "
        "wait at='read' within antipode.scope()"
    ),
    Status.NOT_WAITABLE: "a message store without receipts",
}
_PROMISES = {
    **_CAUSES,
    Status.ABANDONED: "it expired, and nothing registered can ask whether it was fulfilled",
    Status.UNDECIDABLE: "what is registered cannot ask for promises",
}


def _settled(
    dependency: Dependency, way: Status, causes: dict[Status, str], *, reports: bool
) -> Outcome:
    """The outcome *way* of *dependency*.

    A datastore of which this process has nothing is another team's, most likely: that is
    reported, unless it was asked for by name, or nothing that can be waited for was set up here.
    One that a rule names is reported in any case where its reads wait; of messages with receipts
    nothing waits, so that who asked for them by name has an error.
    """
    name = dependency.datastore
    if way is Status.UNKNOWN_STORE and not shims_of(name):
        if holds_reads(name):
            return Outcome(dependency, way, cause=NOT_MADE, reported=True)
        if has_receipts(name):
            return Outcome(dependency, way, cause=NOT_HEARD, reported=reports)
        reports = reports and (waits_for_any() or waits_for_ruled())
        return Outcome(dependency, way, cause=_absence(name), reported=reports)
    return Outcome(dependency, way, cause=causes.get(way, ""))


def _absence(datastore: str) -> str:
    """Why nothing can be waited for of *datastore*, which has no shim here."""
    store = unapplied(datastore)
    if store is None:
        return ABSENT
    return (_LACKING if lacks(store) else _UNAPPLIED).format(store)


def _is_unmade(datastore: str) -> bool:
    """Whether *datastore* has no shim yet, and can be waited for once it has one."""
    return not shims_of(datastore) and (holds_reads(datastore) or has_receipts(datastore))


def _is_floored(datastore: str) -> bool:
    return any(shim.floors for shim in shims_of(datastore)) or holds_reads(datastore)


def _way(datastore: str, at: At) -> Status | None:
    """None where writes of *datastore* can be waited for, else their outcome."""
    shims = shims_of(datastore)
    if not any(shim.waitable for shim in shims) and (shims or never_waits(datastore)):
        return Status.NOT_WAITABLE
    can_wait = _is_floored(datastore) if at == "read" else _can_look(datastore)
    return None if can_wait else Status.UNKNOWN_STORE


def _can_look(datastore: str) -> bool:
    """Whether ``at="now"`` can wait for *datastore*.

    A primary stands for replicas that cannot be polled only where a floor is left for their reads.
    """
    looking = looking_shim(datastore)
    if looking is None:
        return False
    replica = looking.reads_from == "replica"
    return replica or scope_in() is not None or not reads_elsewhere(datastore)


def _promised(promise: Promise, at: At, now_s: float) -> Status | None:
    """None where *promise* can be waited for, else its outcome.

    One that expired is asked for all the same: what was fulfilled in time is visible for as
    long as the store remembers it.
    """
    shims = shims_of(promise.datastore)
    if not shims:
        asked = asks_promises(promise.datastore) or not holds_reads(promise.datastore)
        return _way(promise.datastore, at) if asked else Status.UNDECIDABLE
    if at == "read":
        can_look = any(shim.floors and shim.promises for shim in shims)
    else:
        looking = looking_shim(promise.datastore)
        can_look = looking is not None and looking.promises and _can_look(promise.datastore)
    if can_look:
        return None
    if not any(shim.waitable for shim in shims):
        return Status.NOT_WAITABLE
    if promise.expires_s + PROMISE_GRACE_S < now_s:
        return Status.ABANDONED
    return _way(promise.datastore, at) or Status.UNDECIDABLE


def _missing(lineage: Lineage) -> frozenset[Incomplete]:
    """What *lineage* misses.

    An item of an unknown kind may be a dependency, so it counts as missing, unless its kind is
    a digit: the format reserves those for items that are none.
    """
    if unjudged := [item for item in lineage.unknown if may_be_dependency(item)]:
        return lineage.incomplete | {Unjudged.of(unjudged)}
    return lineage.incomplete
