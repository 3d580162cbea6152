"""Receipts in C++: what a barrier says when the reader's broker is away, is lost or refuses."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from antipode import BarrierTimeout, ConfigurationError, Lineage, Status, UnmetError
from antipode_testing import wait_until
from tests.agent.client import RemoteAntipode, RemoteShim
from tests.integration.rabbitmq._bench import NEWS, TIMEOUT_S, Bench

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import RabbitMQTopology
    from tests.agent.lending import Lend

pytestmark = [pytest.mark.store("rabbitmq"), pytest.mark.slow]


class Regions(Bench):
    """An agent of C++ that publishes in ``us`` and listens in ``eu``."""

    def __init__(self, topology: RabbitMQTopology, remote: RemoteAntipode) -> None:
        super().__init__(topology)
        self.antipode = remote
        self.declare(self.channel("us"))
        self.declare(self.channel("eu"))
        self._us = self.publisher()

    def publisher(self) -> RemoteShim:
        return self._opened(self.topology.url(), "primary")

    def listen(self, url: str = "", exchange: str = "") -> RemoteShim:
        """Receipts of the far region, once what is published comes there."""
        made = self._opened(url or self.far(), "replica", exchange)
        self.topology.wait_federated(self.name)
        return made

    def far(self) -> str:
        return self.topology.url(self.topology.address("eu"))

    def _opened(self, url: str, role: str, exchange: str = "") -> RemoteShim:
        server = {"url": url, "exchange": exchange or self.name, "queue": self.name}
        made = RemoteShim(self.antipode, "rabbitmq", NEWS, server, reads_from=role)
        return self.stack.enter_context(closing(made))

    def publish(self, publisher: RemoteShim | None = None) -> Lineage:
        """What depends on one message, which is a request of its own."""
        with self.antipode.scope() as scope:
            (publisher or self._us).write("k", b"1")
            return scope.lineage

    def status(self, lineage: Lineage) -> Status:
        """What a look shows of the one message."""
        (outcome,) = self.antipode.check(lineage, only=NEWS).outcomes
        return outcome.status

    def becomes(self, lineage: Lineage, status: Status) -> None:
        """Look until the outcome is *status*."""
        wait_until(lambda: self.status(lineage) is status, what=str(status), timeout_s=TIMEOUT_S)

    def hears(self, lineage: Lineage) -> None:
        """Look until the tap is bound anew, whatever it says of the message."""
        wait_until(
            lambda: self.status(lineage) is not Status.UNREACHABLE,
            what="the tap",
            timeout_s=TIMEOUT_S,
        )
        self.topology.wait_federated(self.name)

    def passes(self, lineage: Lineage) -> bool:
        return bool(self.antipode.barrier(lineage, timeout=TIMEOUT_S, only=NEWS).ok)


@pytest.fixture
def regions(antipode_rabbitmq: RabbitMQTopology, lend: Lend) -> Iterator[Regions]:
    with closing(Regions(antipode_rabbitmq, lend("cpp"))) as one:
        yield one


def test_a_lost_tap_is_unreachable_then_undecidable(regions: Regions) -> None:
    """What passed while nobody listened never passes; what was seen before stays visible."""
    proxy = regions.proxy("eu")
    address = regions.topology.address("eu")
    regions.listen(regions.far().replace(str(address), str(proxy.address)))
    seen = regions.publish()
    assert regions.passes(seen)
    proxy.cut()
    missed = regions.publish()
    regions.becomes(missed, Status.UNREACHABLE)
    with pytest.raises(BarrierTimeout, match="receipts"):
        regions.antipode.barrier(missed, timeout=0.2, only=NEWS)
    assert regions.passes(seen)
    regions.topology.wait_replicated()
    proxy.heal()
    regions.becomes(missed, Status.UNDECIDABLE)
    assert regions.passes(seen)
    assert regions.passes(regions.publish(regions.publisher()))


def test_a_broker_that_is_away_is_connected_to_when_it_is_up(regions: Regions) -> None:
    """Opened all the same, and not reached; then as ever."""
    proxy = regions.proxy("eu")
    proxy.cut()
    address = regions.topology.address("eu")
    regions.listen(regions.far().replace(str(address), str(proxy.address)))
    missed = regions.publish()
    assert regions.status(missed) is Status.UNREACHABLE
    proxy.heal()
    regions.hears(missed)
    assert regions.passes(regions.publish(regions.publisher()))


def test_a_killed_broker_is_listened_to_anew(regions: Regions) -> None:
    """The tap is bound by itself once it runs again; a publisher of after that is waited for."""
    regions.listen()
    assert regions.passes(regions.publish())
    regions.topology.restart_broker("eu", graceful=False)
    regions.hears(regions.publish())
    assert regions.passes(regions.publish(regions.publisher()))


def test_what_the_broker_refuses_is_said_at_once(regions: Regions) -> None:
    """No such exchange, and a user that it does not know."""
    for url, exchange in (
        (regions.far(), "no.such.exchange"),
        (regions.far().replace("guest:guest", "guest:wrong"), regions.name),
    ):
        with pytest.raises(ConfigurationError, match="refuses a tap"):
            regions.listen(url, exchange)


def test_closing_ends_who_waits(regions: Regions) -> None:
    """An error, and no hang."""
    shim = regions.listen()
    regions.topology.pause()
    lineage = regions.publish()
    closer = threading.Timer(0.2, shim.close)
    closer.start()
    with pytest.raises(UnmetError):
        regions.antipode.barrier(lineage, timeout=TIMEOUT_S, only=NEWS)
    closer.join()
