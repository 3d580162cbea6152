"""What anyone may send: it costs little, and says nothing about the future."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from opentelemetry.baggage.propagation import W3CBaggagePropagator

import antipode
from antipode import Lineage, Promise, Status, WriteId
from antipode._lineage.grammar import MAX_EXPIRY, MAX_HOUR
from antipode._lineage.shortening import LEFT, MOST_HELD
from antipode.propagation import AntipodePropagator, extract_response
from antipode.shim import (
    SYSTEM_CLOCK,
    Incomplete,
    encode,
    readable,
    record_seconds,
    scope_in,
    stored_lineage,
)
from antipode_testing import FakeStore, VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable

PROPAGATOR = AntipodePropagator(W3CBaggagePropagator())
#: A write of the year 8867, and a promise until the year 91,000.
LATE = WriteId("posts", "log", 5, MAX_HOUR)
ENDLESS = Promise("posts", "0" * 32, MAX_EXPIRY)
TEXT = encode(Lineage([LATE], promises=[ENDLESS]))


def by_headers(text: str) -> Lineage:
    """As baggage of a request."""
    scope = scope_in(PROPAGATOR.extract({"baggage": f"antipode={text}"}))
    assert scope is not None
    return scope.lineage


def by_scope(text: str) -> Lineage:
    """As what a scope starts from."""
    with antipode.scope(text):
        return antipode.current()


def by_transfer(text: str) -> Lineage:
    """As what is added to a scope."""
    with antipode.scope():
        return antipode.transfer(text)


WAYS: list[Callable[[str], Lineage]] = [
    by_headers,
    by_scope,
    by_transfer,
    lambda text: extract_response({"antipode-lineage": text}),
    lambda text: readable("orders", text),
    lambda text: stored_lineage("posts", text),
]


@pytest.mark.parametrize("received", WAYS)
def test_what_is_received_is_of_the_past(received: Callable[[str], Lineage]) -> None:
    """A write ages from when it was received, and a promise ends within ``max_promise``."""
    antipode.configure(max_promise=timedelta(hours=1))
    lineage = received(TEXT)
    (write,), (promise,) = lineage, lineage.promises
    assert write.written_hour <= SYSTEM_CLOCK.hour()
    assert promise.expires_s <= time.time() + 3600


def test_a_future_hour_wins_no_tie() -> None:
    """It leaves the scope with the entry that it stands in for: at the horizon."""
    with antipode.scope() as scope:
        antipode.append(WriteId("posts", "log", 5))
        (ours,) = scope.lineage
        antipode.transfer(TEXT)
        assert {write.written_hour for write in scope.lineage} == {ours.written_hour}


def test_a_barrier_does_not_wait_for_the_future() -> None:
    """By its own clock, the entry of an unknown log ages as one of the hour of the barrier."""
    clock = VirtualClock()
    store = FakeStore("posts", clock)
    store.set_status(LATE, Status.UNKNOWN_LOG, at_s=0)
    antipode.shim.register(store)
    text = encode(Lineage([LATE]))
    call = clock.barrier(text, timeout=1, on_unmet="return")
    clock.run()
    assert call.result is not None
    assert [outcome.write.written_hour for outcome in call.result.outcomes] == [clock.hour()]  # type: ignore[union-attr]
    store.close()


def test_no_promise_is_made_for_longer() -> None:
    """A receiver would take it back; who makes it learns that at once."""
    with antipode.scope(), pytest.raises(ValueError, match=r"at most 604800.*max_promise"):
        antipode.promise("posts", expires_in_s=8 * 86_400)


def test_no_record_is_kept_for_longer() -> None:
    """A forged token does not fill a store with records for ever."""
    assert record_seconds(ENDLESS) <= 7 * 86_400 + 7 * 86_400 + 3600 + 1


def many(datastore: str, number: int) -> Lineage:
    """So many writes, as they come in a text."""
    return antipode.deserialize(
        encode(Lineage(WriteId(datastore, f"k{index}", 1, 5) for index in range(number)))
    )


def test_merges_without_end_stay_small() -> None:
    """What a scope cannot hold is marked; what it recorded itself stays."""
    own = WriteId("orders", "log", 7, 4)
    with antipode.scope() as scope:
        antipode.append(own)
        for number in range(5):
            antipode.transfer(many(f"posts{number}", 2_000))
            assert scope.lineage.size <= MOST_HELD
        assert own in scope.lineage
        lost = {mark.subject for mark in scope.lineage.incomplete}
        assert lost == {f"posts{number}" for number in range(5)}


def test_writes_without_end_stay_small() -> None:
    """A request that writes to thousands of keys loses some, and says so."""
    with antipode.scope() as scope:
        for index in range(MOST_HELD + 1):
            antipode.append(WriteId("s3", f"k{index}", "v", 5))
        assert scope.lineage.size == LEFT
        assert scope.lineage.incomplete == {Incomplete("s3", "size")}


def header(members: int) -> str:
    """So many members of ours."""
    return ",".join(f"antipode=1~kposts.5.k{index}" for index in range(members))


def test_members_without_end_are_not_read() -> None:
    """As many as baggage may have; that there were more is known."""
    scope = scope_in(PROPAGATOR.extract({"baggage": header(10_000)}))
    assert scope is not None
    assert len(scope.lineage) == 64
    assert scope.lineage.incomplete == {Incomplete("baggage", "unreadable")}
    scope = scope_in(PROPAGATOR.extract({"baggage": header(64)}))
    assert scope is not None
    assert len(scope.lineage) == 64
    assert not scope.lineage.incomplete


def seconds(members: int) -> float:
    """The least processor time that a request with so many members takes."""
    best, carrier = float("inf"), {"baggage": header(members)}
    for _ in range(5):
        start = time.process_time()
        scope = scope_in(PROPAGATOR.extract(dict(carrier)))
        assert scope is not None
        assert scope.text()
        best = min(best, time.process_time() - start)
    return best


def test_members_take_linear_time() -> None:
    """Ten times as many take no more than about ten times as long."""
    assert seconds(10_000) <= 40 * seconds(1_000)
