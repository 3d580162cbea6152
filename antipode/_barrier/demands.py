"""What barriers demand that the next reads of a request see, by datastore and by who asked."""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING

from antipode._lineage.write_id import Promise, WriteId

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from antipode._lineage.unmet_errors import UnmetError
    from antipode._lineage.write_id import Dependency
    from antipode._request.scope import Scope
    from antipode._runtime.clock import Allowance

    from .decisions import Policies
    from .unmade import Awaited

#: Seconds that a poll gets although the time is up.
LEAST_LOOK_S = 0.05


class Demand:
    """What a barrier that was called wants the next reads of a datastore to see.

    Attributes:
        writes: to be visible.
        promises: to be fulfilled; none where no shim of the datastore asks for them.
        policies: by which outcomes are judged.
        allowance: seconds for holding reads back.
        automatic: whether no barrier was called: reads wait automatically.
        raises: whether a read that is not shown all of it raises, instead of being answered.
        moves: whether such a read may be made at the primary instead.
        least_look_s: how long a poll may last although the time is up, in seconds.
        awaited: what was left before a client was made.
    """

    awaited: tuple[Awaited, ...] = ()
    automatic = False
    raises = True
    moves = False
    least_look_s = LEAST_LOOK_S

    def __init__(
        self,
        wanted: Iterable[Dependency],
        *,
        policies: Policies,
        allowance: Allowance,
        proved: Mapping[str, float] | None = None,
    ) -> None:
        """Demand *wanted*, which each of the servers *proved* showed at that time."""
        self.wanted = frozenset(wanted)
        self.writes = frozenset(each for each in self.wanted if isinstance(each, WriteId))
        self.promises = frozenset(each for each in self.wanted if isinstance(each, Promise))
        self.policies = policies
        self.allowance = allowance
        self._proved = dict(proved or {})

    def prove(self, server: str, now_s: float) -> None:
        """Note that *server* shows all of it."""
        self._proved = {**self._proved, server: now_s}

    def marked(self, error: UnmetError) -> UnmetError:
        """The *error* of a read that is not shown all of it: where it may be made instead."""
        error.at_primary = self.moves
        return error

    def meet(self) -> None:
        """Note that a client reads where the demand was left before that was made."""
        for each in self.awaited:
            each.met = True

    @property
    def shown(self) -> bool:
        """Whether some server showed all of it."""
        return bool(self._proved)

    def proved_s(self, server: str) -> float:
        """When *server* showed all of it last; long ago where it never did."""
        return self._proved.get(server, -math.inf)

    def joined(self, later: Demand) -> Demand:
        """Both; the later barrier's time and policies hold."""
        both = self._proved.keys() & later._proved.keys()
        joined = Demand(
            self.wanted | later.wanted,
            policies=later.policies,
            allowance=later.allowance,
            proved={each: min(self._proved[each], later._proved[each]) for each in both},
        )
        joined.awaited = (*self.awaited, *later.awaited)
        return joined

    def branched(self, own: Collection[str]) -> Demand | None:
        """The same for a branch that fulfils the promises of the ids *own* itself."""
        left = self.wanted - {each for each in self.promises if each.id in own}
        branched = Demand(
            left, policies=self.policies, allowance=self.allowance, proved=self._proved
        )
        branched.awaited = self.awaited
        return branched


class Demands:
    """The demands of one request, by datastore and by who asked. Never changed."""

    def __init__(self, of: Mapping[tuple[str, bool], Demand]) -> None:
        """Keep *of*: by datastore, and whether the demand is automatic."""
        self.of = of

    @property
    def demanded(self) -> frozenset[Dependency]:
        """What barriers that were called want reads to see."""
        called = (each.wanted for each in self.of.values() if not each.automatic)
        return frozenset(chain.from_iterable(called))

    def joined(self, later: Demands) -> Demands:
        """Both: reads wait for *later* on top of these."""
        both = dict(self.of)
        for key, demand in later.of.items():
            held = both.get(key)
            both[key] = demand if held is None else held.joined(demand)
        return Demands(both)

    def branched(self, own: frozenset[str]) -> Demands:
        """These for a branch that fulfils the promises of the ids *own* itself."""
        branched = ((key, demand.branched(own)) for key, demand in self.of.items())
        return Demands({key: demand for key, demand in branched if demand is not None})

    def ended(self) -> None:
        """The request is over: report floors that waited for a client which never read."""
        for demand in self.of.values():
            for each in demand.awaited:
                each.ended()


def leave(scope: Scope, datastore: str, demand: Demand) -> None:
    """Make the next reads of *datastore* wait for *demand*, on top of what they wait for."""
    scope.attach(Demands, Demands({(datastore, demand.automatic): demand}))


def demanded_in(scope: Scope, datastore: str, *, automatic: bool = False) -> Demand | None:
    """What barriers that were called, or *automatic* ones, demand of reads; None when nothing."""
    attached = scope.attached
    if not attached:  # As for most reads.
        return None
    demands = attached.get(Demands)
    return demands.of.get((datastore, automatic)) if isinstance(demands, Demands) else None
