"""Promises: made, waited for, given up; and the branch that fulfils one never waits for itself."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import (
    BarrierTimeout,
    ConfigurationError,
    DependencyLost,
    Lineage,
    LineageDecodeError,
    Promise,
    Status,
    VisibilityCheckError,
    WriteId,
)
from antipode.shim import Unreachable, record_seconds
from antipode.telemetry import Metric
from antipode_testing import FakeStore, VirtualClock
from antipode_testing.contract.base import in_time
from tests.unit._floors import floor_in

if TYPE_CHECKING:
    from collections.abc import Iterator

ID = "00112233445566778899aabbccddeeff"
OTHER_ID = "f" * 32
POST = WriteId("a", "log", 7, 500_000)
#: The Unix second at which virtual clocks start.
START_S = 500_000 * 3600
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400


def promised(
    expires_in_s: int = MINUTE_S, *, datastore: str = "a", promise_id: str = ID
) -> Promise:
    """A promise that expires so many virtual seconds after the start."""
    return Promise(datastore, promise_id, START_S + expires_in_s)


@pytest.fixture
def clock() -> VirtualClock:
    """Time that passes only between events."""
    return VirtualClock()


@pytest.fixture
def store(clock: VirtualClock) -> Iterator[FakeStore]:
    """A fake store that can look for promises."""
    with FakeStore("a", clock, promises=True, reads_from="replica") as store:
        antipode.shim.register(store)
        yield store


class Recorder(FakeStore):
    """A fake store that can also record that a promise was abandoned."""

    abandons = True
    first = Status.NOT_YET

    def abandon_promise(self, promise: Promise, *, timeout_s: float) -> bool:
        """Take the first record."""
        assert timeout_s > 0
        if self.first is Status.NOT_YET:
            self.first = Status.ABANDONED
            self.record(promise, Status.ABANDONED)
        return self.first is Status.ABANDONED


def test_token_round_trip() -> None:
    """A token is the text of the lineage that holds the promise alone, and stands for it."""
    promise = promised(datastore="réfunds")
    assert antipode.deserialize(promise.token) == Lineage(promises=[promise])
    assert Promise.parse(promise.token) == promise


@pytest.mark.parametrize(
    "lineage",
    [
        Lineage(),
        Lineage([POST]),
        Lineage([POST], promises=[promised()]),
        Lineage(promises=[promised(), promised(promise_id=OTHER_ID)]),
        Lineage(promises=[promised()], incomplete=[("a", "size")]),
    ],
    ids=repr,
)
def test_token_is_one_promise_alone(lineage: Lineage) -> None:
    """The text of any other lineage is no token."""
    with pytest.raises(LineageDecodeError) as caught:
        Promise.parse(antipode.serialize(lineage))
    assert caught.value.code == "lineage_item"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{token}~{item}", "lineage_item"),
        ("1~p~", "lineage_item"),
        ("2~{item}", "lineage_item"),
        ("x~{item}", "lineage_header"),
        ("{token} ", "lineage_alphabet"),
    ],
)
def test_token_is_refused_with_the_code_of_its_text(text: str, code: str) -> None:
    """Two items, also the same twice, are no token; nor is what is no lineage, by its own code."""
    token = promised().token
    with pytest.raises(LineageDecodeError) as caught:
        Promise.parse(text.format(token=token, item=token.partition("~")[2]))
    assert caught.value.code == code


def test_promise_enters_the_scope() -> None:
    """A promise has a fresh id, expires when it is told to, and leaves with the lineage."""
    before_s = time.time()
    with antipode.scope() as scope:
        one = antipode.promise("a", expires_in_s=90)
        other = antipode.promise("b", expires_in_s=0.5)
    assert scope.lineage.promises == {one, other}
    assert one.id != other.id
    assert before_s + 90 <= one.expires_s <= time.time() + 91


def test_promise_outside_a_scope_is_counted() -> None:
    """Nobody would wait for it: it is counted as an unscoped write is, or refused."""
    metric = Metric("unscoped_promise", "a")
    before = antipode.telemetry.metrics().get(metric, 0)
    antipode.promise("a", expires_in_s=1)
    assert antipode.telemetry.metrics()[metric] == before + 1
    antipode.configure(on_unscoped="raise")
    with pytest.raises(ConfigurationError):
        antipode.promise("a", expires_in_s=1)


@pytest.mark.parametrize("expires_in_s", [0, -1, float("inf"), float("nan")])
def test_promise_must_expire(expires_in_s: float) -> None:
    """A promise that never expires, or has already, is refused."""
    with pytest.raises(ValueError, match="expires_in_s"), antipode.scope():
        antipode.promise("a", expires_in_s=expires_in_s)


def test_barrier_waits_for_fulfilment(clock: VirtualClock, store: FakeStore) -> None:
    """A barrier passes when the record is there, and not before."""
    store.record(promised(), Status.VISIBLE, at_s=2)
    call = clock.barrier(Lineage(promises=[promised()]), timeout=5)
    clock.run()
    assert call.result is not None
    assert call.result.ok
    (outcome,) = call.result.outcomes
    assert (outcome.write, outcome.status, outcome.server) == (
        promised(),
        Status.VISIBLE,
        "server-1",
    )
    assert call.finished_s is not None
    assert 2 <= call.finished_s <= 2.05


def test_barrier_waits_for_writes_and_promises(clock: VirtualClock, store: FakeStore) -> None:
    """Both kinds of one datastore are waited for at once, whichever comes first."""
    store.record(promised(), Status.VISIBLE, at_s=1)
    store.advance("log", 7, at_s=2)
    store.record(promised(promise_id=OTHER_ID), Status.VISIBLE, at_s=3)
    early = clock.barrier(Lineage([POST], promises=[promised()]), timeout=5)
    late = clock.barrier(Lineage([POST], promises=[promised(promise_id=OTHER_ID)]), timeout=5)
    clock.run()
    for call, at_s in (early, 2), (late, 3):
        assert call.error is None
        assert call.finished_s is not None
        assert at_s <= call.finished_s <= at_s + 0.05


def test_unfulfilled_promise_times_out(clock: VirtualClock, store: FakeStore) -> None:
    """Without a record the barrier ends at its deadline: the branch may only be slow."""
    call = clock.barrier(Lineage(promises=[promised()]), timeout=1)
    clock.run()
    assert isinstance(call.error, BarrierTimeout)
    assert call.finished_s == 1
    assert len(store.look_times_s) < 270, "the pacing bounds the number of looks"


def test_abandoned_promise_ends_the_barrier(clock: VirtualClock, store: FakeStore) -> None:
    """A record of abandonment is proof: nobody waits until the deadline."""
    store.record(promised(), Status.ABANDONED, at_s=1)
    call = clock.barrier(Lineage(promises=[promised()]), timeout=5)
    clock.run()
    assert isinstance(call.error, DependencyLost)
    assert call.finished_s is not None
    assert call.finished_s < 1.05


def test_promise_expires_while_it_is_waited_for(clock: VirtualClock, store: FakeStore) -> None:
    """At its expiry and the hour of grace a promise without a record is abandoned."""
    del store
    call = clock.barrier(Lineage(promises=[promised(2 - HOUR_S)]), timeout=5)
    clock.run()
    assert isinstance(call.error, DependencyLost)
    assert call.finished_s is not None
    assert 2 < call.finished_s <= 2.05


def test_fulfilled_promise_outlives_its_expiry(clock: VirtualClock, store: FakeStore) -> None:
    """What was fulfilled in time is visible for as long as the record says so: it is looked for."""
    store.record(promised(-DAY_S), Status.VISIBLE)
    call = clock.barrier(Lineage(promises=[promised(-DAY_S)]), timeout=5)
    clock.run()
    assert call.error is None
    assert call.finished_s == 0


def test_old_promise_ages(clock: VirtualClock, store: FakeStore) -> None:
    """Past the horizon no record is kept: the promise passes, is counted and leaves the scope."""
    del store
    old, young = promised(-8 * DAY_S), promised(-6 * DAY_S, promise_id=OTHER_ID)
    with antipode.scope(Lineage(promises=[old, young])) as scope:
        aged = clock.barrier(Lineage(promises=[old]), timeout=5)
        abandoned = clock.barrier(Lineage(promises=[young]), timeout=5)
        clock.run()
        assert scope.lineage.promises == {young}
    assert aged.result is not None
    assert [outcome.status for outcome in aged.result.outcomes] == [Status.AGED]
    assert isinstance(abandoned.error, DependencyLost)


def test_record_outlives_what_absence_means() -> None:
    """A record is kept longer than anyone takes its absence for abandonment."""
    antipode.configure(horizon=antipode.shim.Config().horizon)
    assert record_seconds(Promise("a", ID, int(time.time()) + 100)) >= 7 * DAY_S + HOUR_S + 99
    assert record_seconds(Promise("a", ID, 0)) >= 7 * DAY_S


def test_store_that_cannot_look(clock: VirtualClock) -> None:
    """A shim that cannot look for promises leaves them undecidable; none at all is unknown."""
    with FakeStore("a", clock, reads_from="replica") as store:
        antipode.shim.register(store)
        here = clock.barrier(Lineage(promises=[promised()]), timeout=5)
        nowhere = clock.barrier(Lineage(promises=[promised(datastore="b")]), timeout=5)
        clock.run()
    assert isinstance(here.error, VisibilityCheckError)
    assert nowhere.result is not None
    assert [each.status for each in nowhere.result.outcomes] == [Status.UNKNOWN_STORE]


def test_store_without_receipts_is_not_waited_for(clock: VirtualClock) -> None:
    """A promised message of a store without receipts is reported, as its messages are."""
    with FakeStore("a", clock, waitable=False, reads_from="replica") as store:
        antipode.shim.register(store)
        call = clock.barrier(Lineage(promises=[promised()]), timeout=5)
        clock.run()
    assert call.result is not None
    assert call.result.ok
    assert [each.status for each in call.result.outcomes] == [Status.NOT_WAITABLE]


def test_known_fulfilment_costs_no_look(clock: VirtualClock) -> None:
    """Where a server's history is pinned, what it showed is not asked for again."""
    with FakeStore("a", clock, promises=True, pinned=True, reads_from="replica") as store:
        antipode.shim.register(store)
        store.record(promised(), Status.VISIBLE)
        clock.barrier(Lineage(promises=[promised()]), timeout=5)
        again = clock.barrier(Lineage(promises=[promised(2 * MINUTE_S)]), timeout=5, at_s=1)
        clock.run()
        assert again.error is None
        assert len(store.look_times_s) == 1


