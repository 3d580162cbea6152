"""One store under two names: searched for before a datastore that is unknown here is let pass."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from antipode._lineage.errors import ConfigurationError
from antipode._lineage.outcomes import Outcome, Status
from antipode._lineage.write_id import WriteId
from antipode._runtime.metrics import count, log_once

from .decisions import MOST_POLL_S, Policies, Wait
from .registry import looking_shim, registered
from .waiter import Waiter

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from antipode._lineage.write_id import Dependency
    from antipode._runtime.clock import Clock

    from .store import Store

#: What a server says of the first position of a log that it has. Only `unknown_log` says that it
#: does not have it; anything else is no answer.
HAS_LOG = frozenset({Status.VISIBLE, Status.LOST})
#: How often reads of a datastore had stores asked for a name; names come from outside as well.
_tries: dict[tuple[str, str], int] = {}
_MOST_TRIES = 5
_MOST_NAMES = 100


class Comparison:
    """One poll of each registered store: does it have the logs of unknown datastores?

    Stores are asked whose logs have names that no other's can have.
    """

    def __init__(
        self, strangers: Iterable[WriteId], *, policies: Policies, clock: Clock, timeout_s: float
    ) -> None:
        """Prepare the polls for the logs of *strangers*, which take *timeout_s* at most."""
        self._clock = clock
        now_s = clock.monotonic()
        asked: defaultdict[Dependency, list[tuple[WriteId, Store]]] = defaultdict(list)
        pending: defaultdict[str, set[WriteId]] = defaultdict(set)
        stores = list(_stores())
        for stranger in strangers:
            for store in stores:
                start = store.log_start(stranger.key)
                if start is not None and not store.watcher.lacks(start):
                    pending[store.datastore].add(start)
                    asked[start].append((stranger, store))
        self._asked = dict(asked)
        self._wait = Wait(
            pending,
            policies=replace(policies, on_unknown="raise"),
            now_s=now_s,
            unix_s=clock.unix_s(),
            timeout_s=timeout_s,
        )

    def __bool__(self) -> bool:
        """Whether anybody has to be asked."""
        return bool(self._asked)

    def waiter(self, notify: Callable[[], None]) -> Waiter:
        """What connects the polls to the watchers."""
        return Waiter(self._wait, notify, clock=self._clock, once=True)

    def outcomes(self) -> list[Outcome]:
        """Those of the unknown writes whose log a registered store has."""
        found: list[Outcome] = []
        for shown in self._wait.result(self._clock.monotonic()).outcomes:
            if shown.status in HAS_LOG:
                for stranger, store in self._asked[shown.write]:
                    cause = f"the store that is registered here as {store.datastore!r} has its log"
                    found.append(Outcome(stranger, Status.UNKNOWN_STORE, cause=cause))
        return found


def unsearched(strangers: Iterable[Dependency], reader: str) -> list[WriteId]:
    """Those of *strangers*, of datastores unknown here, to :func:`search` at a read of *reader*.

    A few times each: a client may be closed before it has answered.
    """
    found = [
        each
        for each in strangers
        if isinstance(each, WriteId) and _tries.get((each.datastore, reader), 0) < _MOST_TRIES
    ]
    if not found or len(_tries) >= _MOST_NAMES:
        return []
    for pair in {(each.datastore, reader) for each in found}:
        _tries[pair] = _tries.get(pair, 0) + 1
    return found


def search(
    strangers: Collection[WriteId], reader: str, *, clock: Clock, tell: Callable[[Outcome], None]
) -> None:
    """Have stores asked in the background whether they have the logs of *strangers*.

    Args:
        strangers: of :func:`unsearched`.
        reader: as there.
        clock: of who reads.
        tell: is called, from any thread, with an outcome whose cause names the store, once for
            each datastore that has two names.
    """
    policies = Policies("return", "raise", "report", horizon_h=math.inf, hour=clock.hour())
    found = Comparison(strangers, policies=policies, clock=clock, timeout_s=MOST_POLL_S)

    def answered() -> None:
        for outcome in found.outcomes():
            pair = outcome.write.datastore, reader
            if _tries[pair] <= _MOST_TRIES:  # Else another read asked as well, and was told.
                _tries[pair] = _MOST_TRIES + 1
                tell(outcome)

    if found:
        found.waiter(answered).subscribe()


def tell_of_twin(outcome: Outcome) -> None:
    """Count and log that a datastore of a lineage is a store of this process by another name."""
    name = outcome.write.datastore
    count("two_names", name)
    message = "a lineage depends on %r, and %s: one store has two names; spell it alike"
    log_once("two_names", name, outcome.cause, message, name, outcome.cause)


def _stores() -> Iterator[Store]:
    """The stores that can be asked."""
    for name in registered():
        try:
            store = looking_shim(name)
        except ConfigurationError:  # Two replicas: a barrier that waits for them says so.
            continue
        if store is not None:
            yield store
