"""The RabbitMQ topology on real brokers: each fault does to federation what its name says."""

from __future__ import annotations

import contextlib
import socket
import statistics
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pika
import pytest

from antipode import ConfigurationError
from antipode_testing import RabbitMQTopology, TopologyTimeout, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.store("rabbitmq")

TIMEOUT_S = 20.0


@pytest.fixture
def topology(antipode_rabbitmq: RabbitMQTopology) -> RabbitMQTopology:
    return antipode_rabbitmq


class Stream:
    """A federated fan-out exchange of its own name, with one queue in ``eu``."""

    def __init__(self, topology: RabbitMQTopology) -> None:
        self.topology = topology
        self.name = f"geo.{uuid.uuid4().hex}"
        self._stack = contextlib.ExitStack()
        self.us, self.eu = (self._channel(region) for region in ("us", "eu"))
        self.us.exchange_declare(self.name, "fanout", durable=True)
        self.us.confirm_delivery()
        self.declare_away()

    def _channel(self, region: Any) -> Any:
        connection = pika.BlockingConnection(
            pika.URLParameters(self.topology.url(self.topology.address(region)))
        )
        self._stack.callback(self._close, connection)
        return connection.channel()

    @staticmethod
    def _close(connection: Any) -> None:
        with contextlib.suppress(pika.exceptions.AMQPError):
            connection.close()

    def reconnect(self, region: str) -> None:
        setattr(self, region, self._channel(region))

    def declare_away(self) -> None:
        self.eu.exchange_declare(self.name, "fanout", durable=True)
        self.eu.queue_declare(self.name, durable=True)
        self.eu.queue_bind(self.name, self.name)
        self.topology.wait_federated(self.name)

    def publish(self, body: bytes) -> float:
        self.us.basic_publish(self.name, "", body, pika.BasicProperties(delivery_mode=2))
        return time.perf_counter()

    def get(self) -> bytes | None:
        body: bytes | None = self.eu.basic_get(self.name, auto_ack=True)[2]
        return body

    def await_body(self, body: bytes) -> float:
        wait_until(
            lambda: self.get() == body, what=repr(body), timeout_s=TIMEOUT_S, interval_s=0.0005
        )
        return time.perf_counter()

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def stream(topology: RabbitMQTopology) -> Iterator[Stream]:
    with contextlib.closing(Stream(topology)) as one:
        yield one


def test_lag_is_federation_lag_alone(topology: RabbitMQTopology, stream: Stream) -> None:
    """200 ms of lag delay a message by 200 ms, and its confirmed publishing by nothing."""
    topology.set_lag(200)
    lags, costs = [], []
    for number in range(5):
        began = time.perf_counter()
        costs.append(stream.publish(b"%d" % number) - began)
        lags.append(stream.await_body(b"%d" % number) - began)
    assert min(lags) >= 0.199
    assert statistics.median(lags) < 0.3
    assert statistics.median(costs) < 0.1


def test_a_cut_heals_without_loss(topology: RabbitMQTopology, stream: Stream) -> None:
    """Cut, nothing arrives and the backlog is known; healed, every message does, in order."""
    topology.cut()
    for number in range(3):
        stream.publish(b"%d" % number)
    with pytest.raises(TopologyTimeout):
        topology.wait_replicated(timeout_s=0.1)
    assert stream.get() is None
    topology.heal()
    for number in range(3):
        stream.await_body(b"%d" % number)
    topology.wait_replicated()


def test_pause_holds_messages_and_keeps_the_link(
    topology: RabbitMQTopology, stream: Stream
) -> None:
    """Paused, the link stays connected and carries nothing; resumed, it delivers."""
    connections = topology.link.traffic().connections
    topology.pause()
    stream.publish(b"held")
    with pytest.raises(TopologyTimeout):
        topology.wait_replicated(timeout_s=0.1)
    assert stream.get() is None
    topology.resume()
    stream.await_body(b"held")
    assert topology.link.traffic().connections == connections


