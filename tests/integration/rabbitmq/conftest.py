"""Fixtures of the tests of RabbitMQ."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import pytest

from antipode_shims import rabbitmq
from antipode_shims.rabbitmq._consumers import async_delivery, delivery
from tests.integration.rabbitmq._bench import NEWS, Bench
from tests.integration.rabbitmq._workers import Posts, Workers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from antipode_testing import RabbitMQTopology


@pytest.fixture
def bench(antipode_rabbitmq: RabbitMQTopology) -> Iterator[Bench]:
    """RabbitMQ connections and queues of one test, gone after it."""
    with contextlib.closing(Bench(antipode_rabbitmq)) as one:
        yield one


@pytest.fixture
def channel(bench: Bench) -> Any:
    """An instrumented channel in confirm mode, with the test's exchange and queue."""
    channel = bench.channel()
    bench.declare(channel)
    return rabbitmq.instrument_channel(channel, datastore=NEWS)


@pytest.fixture
def workers(antipode_rabbitmq: RabbitMQTopology) -> Iterator[Workers]:
    """A RabbitMQ work queue of one test, and its workers."""
    with contextlib.closing(Workers(antipode_rabbitmq)) as one:
        yield one


@pytest.fixture
def later(tmp_path: Path) -> Iterator[Posts]:
    """A store whose next write messages can depend on."""
    with contextlib.closing(Posts(tmp_path)) as one:
        yield one


class WallClock:
    """What consumers of RabbitMQ take for the time of day."""

    ahead_s = 0.0

    def time(self) -> float:
        """As `time.time`."""
        return time.time() + self.ahead_s


@pytest.fixture
def wall_clock(monkeypatch: pytest.MonkeyPatch) -> WallClock:
    """The clock of RabbitMQ consumers, which a test puts forward."""
    clock = WallClock()
    for module in delivery, async_delivery:
        monkeypatch.setattr(module, "time", clock)
    return clock
