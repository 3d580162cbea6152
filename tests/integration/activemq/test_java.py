"""What Python publishes over STOMP, Java consumes by JMS, and back: one format."""

from __future__ import annotations

import uuid
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import antipode
from antipode import BarrierTimeout, Lineage, WriteId
from antipode_shims import activemq
from antipode_testing import wait_until
from tests.agent._shims.rabbitmq import LastMessages
from tests.agent.client import RemoteAntipode, RemoteShim

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_shims.activemq import ActiveMQShim
    from antipode_testing import ActiveMQTopology
    from tests.agent.lending import Lend

pytestmark = pytest.mark.store("activemq")

NEWS = "news"
ELSEWHERE = WriteId("elsewhere", "log", 7, 490_000)
EARLY_S, TIMEOUT_S = 0.2, 20.0


class Ends(NamedTuple):
    """Both languages: each publishes in ``us``, and has receipts and a queue in ``eu``."""

    topology: ActiveMQTopology
    java: RemoteAntipode
    here: ActiveMQShim
    near: ActiveMQShim
    java_here: RemoteShim
    java_near: RemoteShim
    java_client: RemoteShim


@pytest.fixture
def ends(antipode_activemq: ActiveMQTopology, lend: Lend) -> Iterator[Ends]:
    """Of a virtual topic that only this test knows."""
    topology, name = antipode_activemq, f"VirtualTopic.{uuid.uuid4().hex}"
    places = {"primary": topology.primary, "replica": topology.replica}
    with ExitStack() as stack:
        java = lend("java")

        def opened(reads_from: Any) -> tuple[ActiveMQShim, RemoteShim]:
            queue = f"Consumer.{{}}-{reads_from}.{name}"
            shim = activemq.shim(
                NEWS,
                topology.url(places[reads_from]),
                destination=f"/topic/{name}",
                queue=f"/queue/{queue.format('python')}",
                receipts=reads_from == "replica",
                reads_from=reads_from,
            )
            server = {
                "url": f"tcp://{topology.openwire(places[reads_from])}",
                "topic": name,
                "queue": queue.format("java"),
            }
            remote = RemoteShim(java, "activemq", NEWS, server, reads_from=reads_from)
            stack.enter_context(closing(shim))
            stack.enter_context(closing(remote))
            shim.read()
            remote.read("")  # The queues are there from the first subscription on.
            return shim, remote

        here, java_here = opened("primary")
        near, java_near = opened("replica")
        server = {
            "url": f"tcp://{topology.openwire()}",
            "topic": name,
            "queue": f"Consumer.java-client.{name}",
        }
        client = RemoteShim(java, "activemq", NEWS, server, client=True)
        stack.enter_context(closing(client))
        topology.wait_forwarded(f"/topic/{name}")
        yield Ends(topology, java, here, near, java_here, java_near, client)


def last(queue: Any, key: str) -> tuple[bytes | None, Lineage]:
    """The last message of *key* in a queue, once it is there: the tap may be ahead of it."""
    wait_until(lambda: queue.read(key)[0] is not None, what="the message", timeout_s=TIMEOUT_S)
    found: tuple[bytes | None, Lineage] = queue.read(key)
    return found


def test_java_waits_for_what_python_publishes(ends: Ends) -> None:
    """Java's barrier ends once the message is in its region; it reads what Python depended on."""
    ends.topology.pause()
    with antipode.scope(Lineage([ELSEWHERE])):
        sent = ends.here.write("post:1", b"hello")
    with ends.java.scope(), pytest.raises(BarrierTimeout):
        ends.java.barrier(sent.only(NEWS), timeout=EARLY_S)
    ends.topology.resume()
    with ends.java.scope():
        ends.java.barrier(sent.only(NEWS), timeout=TIMEOUT_S)
        assert last(ends.java_near, "post:1") == (b"hello", sent)


@pytest.mark.parametrize("by", ["java_here", "java_client"])
def test_python_waits_for_what_java_publishes(ends: Ends, by: str) -> None:
    """Python's barrier ends once the message is in its region; it reads what Java depended on."""
    ends.topology.pause()
    with ends.java.scope(Lineage([ELSEWHERE])) as scope:
        getattr(ends, by).write("post:2", b"hello")
        sent = scope.lineage
    with antipode.scope(), pytest.raises(BarrierTimeout):
        antipode.barrier(sent.only(NEWS), timeout=EARLY_S)
    ends.topology.resume()
    with antipode.scope():
        antipode.barrier(sent.only(NEWS), timeout=TIMEOUT_S)
        assert last(LastMessages(ends.near), "post:2") == (b"hello", sent)
