"""Real limits of headers between real services: what arrives is the lineage, or says it is not."""

from __future__ import annotations

import contextlib
import http.client
import json
import math
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from fastapi import FastAPI, Request
from opentelemetry import baggage, propagate
from opentelemetry import context as otel_context
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor

import antipode
from antipode import Lineage, WriteId
from antipode.integrations import asgi
from antipode.integrations import httpx as lineages
from antipode.integrations._outgoing import forget_services
from antipode_testing import wait_until
from tests.integration._processes import process
from tests.integration._served import served

from ._http_proxy import KNOWN, Proxy, proxied

if TYPE_CHECKING:
    from collections.abc import Iterator

POST = WriteId("posts", "post:1", 1, written_hour=490_000)
ORDER = WriteId("orders", "order:1", 1, written_hour=490_000)
MOST_BYTES = 8_192
MOST_MEMBERS = 64


def lineage(entries: int) -> Lineage:
    """So many writes, of some 30 bytes of text each."""
    keys = (f"key-{number:08x}-{number * 7919:08x}" for number in range(entries))
    return Lineage([WriteId("posts", key, 1, written_hour=490_000) for key in keys])


def whole_or_incomplete(came: Lineage, sent: Lineage) -> bool:
    """Whether all of *sent* came; what did not must have left a mark."""
    whole = set(sent) <= set(came)
    assert whole or came.incomplete, "a dependency was lost without a word"
    assert set(came) <= set(sent)
    return whole and not came.incomplete


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    """A service that says what came, and writes."""
    app = FastAPI()

    @app.get("/")
    async def write(request: Request) -> dict[str, Any]:
        came = antipode.current()
        antipode.append(ORDER)
        text = antipode.serialize(came, max_bytes=60_000)
        return {"came": text, "baggage": request.headers.getlist("baggage")}

    asgi.instrument_app(app)
    with served(app) as url:
        yield url


@pytest.fixture(scope="module")
def middle() -> Iterator[str]:
    """A stock service in the way, with the limits of its own SDK."""
    with process("_stock_service", agent=False, INSTRUMENT="1") as url:
        wait_until(lambda: _answers(url), what="the stock service", timeout_s=60)
        yield url


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/docs", timeout=30, trust_env=False).status_code < 500
    except httpx.TransportError:
        return False


