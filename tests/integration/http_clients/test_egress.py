"""Where ``egress_hosts`` forbids it, nothing of ours leaves and nothing is taken in."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import Lineage, WriteId
from tests.integration._served import served
from tests.integration.http_clients import _suite as _http_suite

from ._origin import write

if TYPE_CHECKING:
    from starlette.requests import Request

    from ._drivers import Driver
    from ._origin import Origin

client, driver, order, origin = (
    _http_suite.client,
    _http_suite.driver,
    _http_suite.order,
    _http_suite.origin,
)
POST = WriteId("posts", "post:1", 1, written_hour=490_000)


def assert_nothing_came(origin: Origin, request: int = -1) -> None:
    """Neither by its name nor anywhere else."""
    assert "antipode" not in str(origin.requests[request][1])


@pytest.mark.pairwise
def test_a_forbidden_host_gets_nothing(driver: Driver, order: str, origin: Origin) -> None:
    """Whatever instrumentation runs; its header is ignored, its failures leave no marks."""
    antipode.configure(egress_hosts=["posts.internal", "localhost"])
    with antipode.scope(Lineage([POST])):
        driver.get(origin.url("write?key=a"))
        assert_nothing_came(origin)
        driver.get(origin.url("status?status=503"))
        with pytest.raises(Exception):  # noqa: B017, PT011 - each client's own
            driver.get(origin.url("drop"))
        assert antipode.current() == Lineage([POST])


@pytest.mark.pairwise
def test_other_baggage_still_goes(driver: Driver, order: str, origin: Origin) -> None:
    """What is taken out of the header is ours alone, whoever put it there."""
    antipode.configure(egress_hosts=["posts.internal"])
    old = f"tenant=acme,antipode={antipode.serialize(Lineage([POST]))}"
    with antipode.scope(Lineage([POST])):
        driver.get(origin.url("nothing"), headers={"baggage": old, "antipode-sent": "1"})
    assert_nothing_came(origin)
    assert origin.received("baggage") == ["tenant=acme"]


@pytest.mark.pairwise
def test_an_allowed_host_gets_it(driver: Driver, order: str, origin: Origin) -> None:
    """By its name and port."""
    antipode.configure(egress_hosts=[f"127.0.0.1:{origin.port}"])
    with antipode.scope(Lineage([POST])):
        driver.get(origin.url("write?key=a"))
        assert antipode.current() == Lineage([POST, write("a")])
    assert origin.received("antipode-sent") == ["1"]


@pytest.mark.pairwise
def test_a_redirect_to_a_forbidden_host(driver: Driver, order: str, origin: Origin) -> None:
    """Clients copy headers to where a redirect leads; ours stay behind."""
    antipode.configure(egress_hosts=["127.0.0.1"])
    forbidden = origin.url("write?key=b", "localhost")
    with antipode.scope(Lineage([POST])):
        assert driver.get(origin.url(f"redirect?key=a&to={forbidden}")) == [200]
        assert antipode.current() == Lineage([POST, write("a")])
    assert origin.received("antipode-sent", 0) == ["1"]
    assert_nothing_came(origin)


@pytest.mark.pairwise
def test_a_redirect_from_a_forbidden_host(driver: Driver, order: str, origin: Origin) -> None:
    """Each hop is judged by its own host."""
    antipode.configure(egress_hosts=["127.0.0.1"])
    allowed = origin.url("write?key=b")
    with antipode.scope(Lineage([POST])):
        assert driver.get(origin.url(f"redirect?key=a&to={allowed}", "localhost")) == [200]
        assert antipode.current() == Lineage([POST, write("b")])
    assert_nothing_came(origin, 0)
    assert origin.received("antipode-sent") == ["1"]


def test_an_address_of_the_other_kind(client: Driver) -> None:
    """IPv6, in brackets or without."""
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    try:
        with _http_suite.serving("::1") as origin, antipode.scope(Lineage([POST])):
            for number, entry in enumerate(("::1", f"[0:0::1]:{origin.port}")):
                antipode.configure(egress_hosts=[entry])
                client.get(origin.url(f"write?key={number}"))
                assert origin.received("antipode-sent") == ["1"]
            antipode.configure(egress_hosts=["::2", "127.0.0.1"])
            client.get(origin.url("write?key=c"))
            assert_nothing_came(origin)
            assert antipode.current() == Lineage([POST, write("0"), write("1")])
    except OSError as error:
        pytest.skip(f"no IPv6 on loopback: {error}")


def test_a_gateway_strips_both_ways(origin: Origin) -> None:
    """Nobody outside can make a service wait, and nobody there learns what it wrote."""
    import httpx
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    async def forward(request: Request) -> Response:
        inwards = request.headers.mutablecopy()
        antipode.propagation.strip(inwards)
        async with httpx.AsyncClient(trust_env=False) as inside:
            url = origin.url(f"write?{request.url.query}")
            answer = await inside.get(url, headers=inwards.raw)
        outwards = answer.headers
        antipode.propagation.strip(outwards)
        return Response(answer.content, answer.status_code, dict(outwards))

    forged = antipode.serialize(Lineage([WriteId("posts", "log", 2**60)]))
    given = [
        ("baggage", f"antipode={forged},tenant=acme"),
        ("baggage", f"plan=pro,antipode={forged}"),
        ("antipode-sent", "1"),
        ("antipode-lineage", forged),
    ]
    with served(Starlette(routes=[Route("/", forward)])) as gateway:
        answer = httpx.get(f"{gateway}/?key=a", headers=given, trust_env=False)
    assert_nothing_came(origin)
    assert origin.received("baggage") == ["tenant=acme,plan=pro"]
    assert "antipode-lineage" not in answer.headers
    assert answer.json()[0] == "/write?key=a"
