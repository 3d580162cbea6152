"""HTTP clients name the calls of a handler: an honest repetition has the same name."""

from __future__ import annotations

import asyncio
import contextlib
import io
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx
import pytest
import requests
import requests.adapters
import urllib3

import antipode
from antipode import ConfigurationError, calls
from antipode.integrations import aiohttp as aiohttp_lineages
from antipode.integrations import httpx as httpx_lineages
from antipode.integrations import requests as requests_lineages
from tests.integration.calls._callee import CLIENTS, CUT, Callee, Client, callee

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

ASYNC = ["httpx-async", "aiohttp"]
#: What carries lineages, by library.
LINEAGES = {
    "aiohttp": aiohttp_lineages,
    "httpx": httpx_lineages,
    "requests": requests_lineages,
}
#: What a client raises where a response does not come to its end.
LOST = (httpx.TransportError, requests.RequestException, aiohttp.ClientError)


@pytest.fixture
def service() -> Iterator[Callee]:
    """A service that notes names."""
    with callee() as made:
        yield made


@pytest.fixture(params=CLIENTS)
async def client(request: pytest.FixtureRequest, service: Callee) -> AsyncIterator[Client]:
    """An instrumented client of each library."""
    async with Client(request.param, service) as made:
        calls.instrument_client(made.own)
        yield made


async def test_a_repetition_has_the_name_until_there_is_a_reply(
    client: Client, service: Callee
) -> None:
    """Errors by which a request may be executed still keep the name; every reply ends it."""
    errors, replies = [500, 503, 408, 409, 425, 429, 200], [404, 422, 301, 200]
    service.plan = [*errors, *replies]
    with calls.call("order-1"):
        got = [await client.send() for _ in service.plan[:]]
    assert got == [*errors, *replies]
    assert len(set(service.names[: len(errors)])) == 1
    assert len(set(service.names[len(errors) - 1 :])) == 1 + len(replies)


async def test_a_handler_that_runs_again_makes_the_same_calls(
    client: Client, service: Callee
) -> None:
    """Whatever was answered before: by the call's name alone its nested calls are named."""

    async def handle() -> list[str | None]:
        since = len(service.names)
        for body in (b"1", b"2", b"2", b"1"):
            await client.send(body=body)
        return service.names[since:]

    with calls.call("order-1"):
        first = await handle()
    with calls.call("order-1"):
        assert await handle() == first
    with calls.call("order-2"):
        other = await handle()
    assert len({*first, *other}) == 8


async def test_a_reply_that_is_cut_is_none(client: Client, service: Callee) -> None:
    """Its headers had come; the caller has no reply, and repeats the same call."""
    service.plan = [CUT, 200]
    with calls.call("order-1"):
        with pytest.raises(LOST):
            await client.send()
        await client.send()
        await client.send()
    assert service.names[0] == service.names[1] != service.names[2]


@pytest.mark.parametrize("client", ["httpx", "httpx-async", "requests"], indirect=True)
async def test_a_streamed_reply_that_is_cut_is_none(client: Client, service: Callee) -> None:
    """Also where the body is read by its parts, after the call has returned."""
    service.plan = [CUT, 200]
    with calls.call("order-1"):
        with pytest.raises(LOST):
            await _read_by_parts(client, service.url)
        await client.send()
    assert service.names[0] == service.names[1]


async def _read_by_parts(client: Client, url: str) -> None:
    own = client.own
    if client.library == "requests":
        response = own.post(f"{url}/charge", data=b"17", stream=True)
        assert list(response.iter_content(10))
    elif client.library == "httpx":
        with own.stream("POST", f"{url}/charge", content=b"17") as response:
            assert list(response.iter_bytes())
    else:
        async with own.stream("POST", f"{url}/charge", content=b"17") as response:
            assert [part async for part in response.aiter_bytes()]


async def test_other_calls_have_other_names(client: Client, service: Callee) -> None:
    """Body, path, query and method are parts of what is called."""
    service.plan = [500] * 9
    with calls.call("order-1"):
        for path in ("/charge", "/charge?card=1", "/refund"):
            for method in ("POST", "PUT", "DELETE"):
                await client.send(path, method=method)
    assert len(set(service.names)) == 9


async def test_the_callee_is_a_part_unless_it_is_named(client: Client, service: Callee) -> None:
    """Two instances of one service are two callees, and one where the caller says so."""
    service.plan = [500] * 4
    with callee() as other:
        other.plan = [500] * 2
        for name in (None, "billing"):
            calls.instrument_client(client.own, callee=name)
            with calls.call("order-1"):
                await client.send()
                await client.send("/charge")
                client._callee = other
                await client.send()
                client._callee = service
    assert service.names[0] == service.names[1] != other.names[0]
    assert service.names[2] == service.names[3] == other.names[1]


async def test_nothing_is_added_where_nothing_is_named(client: Client, service: Callee) -> None:
    """Outside of a call, for a safe method, and once it is undone."""
    await client.send()
    with calls.call("order-1"):
        await client.send(method="GET", body=None)
        calls.uninstrument_client(client.own)
        calls.uninstrument_client(client.own)
        await client.send()
    assert not any("antipode-call" in each for each in service.headers)


async def test_a_header_that_is_there_is_kept(client: Client, service: Callee) -> None:
    """It is a name that the caller gave, equal calls at once included."""
    with calls.call("order-1"):
        for name in ("first", "first", "second"):
            await client.send(headers={"Antipode-Call": name})
    assert service.names == ["first", "first", "second"]