def test_known_fulfilment_is_forgotten_when_it_regresses(clock: VirtualClock) -> None:
    """A server that shows less than it did is known for nothing."""
    with FakeStore("a", clock, promises=True, pinned=True, reads_from="replica") as store:
        antipode.shim.register(store)
        store.record(promised(), Status.VISIBLE)
        store.record(promised(), Status.NOT_YET, at_s=1)
        both = Lineage(promises=[promised(), promised(promise_id=OTHER_ID)])
        clock.barrier(Lineage(promises=[promised()]), timeout=5)
        call = clock.barrier(both, timeout=0.5, at_s=2)
        third = clock.barrier(Lineage(promises=[promised()]), timeout=0.5, at_s=3)
        clock.run()
    assert isinstance(call.error, BarrierTimeout)
    assert isinstance(third.error, BarrierTimeout), "the look for both showed that it is gone"


def test_blocking_server_is_asked_again_for_promises(clock: VirtualClock) -> None:
    """A server that only ends pauses for writes is polled while a promise is pending."""
    with FakeStore("a", clock, promises=True, blocks=True, reads_from="replica") as store:
        antipode.shim.register(store)
        store.record(promised(), Status.VISIBLE, at_s=0.3)
        call = clock.barrier(Lineage(promises=[promised()]), timeout=5)
        clock.run()
    assert call.finished_s is not None
    assert 0.3 <= call.finished_s <= 0.31