@pytest.fixture(autouse=True, params=[True, False], ids=["with-otel", "alone"])
def otel(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether OpenTelemetry's instrumentation sends the baggage, or we alone our member."""
    antipode.instrument()
    lineages.instrument()
    if request.param:
        HTTPXClientInstrumentor().instrument()
    yield request.param
    if request.param:
        HTTPXClientInstrumentor().uninstrument()
    lineages.uninstrument()
    forget_services()


def call(
    url: str, sent: Lineage, *, headers: Any = None, params: dict[str, str] | None = None
) -> tuple[Lineage, list[str], Lineage]:
    """What came to the service, in which headers, and the caller's lineage afterwards."""
    with antipode.scope(sent), httpx.Client(trust_env=False, timeout=20) as client:
        answer = client.get(url, headers=headers, params=params)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        body = body.get("next", body)
        return antipode.deserialize(body["came"]), body["baggage"], antipode.current()


def with_members(number: int, size: int, *, first: bool) -> object:
    """A context with so many foreign members of so many bytes, before ours or after it."""
    context = otel_context.get_current()
    ours = baggage.get_baggage("antipode")
    if first:
        context = baggage.remove_baggage("antipode", context)
    for index in range(number):
        name = f"tenant-{index:04}"
        context = baggage.set_baggage(name, "x" * (size - len(name) - 1), context)
    assert ours is not None
    return baggage.set_baggage("antipode", ours, context) if first else context


FOREIGN = [(63, 20), (64, 20), (100, 20), (200, 20), (2, 4090), (100, 104), (40, 200), (1, 8192)]


@pytest.mark.pairwise
@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(("number", "size"), FOREIGN)
@pytest.mark.parametrize("through", ["direct", "stock"])
def test_foreign_members(  # noqa: PLR0917 - cases and fixtures
    number: int,
    size: int,
    first: bool,  # noqa: FBT001 - a case
    through: str,
    service: str,
    middle: str,
) -> None:
    """However many there are and however large, ours arrives whole, at once and past an SDK."""
    sent = lineage(20)
    with antipode.scope(sent), httpx.Client(trust_env=False, timeout=20) as client:
        context: Any = with_members(number, size, first=first)
        token = otel_context.attach(context)
        try:
            stock = through == "stock"
            url, params = (f"{middle}/httpx", {"to": service}) if stock else (service, {})
            body = client.get(url, params=params).json()
        finally:
            otel_context.detach(token)
    body = body.get("next", body)
    assert whole_or_incomplete(antipode.deserialize(body["came"]), sent)
    (header,) = body["baggage"]
    assert len(header) <= MOST_BYTES
    assert any(member.startswith("antipode=") for member in header.split(",")[:MOST_MEMBERS])


@pytest.mark.pairwise
@pytest.mark.parametrize("most", [64, 256, 1_024, 4_096])
@pytest.mark.parametrize("entries", [0, 1, 8, 30, 100, 500])
def test_large_lineages(most: int, entries: int, service: str, middle: str) -> None:
    """What does not fit in the bound is marked; the bound is never exceeded."""
    antipode.configure(max_lineage_bytes=most)
    sent = lineage(entries)
    whole = len(antipode.serialize(sent, max_bytes=60_000)) + len("antipode=") <= most
    for url, params in ((service, None), (f"{middle}/httpx", {"to": service})):
        came, (header,), _ = call(url, sent, params=params)
        assert whole_or_incomplete(came, sent) is whole
        assert len(header) <= most
        assert came.incomplete <= {("posts", "size"), ("", "size")}


def test_answers_are_bounded_too(service: str) -> None:
    """The answer is what was added, whatever came; the caller has both."""
    sent = lineage(200)
    came, _, after = call(service, sent)
    assert came.incomplete == {("posts", "size")}
    assert ORDER in after
    assert set(sent) <= set(after)


def _split(text: str, where: str) -> list[tuple[str, str]]:
    """Baggage headers with the member *text* in one of them, or in two."""
    ours, theirs = ("baggage", f"antipode={text}"), ("baggage", "tenant=acme,plan=pro;ttl=5")
    other = ("Baggage", f"a=1,antipode={antipode.serialize(Lineage([ORDER]))}")
    return {
        "first": [ours, theirs],
        "second": [theirs, ours],
        "twice": [ours, other],
        "between": [theirs, ours, theirs],
    }[where]


@pytest.mark.parametrize("where", ["first", "second", "twice", "between"])
def test_several_headers_arrive(where: str, service: str) -> None:
    """Whoever sent them: SDKs look at the first one alone, and we at all of them."""
    sent = lineage(5)
    headers = _split(antipode.serialize(sent), where)
    plain = http.client.HTTPConnection(service.removeprefix("http://"), timeout=20)
    with contextlib.closing(plain):
        plain.putrequest("GET", "/")
        for name, value in headers:
            plain.putheader(name, value)
        plain.endheaders()
        answer = json.loads(plain.getresponse().read())
    assert len(answer["baggage"]) == len(headers)
    expected = sent.append(ORDER) if where == "twice" else sent
    assert antipode.deserialize(answer["came"]) == expected


@pytest.mark.parametrize("where", ["first", "second", "twice", "between"])
def test_several_headers_become_one(
    where: str,
    service: str,
    middle: str,
    otel: bool,  # noqa: FBT001 - a fixture
) -> None:
    """A client that is given several sends one, which an SDK in the way reads whole."""
    sent = lineage(5)
    headers = _split(antipode.serialize(lineage(2)), where)
    came, arrived, _ = call(f"{middle}/httpx", sent, headers=headers, params={"to": service})
    assert set(sent) <= set(came)
    assert not came.incomplete
    assert len(arrived) == 1
    assert ("tenant=acme" in arrived[0]) is (where != "twice")


class _Attributes(dict[str, str]):
    """A fake message of a pub/sub system: at most ten attributes of at most 1,024 bytes."""

    def __setitem__(self, name: str, value: str) -> None:
        assert len(value.encode()) <= 1_024
        super().__setitem__(name, value)
        assert len(self) <= 10


@pytest.mark.parametrize("entries", [0, 1, 30, 100, 2_000])
def test_attributes_of_messages(entries: int) -> None:
    """The lineage fits in one, and so does the baggage where nobody else has put much into it."""
    message = _Attributes()
    for number in range(7):
        message[f"own-{number}"] = "x" * 1_024
    sent = lineage(entries)
    message["lineage"] = antipode.serialize(sent)
    with antipode.scope(sent):
        propagate.inject(message)
    came = antipode.current(context=propagate.extract(message, context=otel_context.Context()))
    assert whole_or_incomplete(came, sent) is (entries <= 30)
    assert antipode.deserialize(message["lineage"]) == came
    assert math.isclose(len(message), 9, abs_tol=1)


@pytest.fixture
def proxy(service: str) -> Iterator[Proxy]:
    """A proxy before the service."""
    with proxied(service) as one:
        yield one


def test_a_proxy_that_strips_baggage(proxy: Proxy) -> None:
    """The service knows that something was sent to it; its answer comes back as ever."""
    came, _, after = call(proxy.url, Lineage([POST]))
    assert came == Lineage([POST])
    proxy.passes = lambda name: name != "baggage"
    came, _, after = call(proxy.url, Lineage([POST]))
    assert came == Lineage(incomplete=[("baggage", "stripped")])
    assert after == Lineage([POST, ORDER])


def test_a_proxy_that_passes_known_headers_alone(proxy: Proxy) -> None:
    """Nothing tells the service; its caller, who has heard from it before, hears nothing now."""
    call(proxy.url, Lineage([POST]))
    proxy.passes = KNOWN.__contains__
    came, _, after = call(proxy.url, Lineage([POST]))
    assert came == Lineage()
    subject = proxy.url.removeprefix("http://")
    assert after == Lineage([POST], incomplete=[(subject, "in_doubt")])


def test_a_proxy_that_strips_the_answer(proxy: Proxy) -> None:
    """That is in doubt as well."""
    call(proxy.url, Lineage([POST]))
    proxy.passes = lambda name: name != "antipode-lineage"
    came, _, after = call(proxy.url, Lineage([POST]))
    assert came == Lineage([POST])
    assert {mark.reason for mark in after.incomplete} == {"in_doubt"}
