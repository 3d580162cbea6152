"""Automatic barriers: each read waits for what its request depends on, where it reads."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from antipode._lineage.errors import ConfigurationError
from antipode._lineage.outcomes import Status
from antipode._lineage.unmet_errors import UnmetError, error_of
from antipode._lineage.write_id import Promise, WriteId
from antipode._runtime import observers
from antipode._runtime.config import config
from antipode._runtime.metrics import count, log_seldom

from .decisions import Policies, Wait
from .floor import Floor
from .plan import absent_of, plan, tell_of_unknown_stores

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from antipode._lineage.errors import StaleSnapshot
    from antipode._lineage.lineage import Lineage
    from antipode._lineage.write_id import Dependency
    from antipode._request.scope import Scope
    from antipode._runtime.clock import Allowance
    from antipode._runtime.config import Config
    from antipode._runtime.observers import Client

    from .contract import Observation, Unreachable
    from .floor import Observe, ObserveAsync
    from .store import Store
    from .watcher import Watcher

_NOTHING: frozenset[Dependency] = frozenset()
_block: ContextVar[Literal["auto", "off"] | None] = ContextVar("antipode_barriers", default=None)


@contextmanager
def barriers(which: Literal["auto", "off"]) -> Generator[None]:
    """Have automatic barriers, or none, in a block, whatever is configured.

    Explicit barriers in it are as they are. Threads that are started in the block have the setting
    as far as they get its ``contextvars`` context; tasks of asyncio do.

    Args:
        which: ``auto``: reads of instrumented clients wait for what their request depends on;
            ``off``: they do not.

    Raises:
        ConfigurationError: *which* is neither.
    """
    if which not in ("auto", "off"):
        msg = f"barriers must be 'auto' or 'off', not {which!r}"
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
    """Whether reads of *shim*'s clients wait by themselves, here and now."""
    return chosen(shim) and config().mode == "enforce"


def automatic_floor(
    scope: Scope, shim: Store, explicit: Floor | None, *, reads: bool
) -> Floor | None:
    """What the next read by a client of *shim* must see: what *explicit* demands, and the rest.

    Args:
        scope: of the request.
        shim: whose client reads.
        explicit: the floor that a barrier left; None without one.
        reads: whether this is a read, and none of which the same was asked already.

    Raises:
        UnmetError: it is known without a look that something cannot be seen, and
            ``on_stale="raise"`` is configured.
    """
    lineage, settings = scope.known, config()  # What reads deferred would have to be asked for.
    if lineage.empty:
        return explicit
    attached = scope.attached.get(Demands)
    held = attached.of.get(shim.datastore) if isinstance(attached, Demands) else None
    if held is None or held.lineage is not lineage or held.settings is not settings:
        held = Demand(scope, shim, lineage, settings).kept_from(held)
        scope.attach(Demands, Demands({shim.datastore: held}))
    if reads:
        if held.unknown:
            tell_of_unknown_stores(held.unknown)
        if (error := held.hopeless) is not None:
            served(error, shim.datastore, settings)
    if not (held.writes or held.promises):
        return explicit
    if explicit is not None and held.within(explicit):
        return explicit
    return AutomaticFloor(held, scope.allowance(), shim, explicit)


def served(error: UnmetError | StaleSnapshot, datastore: str, settings: Config) -> None:
    """Answer a read all the same, and say so.

    Raises:
        UnmetError: *error*, where that is configured.
    """
    if settings.on_stale == "raise" and isinstance(error, UnmetError):
        raise error
    count("served_stale", datastore)
    observers.telemetry.served(datastore, error.code)
    message = "a read of %r was answered although its request depends on more: %s"
    log_seldom("served_stale", datastore, message, datastore, error)


class Demands:
    """What the reads of one request wait for by themselves, by datastore. Never changed."""

    def __init__(self, of: Mapping[str, Demand]) -> None:
        """Keep *of*."""
        self.of = of

    def joined(self, later: Demands) -> Demands:
        """These, and *later* ones in their place."""
        return Demands({**self.of, **later.of})

    def branched(self, own: frozenset[str]) -> Demands:
        """None: a branch that fulfils the promises of the ids *own* waits for less."""
        del own
        return Demands({})


