"""The guide to ActiveMQ does what it says, and names what there is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode_shims import activemq
from antipode_shims.activemq._clients.stomp import Broker, close_quietly, connect
from antipode_testing import wait_until
from antipode_testing.lab import Lab

if TYPE_CHECKING:
    from antipode_testing import ActiveMQTopology

pytestmark = pytest.mark.store("activemq")

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "activemq.md"
TEXT = GUIDE.read_text(encoding="utf-8")
#: Where the example of Table 2 publishes: the network has to know of its reader first.
PUBLISHES = 'with antipode.scope():\n    here.write("post:2"'


def await_forwarding(near: Any, url: str) -> None:
    """Return once a topic's messages come to the queue of *near*, which is empty then."""
    near.read()  # From its first read on it has a queue.
    publisher = connect(Broker.parse(url))

    def came() -> bool:
        publisher.send("/topic/VirtualTopic.news", b"probe")
        return near.read(timeout=0.2)[0] is not None

    wait_until(came, what="messages to be forwarded", timeout_s=60)
    publisher.send("/topic/VirtualTopic.news", b"last")
    while near.read(timeout=20)[0] != b"last":
        pass
    close_quietly(publisher)


def test_examples_run(antipode_activemq: ActiveMQTopology) -> None:
    """The examples, run one after the other on lagging brokers, hold."""
    topology = antipode_activemq
    code = "\n".join(re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL))
    for port, address in ((61613, topology.primary), (61614, topology.replica)):
        assert f"stomp://localhost:{port}" in code
        code = code.replace(f"stomp://localhost:{port}", f"stomp://{address}")
    code = code.replace('("localhost", 61613)', repr(tuple(topology.primary)))
    instrumented, table2 = code.split(PUBLISHES)
    names: dict[str, Any] = {}
    exec(compile(instrumented, str(GUIDE), "exec"), names)  # noqa: S102 - our own examples
    listener = names["Listener"]()
    await_forwarding(names["near"], topology.url())
    topology.set_lag(50)
    exec(compile(PUBLISHES + table2, str(GUIDE), "exec"), names)  # noqa: S102 - as above
    assert names["value"] == b"hello"
    assert {write.datastore for write in names["lineage"]} == {"news"}
    with antipode.scope():
        listener.on_message({"message-id": "1"})
    for one in ("here", "near"):
        names[one].close()
    activemq.uninstrument_connection(names["publisher"])
    names["publisher"].disconnect()


@pytest.mark.parametrize("function", [activemq.instrument_connection, activemq.shim])
def test_options_are_listed(function: Any) -> None:
    """Each option of each function is in the table."""
    options = [
        name
        for name, each in inspect.signature(function).parameters.items()
        if each.kind is each.KEYWORD_ONLY
    ]
    rows = "".join(line for line in TEXT.splitlines() if line.startswith("| `"))
    assert all(f"`{option}`" in rows for option in options)


def test_a_lab_says_where_its_brokers_are() -> None:
    """`antipode lab activemq` prints what `shim` takes; it refuses a fail-over."""
    with Lab("activemq", lag_ms=5) as lab:
        about = lab.describe()
        servers = (about["primary"], *about["replicas"])
        assert [each["url"].partition(":")[0] for each in servers] == ["stomp", "stomp"]
        assert not lab.answer("failover")["ok"]
        assert lab.answer("cut")["ok"]
        assert lab.answer("reset")["ok"]