def test_history_that_changes_during_a_look_proves_nothing(clock: VirtualClock) -> None:
    """Writes of one history and records of another are not one look: it is repeated."""

    class Fickle(FakeStore):
        def look(self, *args: object) -> antipode.shim.Observation:
            observation = super().look(*args)  # type: ignore[arg-type]
            self.replace_server(f"server-{1 + len(self.look_times_s)}", at_s=clock.monotonic())
            return observation

    with Fickle("a", clock, promises=True) as store:
        antipode.shim.register(store)
        store.record(promised(), Status.VISIBLE)
        store.advance("log", 7)
        call = clock.barrier(Lineage([POST], promises=[promised()]), timeout=0.5)
        clock.run()
    assert isinstance(call.error, BarrierTimeout)
    assert {each.status for each in call.error.unmet} == {Status.UNREACHABLE}


def test_floor_holds_promises(clock: VirtualClock) -> None:
    """``at="read"`` leaves promises to the reads, where the client looks for them."""
    with FakeStore("a", clock, promises=True, floors=True, reads_from="replica") as store:
        antipode.shim.register(store)
        with antipode.scope(Lineage([POST], promises=[promised()])) as scope:
            result = antipode.barrier(timeout=5, at="read")
            floor = floor_in(scope, "a")
    assert {each.status for each in result.outcomes} == {Status.DEFERRED}
    assert floor is not None
    assert (floor.writes, floor.promises) == ({POST}, {promised()})