async def test_named_calls_keep_their_names(client: Client, service: Callee) -> None:
    """In a block the name does not depend on replies before, nor on the body."""
    with calls.call("order-1"):
        for block, body in (("first", b"1"), ("first", b"2"), ("second", b"2")):
            with calls.named(block):
                await client.send(body=body)
    assert service.names[0] == service.names[1] != service.names[2]
    with calls.call("order-2"), calls.named("first"):
        await client.send(body=b"1")
    assert service.name != service.names[0]


@pytest.mark.parametrize("kind", ["stream", "parts"])
async def test_a_body_that_is_not_known_needs_a_name(
    client: Client, service: Callee, kind: str
) -> None:
    """A stream, or parts with a random boundary: refused before it is sent, unless it is named."""

    def options() -> dict[str, Any]:
        if kind == "stream":
            return {"body": stream(client)}
        if client.library == "aiohttp":
            data = aiohttp.FormData(default_to_multipart=True)
            data.add_field("file", "17")
            return {"body": data}
        return {"body": None, "files": {"file": b"17"}}

    with calls.call("order-1"):
        with pytest.raises(calls.CallError, match="named"):
            await client.send(**options())
        assert not service.names
        for _ in range(2):
            with calls.named("upload"):
                await client.send(**options())
    assert service.names[0] == service.names[1] is not None


def stream(client: Client) -> Any:
    """A body that is read once."""
    if client.library == "httpx-async":

        async def parts() -> AsyncIterator[bytes]:
            yield b"17"

        return parts()
    return iter([b"17"]) if client.library == "httpx" else io.BytesIO(b"17")


@pytest.mark.parametrize("library", ASYNC)
async def test_equal_calls_at_once_need_names(library: str, service: Callee) -> None:
    """Nobody could say which is which when they are repeated; different ones are no question."""
    async with Client(library, service) as made:
        calls.instrument_client(made.own)
        with calls.call("order-1"):
            done = await asyncio.gather(made.send(), made.send(), return_exceptions=True)
            (refused,) = (each for each in done if not isinstance(each, int))
            assert isinstance(refused, calls.EqualCalls)
        seen: list[set[str | None]] = []
        for order in ((b"1", b"2", b"3"), (b"3", b"2", b"1")):
            with calls.call("order-2"):
                await asyncio.gather(*(made.send(body=body) for body in order))
            seen.append(set(service.names[-3:]))
    assert seen[0] == seen[1]
    assert len(seen[0]) == 3


@pytest.mark.parametrize("library", ASYNC)
async def test_a_cancelled_call_has_no_reply(library: str, service: Callee) -> None:
    """Whether it was executed is not known: its repetition has the name, and is not refused."""
    async with Client(library, service) as made:
        calls.instrument_client(made.own)
        with calls.call("order-1"):
            service.plan = [500]
            await made.send()
            sending = asyncio.ensure_future(made.send())
            await asyncio.sleep(0)
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sending
            await made.send()
    assert len(set(service.names)) == 1


async def test_a_redirected_call_keeps_its_name(client: Client, service: Callee) -> None:
    """307 sends the same request elsewhere, and the answer from there is the reply."""
    service.plan = [500, 200]
    with calls.call("order-1"):
        for _ in range(3):
            await client.send("/moved")
    names = service.names
    assert len(names) == 6
    assert len(set(names[:4])) == 1
    assert names[4] == names[5] != names[0]


def test_retries_beneath_requests_keep_the_name(service: Callee) -> None:
    """urllib3 sends the same request again."""
    retry = urllib3.Retry(2, status_forcelist=[503], allowed_methods=None, backoff_factor=0)
    service.plan = [503, 503, 200]
    with requests.Session() as session:
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retry))
        with calls.call("order-1"):
            calls.instrument_client(session).post(f"{service.url}/charge", data=b"17")
    assert len(service.names) == 3
    assert len(set(service.names)) == 1


async def test_a_status_that_is_raised_is_a_reply(service: Callee) -> None:
    """Aiohttp may make an exception of 404, which is an answer all the same."""
    service.plan = [404, 404]
    async with aiohttp.ClientSession(raise_for_status=True) as session:
        calls.instrument_client(session)
        with calls.call("order-1"):
            for _ in range(2):
                with pytest.raises(aiohttp.ClientResponseError):
                    await session.post(f"{service.url}/charge", data=b"17")
    assert len(set(service.names)) == 2


@pytest.mark.parametrize("library", CLIENTS)
@pytest.mark.parametrize("first", ["calls", "lineages"])
async def test_lineages_travel_by_the_same_client(
    library: str, service: Callee, first: str
) -> None:
    """In either order of the instrumentations, and each can be undone alone."""
    module: Any = LINEAGES[library.partition("-")[0]]
    came = antipode.Lineage([antipode.WriteId("posts", "post:1", 7, written_hour=490_000)])
    async with Client(library, service) as made:
        instruments = [calls.instrument_client, module.instrument_client]
        for instrument in instruments if first == "calls" else reversed(instruments):
            instrument(made.own)
        with antipode.scope(came), calls.call("order-1"):
            await made.send()
            module.uninstrument_client(made.own)
            await made.send()
            module.instrument_client(made.own)
            calls.uninstrument_client(made.own)
            await made.send()
        module.uninstrument_client(made.own)
    assert ["baggage" in each for each in service.headers] == [True, False, True]
    assert ["antipode-call" in each for each in service.headers] == [True, True, False]


def test_what_is_no_client_is_refused() -> None:
    """With what can be passed."""
    for instrument in (calls.instrument_client, calls.uninstrument_client):
        with pytest.raises(ConfigurationError, match=r"httpx\.Client"):
            instrument(object())
