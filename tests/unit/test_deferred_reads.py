"""Reads whose position costs a round trip: sampled once, before the lineage is used or leaves."""

from __future__ import annotations

import threading

import pytest
from opentelemetry import context as otel_context
from opentelemetry import propagate

import antipode
from antipode import Lineage, WriteId
from antipode.shim import defer_read, stored_text

READ = WriteId("posts", "log", 7, written_hour=490_000, covering=True)
LATER = WriteId("posts", "other", 9, written_hour=490_000, covering=True)


class Sample:
    """A fake sample that counts how often it is asked."""

    def __init__(self, *writes: WriteId, incomplete: bool = False) -> None:
        self.asked = 0
        missing = [("posts", "unsampled")] if incomplete else []
        self._found = Lineage(writes, incomplete=missing)

    def __call__(self) -> Lineage:
        self.asked += 1
        return self._found


def test_a_request_that_never_looks_pays_nothing() -> None:
    """Until the lineage is used nobody asks the server."""
    sample = Sample(READ)
    with antipode.scope():
        defer_read(sample)
        antipode.append(LATER)
    assert sample.asked == 0


def test_who_looks_sees_it() -> None:
    """The current lineage has the position, asked for once."""
    sample = Sample(READ)
    with antipode.scope():
        defer_read(sample)
        assert antipode.current() == Lineage([READ])
        assert antipode.current() == Lineage([READ])
    assert sample.asked == 1


def test_it_is_there_when_the_lineage_leaves() -> None:
    """In baggage, in a response, and beside a value."""
    antipode.instrument()
    ways = []
    for leave in (propagate.inject, antipode.propagation.inject_response):
        sample = Sample(READ)
        carrier: dict[str, str] = {}
        with antipode.scope():
            defer_read(sample)
            leave(carrier)
        ways.append((sample.asked, "log" in "".join(carrier.values())))
    antipode.propagation.uninstrument()
    sample = Sample(READ)
    with antipode.scope():
        defer_read(sample)
        stored = stored_text(antipode.current())
    ways.append((sample.asked, "log" in stored))
    assert ways == [(1, True)] * 3


def test_incoming_lineage_does_not_leave_without_it() -> None:
    """A service that passes on what came in adds what it has read meanwhile."""
    antipode.instrument()
    incoming: dict[str, str] = {}
    with antipode.scope(Lineage([LATER])):
        propagate.inject(incoming)
    outgoing: dict[str, str] = {}
    context = propagate.extract(incoming)
    held = antipode.current(context=context)
    assert LATER in held
    context = propagate.extract(incoming)
    token = otel_context.attach(context)
    try:
        defer_read(Sample(READ))
        propagate.inject(outgoing)
    finally:
        otel_context.detach(token)
        antipode.propagation.uninstrument()
    assert "log" in outgoing["baggage"]


def test_what_cannot_be_sampled_is_said() -> None:
    """The lineage is incomplete, not shorter."""
    with antipode.scope():
        defer_read(Sample(incomplete=True))
        (missing,) = antipode.current().incomplete
    assert (missing.subject, missing.reason) == ("posts", "unsampled")


def test_nobody_sees_a_lineage_without_a_sample_that_is_under_way() -> None:
    """A second thread waits for the first one's answer instead of going on without it."""
    asked, answer = threading.Event(), threading.Event()

    def slow() -> Lineage:
        asked.set()
        assert answer.wait(10)
        return Lineage([READ])

    seen: list[Lineage] = []
    with antipode.scope() as held:
        held.defer(slow)
        threads = [threading.Thread(target=lambda: seen.append(held.lineage)) for _ in range(2)]
        threads[0].start()
        assert asked.wait(10)
        threads[1].start()
        held.append(LATER)  # A write is not held up by somebody's round trip.
        assert seen == []
        answer.set()
        for thread in threads:
            thread.join(10)
    assert [READ in each for each in seen] == [True, True]


@pytest.mark.parametrize("reads", [1, 3])
def test_reads_of_one_connection_share_a_sample(reads: int) -> None:
    """The same sample deferred again is asked once."""
    sample = Sample(READ)
    with antipode.scope():
        for _ in range(reads):
            defer_read(sample)
        assert READ in antipode.current()
    assert sample.asked == 1


def test_stop_forgets_it() -> None:
    """What a discarded request has read is nobody's dependency."""
    sample = Sample(READ)
    with antipode.scope() as held:
        defer_read(sample)
        antipode.stop()
        assert held.lineage == Lineage()
    assert sample.asked == 0
