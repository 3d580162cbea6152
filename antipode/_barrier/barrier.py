"""``barrier`` and ``check``: wait until a lineage is visible where the caller will read."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from antipode._lineage.errors import ConfigurationError
from antipode._lineage.outcomes import Outcome, Status, describe
from antipode._lineage.unmet_errors import VisibilityCheckError, error_of
from antipode._lineage.write_id import Promise, WriteId
from antipode._request.context import scope_in
from antipode._request.open_writes import open_in, tell_of_unseen
from antipode._request.scope import BRANCHED
from antipode._runtime import observers
from antipode._runtime.call_site import call_site
from antipode._runtime.clock import SYSTEM_CLOCK, Allowance, NoThread, start
from antipode._runtime.config import MODES, config
from antipode._runtime.metrics import count, log_once, logger

from .arguments import bounded, lineage_of, names_of, one_of, tell_of_stall
from .decisions import CONNECT_S, MOST_POLL_S, Policies, Wait
from .demands import Demand, leave
from .plan import plan, tell_of_unknown_stores
from .registry import is_seen_by_reads_alone, primaries_of, shims_of
from .waiter import Waiter, one_server, wait_async, wait_here

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType

    from antipode._lineage.lineage import Lineage
    from antipode._lineage.outcomes import BarrierResult
    from antipode._lineage.write_id import Dependency
    from antipode._request.scope import Scope
    from antipode._runtime.clock import Clock
    from antipode._runtime.config import Mode, Policy

    from .aliases import Comparison
    from .arguments import Names
    from .decisions import OnUnmet
    from .fence import Fence
    from .plan import At, Plan


class Barrier:
    """One call of ``barrier`` or ``check``: what its APIs have in common.

    Attributes:
        wanted: its plan, or what that would be without a dry run.
        dry: whether it waits for nothing because of a dry run.
        checks: whether it is a check.
        hasty: whether it ends as soon as no server is there: its caller has another way to go.
        site: who called, where a dry run wants to know.
    """

    hasty = False
    site: FrameType | None = None
    #: Branches of its request that run, besides its own.
    _running = 0

    def __init__(
        self,
        lineage: Lineage | str | None,
        *,
        timeout: float,
        only: Names | None = None,
        exclude: Names = (),
        at: At = "now",
        on_unmet: OnUnmet = "raise",
        on_unknown: Policy | None = None,
        on_incomplete: Policy | None = None,
        mode: Mode | None = None,
        clock: Clock = SYSTEM_CLOCK,
        checks: bool = False,
    ) -> None:
        """Plan the wait; see :func:`barrier` for the arguments and errors."""
        settings = config()
        one_of("at", at, ("now", "read"))
        one_of("on_unmet", on_unmet, ("raise", "return"))
        one_of("on_unknown", on_unknown, (None, "raise", "report"))
        one_of("on_incomplete", on_incomplete, (None, "raise", "report"))
        one_of("mode", mode, (None, *MODES))
        self.timeout_s = bounded(timeout, settings.max_timeout)
        self.scope = scope_in()
        self.at: At = at
        self.checks = checks
        self.only = None if only is None else names_of(only)
        self.exclude = names_of(exclude)
        self.mode = mode or settings.mode
        self.dry = self.mode == "dry-run"
        if (observer := observers.dry_run) is not None:
            self.site = observer.site()
        self._clock = clock
        self._policies = Policies(
            on_unmet=on_unmet,
            on_unknown=on_unknown or settings.on_unknown,
            on_incomplete=on_incomplete or settings.on_incomplete,
            horizon_h=settings.horizon.total_seconds() / 3600,
            hour=clock.hour(),
        )
        about = lineage_of(lineage, self.scope, self.mode, clock)
        self._open_branches = about._open_branches  # noqa: SLF001 - every barrier would pay
        if BRANCHED[0] and lineage is None and self.scope is not None:
            self._running = self.scope.other_branches
            self._open_branches = max(self._open_branches, self._running)
        self.plan = self._planned(about, off=self.mode != "enforce")
        self.wanted = self._without_dry_run(about) if self.dry else self.plan
        self.wait = self._start()
        if self.scope is not None and self.mode != "off":
            self._tell_of_unseen(self.scope, None if lineage is None else about)

    def _planned(self, lineage: Lineage, *, off: bool) -> Plan:
        return plan(
            lineage,
            only=self.only,
            exclude=self.exclude,
            at=self.at,
            off=off,
            now_s=self._clock.unix_s(),
            own=frozenset() if self.scope is None else self.scope.own,
        )

    def _without_dry_run(self, lineage: Lineage) -> Plan:
        try:
            return self._planned(lineage, off=False)
        except ConfigurationError as error:  # Not raised here: it is said instead.
            logger.warning("this barrier would fail outside of the dry run: %s", str(error))
            return self.plan

    def _tell_of_unseen(self, scope: Scope, given: Lineage | None) -> None:
        """Report transactions of this request whose writes it cannot wait for: they are open."""
        named = None if given is None else {each.datastore for each in (*given, *given.promises)}
        for _, transaction in open_in(scope):
            name = transaction.datastore
            wanted = self.only is None or name in self.only
            if wanted and name not in self.exclude and (named is None or name in named):
                tell_of_unseen("barrier", scope, transaction)

    def _start(self) -> Wait:
        settled = list(self.plan.settled)
        if self.dry:
            settled = [replace(outcome, cause="dry run") for outcome in settled]
        pending = self.plan.pending
        later: dict[str, frozenset[Dependency]] = {}
        if self.at == "read":
            pending, later = later, pending
        elif self.checks:
            later = {name: pending[name] for name in pending if is_seen_by_reads_alone(name)}
        if later:
            settled += [
                Outcome(each, Status.DEFERRED) for found in later.values() for each in found
            ]
            pending = {name: pending[name] for name in pending if name not in later}
        return Wait(
            pending,
            settled=settled,
            incomplete=self.plan.incomplete,
            policies=self._policies,
            now_s=self._clock.monotonic(),
            unix_s=self._clock.unix_s(),
            timeout_s=self.timeout_s,
        )

    def _is_left_to_reads(self, datastore: str) -> bool:
        """Whether its reads wait, and this call does not.

        A check asks no primary what a replica shows: it has all that was written.
        """
        return self.at == "read" or (self.checks and is_seen_by_reads_alone(datastore))

    def comparison(self) -> Comparison | None:
        """Polls of what is registered: a datastore that is unknown here may be one of these."""
        if self._policies.on_unknown is not None:
            return None
        strangers = {
            outcome.write
            for outcome in self.plan.settled
            if outcome.reported and isinstance(outcome.write, WriteId)
        }
        if not strangers:
            return None
        from .aliases import Comparison  # Most processes never meet a datastore that is unknown.

        timeout_s = min(self.left_s, MOST_POLL_S)
        policies, clock = self._policies, self._clock
        return Comparison(strangers, policies=policies, clock=clock, timeout_s=timeout_s)

    def compared(self, comparison: Comparison) -> None:
        """Merge what it found.

        Raises:
            ConfigurationError: one store has two names, and the barrier raises what is unmet.
        """
        if not (found := comparison.outcomes()):
            return
        self.wait.unmet(found)
        for name in {each.write.datastore for each in found}:
            count("two_names", name)
        if self._policies.on_unmet == "raise":
            msg = f"{describe(found)}: one store has two names; spell it alike in every service"
            raise ConfigurationError(msg)

    def ask_fences(self) -> dict[str, list[Fence]]:
        """Begin to ask primaries for their positions, all at once."""
        within_s = self.fence_s
        return {
            name: [shim.fencer.ask(within_s) for shim in primaries_of(name)]
            for name in self.plan.fenced
        }

    @property
    def fence_s(self) -> float:
        """Seconds to wait for them: polls need time, too."""
        return min(self.left_s / 2, CONNECT_S)

    def raise_fences(self, fences: Mapping[str, list[Fence]]) -> None:
        """Wait for the positions that are there by now, in place of what was dropped.

        A primary that does not answer, or has no position, leaves the lineage incomplete, as it
        was: any of them may be the one that was written to.
        """
        for datastore, asked in fences.items():
            positions = [_position(datastore, fence) for fence in asked]
            writes = frozenset[WriteId]().union(*positions)
            if not writes or frozenset() in positions:
                count("fence_failed", datastore)
                continue
            count("fences", datastore)
            marks = self.plan.fenced[datastore]
            held = self.plan.pending.get(datastore, frozenset())
            self.plan.pending[datastore] = held | writes
            later = self._is_left_to_reads(datastore)
            self.wait.discharge(datastore, () if later else writes, marks)
            if later:
                self.wait.defer(writes)

    def not_started(self, cause: str) -> VisibilityCheckError:
        """The error of a barrier that nobody could begin to wait for."""
        now_s = self._clock.monotonic()
        for datastore in tuple(self.wait.pending):
            self.wait.failed(datastore, cause, now_s)
        return VisibilityCheckError(cause, self.wait.result(now_s))

    def waiter(self, notify: Callable[[], None], *, once: bool = False) -> Waiter:
        """What connects this barrier to the watchers."""
        return Waiter(self.wait, notify, clock=self._clock, once=once, hasty=self.hasty)

    @property
    def left_s(self) -> float:
        """Seconds until the deadline."""
        return max(self.wait.deadline_s - self._clock.monotonic(), 0.0)

    def conclude(self) -> BarrierResult:
        """The result, after leaving in the scope what later reads need.

        Raises:
            UnmetError: as :func:`barrier`.
        """
        result = self.wait.result(self._clock.monotonic())
        if self._open_branches and self.mode != "off":
            result = replace(result, open_branches=self._open_branches)
            if self._running and not self.hasty:
                _tell_of_branches(self._running)
        self._leave_aged(result)
        unknown = {
            outcome.write.datastore
            for outcome in result.outcomes
            if outcome.status is Status.UNKNOWN_STORE and outcome.reported
        }
        unmade = unknown & self.plan.unmade.keys()
        tell_of_unknown_stores(unknown - unmade)
        if unmade:
            from .unmade import tell_of_unmade

            for name in unmade:
                tell_of_unmade(name)
        error = error_of(result)
        if not self.hasty:  # That its caller goes another way is no failure of a barrier.
            count("barrier_ok" if error is None else f"barrier_{error.code}")
        if error is not None and self._policies.on_unmet == "raise":
            from .served import tell_of_unmet

            tell_of_unmet("barrier", error)  # What is returned is its caller's to use.
            raise error
        if error is None:
            self._leave_floors(result)
            if (observer := observers.dry_run) is not None and self.mode != "off":
                observer.barrier(self._observed())
        return result

    def _observed(self) -> observers.BarrierCall:
        wanted = self.wanted
        return observers.BarrierCall(
            request=self.scope,
            site=self.site,
            at=self.at,
            only=self.only,
            exclude=self.exclude,
            dry=self.dry,
            checks=self.checks,
            guards=tuple(chain.from_iterable((wanted.pending | wanted.unmade).values())),
            fenced=bool(wanted.fenced),
            settled=bool(wanted.settled),
        )

    def _leave_aged(self, result: BarrierResult) -> None:
        """Aged entries pass, are counted, and leave the scope."""
        aged = [outcome.write for outcome in result.outcomes if outcome.status is Status.AGED]
        for write in aged:
            count("aged", write.datastore)
        if aged and self.scope is not None:
            self.scope.remove(*(each for each in aged if isinstance(each, WriteId)))
            self.scope.forget(*(each for each in aged if isinstance(each, Promise)))

    def _leave_floors(self, result: BarrierResult) -> None:
        """Later reads may come by other connections: each satisfies the floor before it reads."""
        if self.scope is None:
            return
        for datastore, found in (self.plan.pending | self.plan.unmade).items():
            if datastore not in self.plan.floored:
                continue
            shims = [shim for shim in shims_of(datastore) if shim.floors]
            looked_for = any(shim.promises for shim in shims) if shims else True
            wanted = [each for each in found if looked_for or isinstance(each, WriteId)]
            if wanted:
                proved = dict.fromkeys(one_server(result, datastore), self._clock.monotonic())
                demand = Demand(
                    wanted,
                    policies=self._policies,
                    allowance=Allowance(self.timeout_s),
                    proved=proved,
                )
                if not shims:
                    from .unmade import Awaited

                    demand.awaited = (Awaited(datastore),)
                leave(self.scope, datastore, demand)


@observers.traced("barrier")
def barrier(
    lineage: Lineage | str | None = None,
    *,
    timeout: float,
    only: Names | None = None,
    exclude: Names = (),
    at: At = "now",
    on_unmet: OnUnmet = "raise",
    on_unknown: Policy | None = None,
    on_incomplete: Policy | None = None,
    mode: Mode | None = None,
) -> BarrierResult:
    """Block until a lineage is visible where the caller is about to read (paper section 6.3).

    All datastores are waited on at once, under one deadline. A barrier ends with an exact
    outcome for each dependency: it neither hangs nor passes silently.

    Args:
        lineage: what must be visible; its text; default the current lineage.
        timeout: seconds until the deadline, at most ``max_timeout`` of :func:`configure`.
        only: wait on these datastores alone; others are reported as ``excluded``.
        exclude: do not wait on these datastores.
        at: ``now`` waits at once, on connections of the library's own, at the one server where
            this process reads. ``read`` leaves a floor: each instrumented connection satisfies
            it just before its next read, whichever server that connection is to.
        on_unmet: ``raise``, or ``return`` a result that is false.
        on_unknown: ``report`` lets unknown stores, unknown logs and the undecidable pass,
            ``raise`` none of them; None: as configured, and by default all raise but a datastore
            that this process has no shim for. That is reported: counted, logged once for each
            name, and in the result; it raises where *only* names it, where this process has no
            shim at all, and where its log is of a store that is registered under another name.
        on_incomplete: ``report`` lets an incomplete lineage pass; None: as configured.
        mode: ``dry-run`` and ``off`` return at once, with everything ``excluded``; None: as
            configured.

    Raises:
        BarrierTimeout: at the deadline something is not yet visible, or unreachable.
        DependencyLost: something is proved gone, or its promise was abandoned.
        UnknownDatastore: a datastore of the lineage cannot be waited for here, or is unknown here
            and not merely reported.
        VisibilityCheckError: it cannot be decided whether something is visible.
        IncompleteLineage: the lineage is known to miss dependencies.
        ConfigurationError: two replicas under one name, one store under two, no scope for
            ``at="read"``, or neither a scope nor a lineage, unless ``on_unscoped="report"`` is
            configured.
        LineageDecodeError: *lineage* is a text and no lineage.
    """
    call = Barrier(
        lineage,
        timeout=timeout,
        only=only,
        exclude=exclude,
        at=at,
        on_unmet=on_unmet,
        on_unknown=on_unknown,
        on_incomplete=on_incomplete,
        mode=mode,
    )
    run_here(call, threading.Event())
    return call.conclude()


def _tell_of_branches(running: int) -> None:
    """Count, and log once for each place, that branches of the request still run."""
    count("open_branches")
    site = call_site()
    message = (
        "%d branches of the request still run at %s: what they write is not waited for. End them "
        "before, or promise what they write"
    )
    log_once("open_branches", "", site, message, running, site)


def _position(datastore: str, fence: Fence) -> frozenset[WriteId]:
    """What a primary reported by now; nothing where it did not answer, or has no position."""
    fence.cancel()
    try:
        return fence.result(0)
    except Exception:  # noqa: BLE001 - the barrier then fails as it would without fences
        logger.warning("no fence from the primary of %r", datastore, exc_info=True)
        return frozenset()


def run_here(call: Barrier, finished: threading.Event, *, once: bool = False) -> None:
    """Wait in this thread until the barrier is finished or *finished* is set."""
    if comparison := call.comparison():
        compared = threading.Event()
        wait_here(comparison.waiter(compared.set), compared)
        call.compared(comparison)
    if call.plan.fenced:
        tell_of_stall()
        fences = call.ask_fences()
        from concurrent.futures import wait as wait_for  # As for `Fencer.ask`.

        wait_for(chain.from_iterable(fences.values()), call.fence_s)
        call.raise_fences(fences)
    wait_here(call.waiter(finished.set, once=once), finished)


@observers.traced_async("barrier")
async def barrier_async(
    lineage: Lineage | str | None = None,
    *,
    timeout: float,
    only: Names | None = None,
    exclude: Names = (),
    at: At = "now",
    on_unmet: OnUnmet = "raise",
    on_unknown: Policy | None = None,
    on_incomplete: Policy | None = None,
    mode: Mode | None = None,
) -> BarrierResult:
    """The asyncio twin of :func:`barrier`: never blocks the loop; cancelling leaves nothing."""
    call = Barrier(
        lineage,
        timeout=timeout,
        only=only,
        exclude=exclude,
        at=at,
        on_unmet=on_unmet,
        on_unknown=on_unknown,
        on_incomplete=on_incomplete,
        mode=mode,
    )
    await run_async(call)
    return call.conclude()


async def run_async(call: Barrier, *, once: bool = False) -> None:
    import asyncio

    if comparison := call.comparison():
        await wait_async(comparison.waiter)
        call.compared(comparison)
    if call.plan.fenced:
        fences = call.ask_fences()
        asked = chain.from_iterable(fences.values())
        waiting = [asyncio.wrap_future(fence) for fence in asked]
        try:
            await asyncio.wait(waiting, timeout=call.fence_s)
        finally:
            for each in waiting:
                each.cancel()
        call.raise_fences(fences)
    await wait_async(partial(call.waiter, once=once))


def barrier_callback(
    callback: Callable[[BarrierResult], object],
    lineage: Lineage | str | None = None,
    *,
    timeout: float,
    only: Names | None = None,
    exclude: Names = (),
    at: At = "now",
    on_unknown: Policy | None = None,
    on_incomplete: Policy | None = None,
    mode: Mode | None = None,
) -> Cancellable:
    """The callback variant of :func:`barrier` (paper section 6.3).

    *callback* gets the result, met or unmet, exactly once unless cancelled, in a background
    thread and in the caller's OpenTelemetry context. What it raises is logged.

    Raises:
        ConfigurationError: as :func:`barrier`, at once.
        LineageDecodeError: as :func:`barrier`, at once.
        VisibilityCheckError: the system starts no further thread now.
    """
    import contextvars

    call = Barrier(
        lineage,
        timeout=timeout,
        only=only,
        exclude=exclude,
        at=at,
        on_unmet="return",
        on_unknown=on_unknown,
        on_incomplete=on_incomplete,
        mode=mode,
    )
    finished = threading.Event()
    handle = Cancellable(finished)

    @observers.traced("barrier")
    def wait() -> BarrierResult | None:
        run_here(call, finished)
        return None if handle.cancelled else call.conclude()

    def run() -> None:
        try:
            if (result := wait()) is not None:
                callback(result)
        except Exception:  # noqa: BLE001 - a hook's exception never escapes
            logger.exception("the callback of a barrier failed")

    context = contextvars.copy_context()
    name = "antipode-barrier-callback"
    try:
        start(threading.Thread(target=context.run, args=(run,), name=name, daemon=True))
    except NoThread as error:
        raise call.not_started(str(error)) from error
    return handle


@observers.traced("check")
def check(
    lineage: Lineage | str | None = None,
    *,
    only: Names | None = None,
    exclude: Names = (),
    refresh: bool = True,
) -> BarrierResult:
    """Check without waiting: what is visible, and when the rest may be.

    For a queue consumer that would rather requeue than keep a worker waiting. Never raises for
    unmet dependencies; a server that does not answer is ``unreachable`` after one second. Where
    only a read shows which replica answers, no primary is asked instead: within a scope what it
    depends on there is ``deferred``, and the reads that follow wait.

    Args:
        lineage: as in :func:`barrier`.
        only: as in :func:`barrier`.
        exclude: as in :func:`barrier`.
        refresh: ask each server once; False: judge by what is known already.

    Raises:
        ConfigurationError: as :func:`barrier`.
        LineageDecodeError: as :func:`barrier`.
    """
    call = _looking(lineage, only, exclude)
    if refresh:
        run_here(call, threading.Event(), once=True)
    else:
        call.waiter(lambda: None).recall()
    return call.conclude()


@observers.traced_async("check")
async def check_async(
    lineage: Lineage | str | None = None,
    *,
    only: Names | None = None,
    exclude: Names = (),
    refresh: bool = True,
) -> BarrierResult:
    """The asyncio twin of :func:`check`."""
    call = _looking(lineage, only, exclude)
    if refresh:
        await run_async(call, once=True)
    else:
        call.waiter(lambda: None).recall()
    return call.conclude()


def _looking(lineage: Lineage | str | None, only: Names | None, exclude: Names) -> Barrier:
    return Barrier(
        lineage, timeout=MOST_POLL_S, only=only, exclude=exclude, on_unmet="return", checks=True
    )


class Cancellable:
    """A barrier that runs in the background."""

    def __init__(self, finished: threading.Event) -> None:
        """Cancel by setting *finished*."""
        self._finished = finished
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Stop waiting; the callback is not called any more. Idempotent, thread-safe."""
        self._cancelled.set()
        self._finished.set()

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._cancelled.is_set()