def test_wait_federated_is_not_fooled_by_local_queues(
    topology: RabbitMQTopology, stream: Stream
) -> None:
    """A queue of ``us`` bound by the same key does not count as the link's own binding."""
    stream.us.queue_declare(stream.name, durable=True)
    stream.us.queue_bind(stream.name, stream.name, routing_key="late")
    topology.pause()
    stream.eu.queue_bind(stream.name, stream.name, routing_key="late")
    with pytest.raises(TopologyTimeout):
        topology.wait_federated(stream.name, timeout_s=0.3)
    topology.resume()
    topology.wait_federated(stream.name)


def test_a_killed_broker_restarts_with_its_messages(
    topology: RabbitMQTopology, stream: Stream
) -> None:
    """A confirmed persistent message outlives the kill of ``us``, at the same address."""
    address = topology.primary
    topology.cut()
    stream.publish(b"durable")
    topology.kill_broker("us")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=1).close()
    topology.restart_broker("us", graceful=False)
    assert topology.primary == address
    topology.heal()
    stream.await_body(b"durable")


def test_a_suspended_broker_answers_nothing_until_resumed(
    topology: RabbitMQTopology, stream: Stream
) -> None:
    """A frozen ``us`` accepts connections and says nothing; resumed, it goes on."""
    topology.suspend_broker("us")
    with socket.create_connection(topology.primary, timeout=0.3) as sock:
        sock.sendall(b"AMQP\x00\x00\x09\x01")
        with pytest.raises(TimeoutError):
            sock.recv(1)
    topology.resume_broker("us")
    stream.publish(b"thawed")
    stream.await_body(b"thawed")


def test_reseed_empties_and_federates_anew(topology: RabbitMQTopology, stream: Stream) -> None:
    """Re-seeded, ``eu`` knows no queue at the same address; declared again, messages arrive."""
    address = topology.replica
    topology.reseed()
    assert topology.replica == address
    assert topology.management("eu").get("queues/%2f") == []
    stream.reconnect("eu")
    stream.declare_away()
    stream.publish(b"anew")
    stream.await_body(b"anew")


@pytest.mark.parametrize("lose_unreplicated", [True, False])
def test_failover(topology: RabbitMQTopology, *, lose_unreplicated: bool) -> None:
    """``us`` is gone, ``eu`` is primary and has what was not to be lost; reset mends it."""
    with contextlib.closing(Stream(topology)) as stream:
        topology.set_lag(3_600_000 if lose_unreplicated else 200)
        old_primary, old_replica = topology.primary, topology.replica
        stream.publish(b"last")
        topology.failover(lose_unreplicated=lose_unreplicated)
        assert (topology.primary, topology.replica) == (old_replica, old_primary)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(old_primary, timeout=1).close()
        assert stream.get() == (None if lose_unreplicated else b"last")
    topology.reset()
    with contextlib.closing(Stream(topology)) as stream:
        stream.publish(b"rebuilt")
        stream.await_body(b"rebuilt")


def test_nothing_is_left_behind() -> None:
    """A single broker ends with its epmd, its children, its ports, threads and directory."""
    threads = set(threading.enumerate())
    before = _processes()
    topology = RabbitMQTopology(federated=False)
    with topology:
        assert topology.primary == topology.replica
        with pytest.raises(ConfigurationError, match="federated=True"):
            topology.set_lag(1)
        server: Any = topology._server("us")
        endpoints, directory = dict(server.endpoints), server._directory
        now = _processes()
        names = {now[pid] for pid in now.keys() - before.keys()}
        assert {"beam.smp", "epmd", "erl_child_setup"} <= names
    assert topology.closed
    for address in endpoints.values():
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, timeout=1).close()
    wait_until(
        lambda: not _ours(_processes().keys() - before.keys(), str(directory)),
        what="the broker's helpers to end",
        timeout_s=TIMEOUT_S,
    )
    assert not directory.exists()
    assert set(threading.enumerate()) <= threads


def _processes() -> dict[int, str]:
    """The names of all processes, by process id."""
    names: dict[int, str] = {}
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            names[int(path.parent.name)] = path.read_text().strip()
    return names


def _ours(processes: set[int], directory: str) -> list[int]:
    """Those that run with the broker's directory as their home, or anything else of it."""
    found: list[int] = []
    for pid in processes:
        with contextlib.suppress(OSError):
            if directory.encode() in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
    return found
