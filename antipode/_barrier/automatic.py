"""Automatic barriers: each read waits for what its request depends on, where it reads."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal

from antipode._lineage.errors import ConfigurationError
from antipode._lineage.outcomes import Outcome, Status
from antipode._lineage.unmet_errors import error_of
from antipode._runtime.config import config

from .decisions import Policies, Wait
from .demands import Demand, demanded_in, leave
from .plan import ABSENT, absent_of, plan

if TYPE_CHECKING:
    from collections.abc import Collection, Generator

    from antipode._lineage.lineage import Lineage
    from antipode._lineage.unmet_errors import UnmetError
    from antipode._lineage.write_id import Dependency
    from antipode._request.scope import Scope
    from antipode._runtime.config import Config
    from antipode._runtime.observers import Client

    from .store import Store

_block: ContextVar[Literal["auto", "explicit"] | None] = ContextVar(
    "antipode_barriers", default=None
)


@contextmanager
def barriers(which: Literal["auto", "explicit"]) -> Generator[None]:
    """Have automatic barriers, or none, in a block, whatever is configured.

    Explicit barriers in it are as they are. Threads that are started in the block have the setting
    as far as they get its ``contextvars`` context; tasks of asyncio do.

    Args:
        which: ``auto``: reads of instrumented clients wait for what their request depends on;
            ``explicit``: they do not.

    Raises:
        ConfigurationError: *which* is neither.
    """
    if which not in ("auto", "explicit"):
        msg = f"barriers must be 'auto' or 'explicit', not {which!r}"
        raise ConfigurationError(msg)
    token = _block.set(which)
    try:
        yield
    finally:
        _block.reset(token)


def chosen(client: Client) -> bool:
    """Whether automatic barriers are chosen for reads by *client*, here and now, in any mode."""
    return (_block.get() or client.barriers or config().barriers) == "auto"


def applies(shim: Store) -> bool:
    """Whether reads of *shim*'s clients wait automatically, here and now."""
    settings = config()  # The same as `chosen`, which each read would call.
    return (_block.get() or shim.barriers or settings.barriers) == "auto" and (
        settings.mode == "enforce"
    )


def demand_of(scope: Scope, shim: Store, called: Demand | None) -> AutomaticDemand | None:
    """What the next read by a client of *shim* must see besides *called*; None: nothing at all.

    Args:
        scope: of the request.
        shim: whose client reads.
        called: what barriers that were called demand; None without one.
    """
    lineage, settings = scope.known, config()  # What reads deferred would have to be asked for.
    if lineage.empty:
        return None
    held = demanded_in(scope, shim.datastore, automatic=True)
    earlier = held if isinstance(held, AutomaticDemand) else None
    moves = settings.on_stale == "primary" and shim.reads_from == "replica"
    if earlier is not None and earlier.is_of(lineage, settings, called) and earlier.moves is moves:
        return earlier
    made = AutomaticDemand(scope, shim, lineage, settings, called)
    if earlier is not None:
        made.keep(earlier)
    leave(scope, shim.datastore, made)
    return made


class AutomaticDemand(Demand):
    """What reads of one datastore wait for automatically while their request depends on the same.

    Its time is the request's. When that is used up, or no poll can help, the read is answered all
    the same, and counted, with ``on_stale="serve"``.

    Attributes:
        unknown: datastores of the lineage that are let pass: this process has no shim for them.
        strangers: what the lineage has of such datastores, let pass or not.
    """

    automatic = True
    #: A server that is far away is asked all the same, instead of giving its connection up.
    least_look_s = 0.5

    def __init__(
        self,
        scope: Scope,
        shim: Store,
        lineage: Lineage,
        settings: Config,
        called: Demand | None,
    ) -> None:
        """Find out what *lineage* demands of *shim* that *called* does not."""
        self._of = (lineage, settings, called)
        self.moves = settings.on_stale == "primary" and shim.reads_from == "replica"
        self._hopeless: Wait | None = None
        self.wanted: frozenset[Dependency] = frozenset()
        absent = absent_of(lineage, own=scope.own)
        reported = settings.on_unknown != "raise"
        self.strangers = absent
        self.unknown = frozenset(each.datastore for each in absent) if reported else frozenset()
        if (reported or not absent) and not concerns(lineage, shim.datastore):
            return  # As most requests at most stores: what follows is not for them.
        now_s, unix_s = shim.clock.monotonic(), shim.clock.unix_s()
        policies = Policies(
            on_unmet="raise",
            on_unknown=settings.on_unknown,
            on_incomplete=settings.on_incomplete,
            horizon_h=settings.horizon.total_seconds() / 3600,
            hour=shim.clock.hour(),
        )
        found = plan(
            lineage,
            only={shim.datastore},
            exclude=frozenset(),
            at="read",
            off=False,
            now_s=unix_s,
            own=scope.own,
        )
        hopeless = Wait(
            {},
            settled=[
                *(each for each in found.settled if each.status is not Status.EXCLUDED),
                *(
                    Outcome(each, Status.UNKNOWN_STORE, cause=ABSENT, reported=reported)
                    for each in absent
                ),
            ],
            incomplete=found.incomplete,
            policies=policies,
            now_s=now_s,
            unix_s=unix_s,
            timeout_s=0.0,
        )
        if not hopeless.result(now_s).ok:
            self._hopeless = hopeless
        asked = found.pending.get(shim.datastore, frozenset())
        super().__init__(
            asked if called is None else asked - called.wanted,
            policies=policies,
            allowance=scope.allowance(),
        )
        self.raises = settings.on_stale == "raise" or self.moves

    def is_of(self, lineage: Lineage, settings: Config, called: Demand | None) -> bool:
        """Whether it was made of these."""
        of = self._of
        return of[0] is lineage and of[1] is settings and of[2] is called

    def keep(self, earlier: AutomaticDemand) -> None:
        """Know what *earlier* has seen where that demands the same."""
        if self.wanted and self.wanted == earlier.wanted:
            self._proved = earlier._proved

    @property
    def flawed(self) -> bool:
        """Whether there is something that no poll can show."""
        return self._hopeless is not None

    @property
    def flaw(self) -> UnmetError | None:
        """The error of what no poll can show; None where there is no such thing."""
        wait = self._hopeless
        error = None if wait is None else error_of(wait.result(wait.started_s))
        return error if error is None else self.marked(error)

    def joined(self, later: Demand) -> Demand:
        """The *later* one: it is of more."""
        return later

    def branched(self, own: Collection[str]) -> None:
        """None: a branch that fulfils the promises of the ids *own* waits for less."""
        del own


def concerns(lineage: Lineage, datastore: str) -> bool:
    """Whether anything in *lineage* is of *datastore*, or of any."""
    if lineage.unknown or lineage.promises:
        return True
    for mark in lineage.incomplete:
        if mark.subject in ("", datastore):
            return True
    for write in lineage:  # noqa: SIM110 - a generator takes longer than a short lineage
        if write.datastore == datastore:
            return True
    return False
