"""ActiveMQ with stomp.py alone: Table 2 with receipts, and an instrumented connection."""

import sys

import stomp

import antipode
from antipode_shims import activemq

URL, NAME = sys.argv[1:]
host, port = URL.removeprefix("stomp://").split(":")
where = {"destination": f"/topic/{NAME}", "queue": f"/queue/Consumer.extras.{NAME}"}
with activemq.shim("news", URL, receipts=True, **where) as news:
    assert news.read() == (None, antipode.Lineage())  # The queue is there from now on.
    with antipode.scope() as scope:
        news.write("extras", b"1")
        antipode.barrier(timeout=5)
        assert news.read(timeout=5)[0] == b"1"
        assert not scope.lineage.incomplete

connection = stomp.Connection12([(host, int(port))])
connection.connect(wait=True)
activemq.instrument_connection(connection, datastore="native", receipts=True)
with antipode.scope() as scope:
    connection.send(f"/topic/{NAME}", "1", persistent="true")
    assert scope.lineage
activemq.uninstrument_connection(connection)
connection.disconnect()
