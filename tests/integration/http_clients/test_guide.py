"""The examples of clients and egress in docs/guides/integrations.md do what the guide says."""

from __future__ import annotations

import antipode
from antipode import Lineage
from antipode._runtime.peers import expected
from antipode.integrations import httpx as lineages
from antipode.integrations._outgoing import may_leave_to
from tests.integration.asgi.test_guide import run
from tests.integration.http_clients import _suite as _http_suite

from ._origin import Origin, write

origin = _http_suite.origin


def test_a_client(origin: Origin) -> None:
    """What the service wrote is in the lineage of its caller."""
    ordered = run("def ordered(url)")["ordered"]
    with antipode.scope():
        ordered(origin.url("write?key=a"))
        assert antipode.current() == Lineage([write("a")])
    lineages.uninstrument()


def test_the_hosts_that_are_allowed() -> None:
    """As the guide says of each entry."""
    run("antipode.configure(\n    egress_hosts=")
    assert may_leave_to("orders.internal", 8080)
    assert may_leave_to("posts.eu.internal", 80)
    assert not may_leave_to("eu.internal", 80)
    assert may_leave_to("fd00:0::1", 8080)
    assert not may_leave_to("fd00::1", 80)


def test_who_takes_part() -> None:
    """Each entry says what its comment says."""
    run("    peers={")
    peers = antipode.shim.config().peers
    assert expected(peers, "orders.internal", 80, "/orders/1") == ("always", "")
    assert expected(peers, "gateway.internal", 80, "/static/a.css") == ("never", "/static")
    assert expected(peers, "gateway.internal", 80, "/legacy") == ("auto", "/legacy")
    assert expected(peers, "gateway.internal", 80, "/orders") == ("auto", "")


def test_a_gateway() -> None:
    """The example states itself what is left."""
    run("antipode.propagation.strip(inwards)")