def test_floor_without_promises(clock: VirtualClock) -> None:
    """A client that cannot look for promises at its reads is never asked to."""
    with FakeStore("a", clock, floors=True, reads_from="replica") as store:
        antipode.shim.register(store)
        with antipode.scope() as scope:
            lineage = Lineage([POST], promises=[promised()])
            result = antipode.barrier(lineage, timeout=5, at="read", on_unknown="report")
            floor = floor_in(scope, "a")
    assert {each.status for each in result.outcomes} == {Status.DEFERRED, Status.UNDECIDABLE}
    assert floor is not None
    assert not floor.promises


def test_branch_does_not_wait_for_itself(clock: VirtualClock, store: FakeStore) -> None:
    """In the block of its own promise a branch waits for everything else."""
    store.advance("log", 7)
    message = Lineage([POST], promises=[promised(), promised(promise_id=OTHER_ID)])
    with antipode.scope(message), antipode.fulfilling(promised().token) as mine:
        assert mine == promised()
        assert antipode.current().promises == {promised(promise_id=OTHER_ID)}
        implied = clock.barrier(timeout=5, exclude="b")
        store.record(promised(promise_id=OTHER_ID), Status.VISIBLE, at_s=1)
        explicit = clock.barrier(message, timeout=5)
        clock.run()
    for call in implied, explicit:
        assert call.error is None
    assert explicit.result is not None
    found = {each.write: each.status for each in explicit.result.outcomes}
    assert found[promised()] is Status.EXCLUDED


def test_branch_sends_no_promise_of_its_own() -> None:
    """What is called from the block must not wait for the block, whatever is read meanwhile."""
    message = Lineage(promises=[promised()])
    with antipode.scope(message), antipode.fulfilling(promised()):
        antipode.transfer(Lineage([replace(POST, written_hour=400_000)], promises=[promised()]))
        carrier: dict[str, str] = {}
        from opentelemetry.baggage.propagation import W3CBaggagePropagator

        W3CBaggagePropagator().inject(carrier)
        sent = antipode.deserialize(carrier["baggage"].partition("=")[2])
    assert [(each.key, each.version) for each in sent] == [(POST.key, POST.version)]
    assert not sent.promises


