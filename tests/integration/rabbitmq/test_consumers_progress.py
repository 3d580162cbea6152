"""Consumers do not starve what their messages wait for: four workers, 400 blocked messages."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode_shims import rabbitmq
from antipode_testing import TopologyTimeout, wait_until

from ._bench import NEWS, counted

if TYPE_CHECKING:
    from ._workers import Posts, Workers

pytestmark = pytest.mark.store("rabbitmq")

BLOCKED = 400
WORKERS = 4
DELAYS = (0.1, 1.6)
WRITE = b"write"
#: Far above what is needed, with all workers in one process of a busy machine.
MOST_S = 30.0


class Progress:
    """A handler that notes what it handled and when; one message makes the write."""

    def __init__(self, later: Posts) -> None:
        self.later = later
        self.handled: list[tuple[float, bytes]] = []

    def __call__(self, _channel: Any, _method: Any, _properties: Any, body: bytes) -> None:
        # Noted first: what waits for the write may be handled before this thread goes on.
        self.handled.append((time.monotonic(), body))
        if body == WRITE:
            self.later.write()

    def longest_pause_s(self) -> float:
        """Between two messages."""
        times = [at_s for at_s, _ in self.handled]
        return max(b - a for a, b in itertools.pairwise(times))


def fill(workers: Workers, later: Posts) -> None:
    """Messages that depend on a write, and behind them the one whose handling makes it."""
    for number in range(BLOCKED):
        workers.publish(b"%d" % number, later.next)
    workers.publish(WRITE)


@pytest.mark.parametrize("terms", [{}, {"on_unmet": "wait", "timeout": 0.5}], ids=["defer", "wait"])
def test_blocked_messages_let_through_what_they_wait_for(
    workers: Workers, later: Posts, terms: dict[str, Any]
) -> None:
    """All 401 are handled, each once, the write first, within bounds; none is given up."""
    fill(workers, later)
    deferred = counted("message_deferred")
    progress = Progress(later)
    began_s = time.monotonic()
    workers.work(progress, threads=WORKERS, delay_s=DELAYS, **terms)
    wait_until(
        lambda: bool(workers.failures) or len(progress.handled) > BLOCKED,
        what="all messages",
        timeout_s=MOST_S,
    )
    took_s = time.monotonic() - began_s
    workers.rest()
    bodies = [body for _, body in progress.handled]
    assert bodies[0] == WRITE
    assert sorted(bodies) == sorted([WRITE, *(b"%d" % number for number in range(BLOCKED))])
    first_s = progress.handled[0][0] - began_s
    deferred = counted("message_deferred") - deferred
    print(  # noqa: T201 - what `-s` shows
        f"\n{WORKERS} workers: the write after {first_s:.2f} s, all {len(bodies)} after "
        f"{took_s:.2f} s, {deferred} deferrals, longest pause {progress.longest_pause_s():.2f} s"
    )
    # Every message but those that the workers kept waiting was deferred before the write came.
    assert deferred >= BLOCKED - WORKERS * 10
    assert progress.longest_pause_s() < MOST_S / 3
    assert workers.depth() == 0


def test_a_blocking_barrier_starves_what_it_waits_for(workers: Workers, later: Posts) -> None:
    """What consumers are for: with barriers in callbacks nothing moves, for as long as one likes.

    A requeued message comes back to the head of its queue, so that four workers wait for the same
    four messages; then a consumer gets all of them through.
    """
    fill(workers, later)
    progress = Progress(later)

    def blocks(channel: Any, method: Any, properties: Any, body: bytes) -> None:
        try:
            antipode.barrier(timeout=0.4)
        except antipode.BarrierTimeout:
            channel.basic_nack(method.delivery_tag, requeue=True)
            return
        progress(channel, method, properties, body)
        channel.basic_ack(method.delivery_tag)

    stopping: list[bool] = []

    def works() -> None:
        connection = workers.connection()
        channel = rabbitmq.instrument_channel(connection.channel(), datastore=NEWS)
        channel.basic_qos(prefetch_count=1)
        channel.basic_consume(workers.queue, blocks)
        while not stopping:
            connection.process_data_events(0.1)
        connection.close()

    for _ in range(WORKERS):
        workers._start(works)
    with pytest.raises(TopologyTimeout):
        wait_until(lambda: bool(progress.handled), what="any progress", timeout_s=3)
    stopping.append(True)
    workers.rest()
    assert not progress.handled

    workers.work(progress, threads=WORKERS, delay_s=DELAYS)
    wait_until(lambda: len(progress.handled) > BLOCKED, what="all of them", timeout_s=MOST_S)
    workers.rest()
    assert progress.handled[0][1] == WRITE