class Demand:
    """What reads of one datastore wait for while the lineage of their request is as it is.

    Attributes:
        lineage: of the request.
        settings: by which it was made.
        writes: to be visible.
        promises: to be fulfilled.
        proved: when each incarnation of a server showed all of it last.
        unknown: datastores of the lineage that are let pass: this process has no shim for them.
        policies: by which outcomes are judged, where there are any.
    """

    def __init__(self, scope: Scope, shim: Store, lineage: Lineage, settings: Config) -> None:
        """Find out what *lineage* demands of *shim*."""
        self.lineage = lineage
        self.settings = settings
        self.writes: frozenset[WriteId] = frozenset()
        self.promises: frozenset[Promise] = frozenset()
        self.proved: dict[str, float] = {}
        self._hopeless: Wait | None = None
        absent = absent_of(lineage, own=scope.own)
        reported = settings.on_unknown != "raise"
        self.unknown = frozenset(each.write.datastore for each in absent if reported)
        if not (absent or _concerns(lineage, shim.datastore)):
            return  # As most requests at most stores: what follows is not for them.
        clock = shim.clock
        self.policies = Policies(
            on_unmet="raise",
            on_unknown=settings.on_unknown,
            on_incomplete=settings.on_incomplete,
            horizon_h=settings.horizon.total_seconds() / 3600,
            hour=clock.hour(),
        )
        found = plan(
            lineage,
            only={shim.datastore},
            exclude=frozenset(),
            at="read",
            off=False,
            now_s=clock.unix_s(),
            own=scope.own,
        )
        asked = found.pending.get(shim.datastore, _NOTHING)
        self.writes = frozenset(each for each in asked if isinstance(each, WriteId))
        self.promises = frozenset(each for each in asked if isinstance(each, Promise))
        hopeless = Wait(
            {},
            settled=[
                *(each for each in found.settled if each.status is not Status.EXCLUDED),
                *(replace(each, reported=reported) for each in absent),
            ],
            incomplete=found.incomplete,
            policies=self.policies,
            now_s=clock.monotonic(),
            unix_s=clock.unix_s(),
            timeout_s=0.0,
        )
        if not hopeless.result(hopeless.started_s).ok:
            self._hopeless = hopeless

    @property
    def hopeless(self) -> UnmetError | None:
        """The error of what no look can show; None where there is no such thing."""
        wait = self._hopeless
        return None if wait is None else error_of(wait.result(wait.started_s))

    def within(self, floor: Floor) -> bool:
        """Whether *floor* demands all of it, too."""
        return self.writes <= floor.writes and self.promises <= floor.promises

    def kept_from(self, earlier: Demand | None) -> Demand:
        """This one, which knows what *earlier* has seen where that demands the same."""
        if earlier is not None and (self.writes, self.promises) == (
            earlier.writes,
            earlier.promises,
        ):
            self.proved = earlier.proved
        return self


def _concerns(lineage: Lineage, datastore: str) -> bool:
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


class AutomaticFloor(Floor):
    """What an automatic barrier demands of one read, on top of an explicit one's floor.

    Its time is the request's. When that is used up, or no look can help, the read is answered all
    the same, and counted, unless ``on_stale="raise"`` is configured.
    """

    #: A server that is far away is asked all the same, instead of giving its connection up.
    least_look_s = 0.5

    def __init__(
        self, demand: Demand, allowance: Allowance, shim: Store, below: Floor | None
    ) -> None:
        """Demand what *demand* and *below*, an explicit floor, do."""
        writes, promises = demand.writes, demand.promises
        proved = demand.proved
        if below is not None:
            writes, promises = writes | below.writes, promises | below.promises
            proved = {one: proved[one] for one in proved.keys() & below.proved_on}
        super().__init__(
            shim.datastore,
            writes,
            timeout_s=0.0,
            policies=demand.policies,
            promises=promises,
            clock=shim.clock,
        )
        self._proved = proved
        self._allowance = allowance
        self._demand = demand
        self._below = below

    @property
    def left_s(self) -> float:
        """Seconds left for holding reads back."""
        own_s = super().left_s
        return own_s if self._below is None else max(own_s, self._below.left_s)

    @property
    def stages(self) -> tuple[Floor, ...]:
        """The explicit floor first, where there is one."""
        return (self,) if self._below is None else (self._below, self)

    def accepts(self, observation: Observation) -> bool:
        """Whether a read made at or after this look may be answered.

        Raises:
            UnmetError: waiting longer cannot help, and the read is not to be answered.
        """
        if self._below is not None and not self._below.accepts(observation):
            return False
        if self.served:
            return True
        now_s = self._clock.monotonic()
        wait = self._wait(now_s)
        if self._judge(wait, observation):
            return True
        if wait.deadline_s > now_s or (error := error_of(wait.result(now_s))) is None:
            return False
        self._fail(error)  # Another look would be for nothing.
        return True

    def hold(self, observe: Observe, *, watcher: Watcher | None = None) -> None:
        """Hold a read back, for the explicit floor first."""
        if self._below is not None:
            self._below.hold(observe, watcher=watcher)
        if not self.served:
            super().hold(observe, watcher=watcher)

    async def hold_async(self, observe: ObserveAsync, *, watcher: Watcher | None = None) -> None:
        """The asyncio twin of :meth:`hold`."""
        if self._below is not None:
            await self._below.hold_async(observe, watcher=watcher)
        if not self.served:
            await super().hold_async(observe, watcher=watcher)

    def expire(self, cause: Unreachable) -> None:
        """End a read whose own connection showed nothing until the time was up.

        Raises:
            BarrierTimeout: for the explicit floor, or unless such reads are answered.
        """
        if self._below is not None:
            self._below.expire(cause)
        super().expire(cause)

    def _raise_if_over(self, wait: Wait, cause: Unreachable) -> None:
        if self._demand.settings.on_stale == "raise":
            super()._raise_if_over(wait, cause)
        # Else the client's own error follows: there is nothing that could be served.

    def fail_snapshot(self, error: StaleSnapshot, shows: Callable[[Floor], bool]) -> None:
        """Answer a read whose snapshot is too old, as far as no explicit floor is against it.

        Raises:
            StaleSnapshot: *error*, where there is an explicit floor that it may not show.
        """
        if self._below is not None and not shows(self._below):
            raise error
        self._served(error)

    def _prove(self, server: str, now_s: float) -> None:
        self._demand.proved = {**self._demand.proved, server: now_s}

    def _fail(self, error: UnmetError) -> None:
        self._served(error)

    def _served(self, error: UnmetError | StaleSnapshot) -> None:
        if not self.served:
            self.served = True
            served(error, self.datastore, self._demand.settings)