@pytest.mark.parametrize("fails", [False, True])
def test_request_keeps_the_promise(fails: bool) -> None:  # noqa: FBT001 - a parameter of a test
    """The block may share its request's scope: others still wait; what it wrote enters it."""
    with antipode.scope() as scope:
        promise = antipode.promise("a", expires_in_s=60)
        with suppress(KeyError), antipode.fulfilling(promise):
            antipode.append(POST)
            assert antipode.current() == Lineage([POST])
            if fails:
                raise KeyError
        assert scope.lineage == Lineage([POST], promises=[promise])


def test_branch_keeps_floors(clock: VirtualClock) -> None:
    """Floors from before the block hold in it, but for its promise; those of it hold after it."""
    with FakeStore("a", clock, promises=True, floors=True, reads_from="replica") as store:
        antipode.shim.register(store)
        with antipode.scope(Lineage([POST], promises=[promised()])) as scope:
            antipode.barrier(timeout=5, at="read")
            with antipode.fulfilling(promised()):
                inner = antipode._request.context.scope_in()
                assert inner is not None
                floor = floor_in(inner, "a")
                assert floor is not None
                assert (floor.writes, floor.promises) == ({POST}, frozenset())
                later = WriteId("a", "log", 8, 500_000)
                antipode.barrier(Lineage([later]), timeout=5, at="read")
            floor = floor_in(scope, "a")
    assert floor is not None
    assert (floor.writes, floor.promises) == ({POST, later}, {promised()})


def test_branch_stops_its_request() -> None:
    """``stop()`` in the block discards the lineage of the whole request, as anywhere."""
    with antipode.scope(Lineage([POST], promises=[promised()])) as scope:
        with antipode.fulfilling(promised()):
            antipode.stop()
        assert scope.lineage.empty


def test_what_outlives_the_block_is_the_requests() -> None:
    """A thread that was begun in the block and goes on after it writes into its request."""
    over = threading.Event()
    kept = promised()
    with antipode.scope(Lineage(promises=[kept])):

        def write() -> None:
            over.wait(10)
            antipode.append(POST)
            antipode.shim.mark_incomplete("posts", "in_doubt")

        with antipode.fulfilling(kept):
            own = contextvars.copy_context()
            thread = threading.Thread(target=own.run, args=(write,))
            thread.start()
        over.set()
        thread.join(10)
        lineage = antipode.current()
    assert POST in lineage
    assert lineage.incomplete == {("posts", "in_doubt")}
    assert lineage.promises == {kept}


def test_fulfilling_without_a_scope() -> None:
    """Without a scope there is nothing to take out."""
    with antipode.fulfilling(promised().token) as mine:
        assert mine == promised()
        assert antipode.current().empty


@pytest.mark.parametrize("first", [Status.NOT_YET, Status.VISIBLE])
def test_abandon(clock: VirtualClock, first: Status) -> None:
    """Giving up is recorded by a shim that can; a fulfilment that came first stays."""
    gave_up = first is Status.NOT_YET
    with (
        Recorder("a", clock, promises=True) as store,
        FakeStore("a", clock, reads_from="replica") as replica,
    ):
        store.first = first
        antipode.shim.register(replica)
        antipode.shim.register(store)
        assert antipode.abandon(promised().token) is gave_up
        assert asyncio.run(antipode.abandon_async(promised())) is gave_up


def test_abandoning_keeps_its_timeout(clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that is late, to resolve a name say, is left alone."""
    hanging = threading.Event()

    def hang(_store: Recorder, _promise: Promise, *, timeout_s: float) -> bool:
        return hanging.wait(timeout_s + 60)

    monkeypatch.setattr(Recorder, "abandon_promise", hang)
    with Recorder("a", clock, promises=True) as store:
        antipode.shim.register(store)

        def ends() -> None:
            with pytest.raises(Unreachable, match="may not be abandoned"):
                antipode.abandon(promised(), timeout=0.1)

        assert in_time(0.6, ends)
        hanging.set()


def test_abandon_needs_a_store(store: FakeStore) -> None:
    """Where nothing can record it, giving up fails and says what to do."""
    del store
    with pytest.raises(ConfigurationError, match="primary"):
        antipode.abandon(promised())
