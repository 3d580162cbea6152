"""Dramatiq alone: an actor in a worker depends on what the request that sent it depends on."""

import dramatiq
from answering import ASKED
from dramatiq.brokers.stub import StubBroker

import antipode
from antipode import Lineage
from antipode.integrations import dramatiq as lineages

lineages.instrument()
broker = StubBroker()
found: list[str] = []


@dramatiq.actor(broker=broker)
def depends() -> None:
    found.append(antipode.serialize())


worker = dramatiq.Worker(broker, worker_timeout=50, worker_threads=1)
worker.start()
with antipode.scope(Lineage([ASKED])):
    depends.send()
broker.join(depends.queue_name, timeout=20_000)
worker.stop()
assert [antipode.deserialize(text) for text in found] == [Lineage([ASKED])]
