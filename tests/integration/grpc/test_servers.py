"""Scopes of gRPC servers: they end with their call in every path, and answer in every path."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import pytest

import antipode
from antipode import Lineage, WriteId
from antipode.integrations import grpc as ours
from antipode.integrations._outgoing import forget_services
from antipode.shim import scope_in
from antipode_testing import wait_until

from ._service import (
    CAUSE,
    START,
    Seen,
    aio_methods,
    handler,
    made,
    served,
    sync_methods,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = pytest.mark.parametrize("kind", ["sync", "aio"])


@pytest.fixture(autouse=True)
def _instrumented() -> Iterator[None]:
    forget_services()
    antipode.instrument()
    yield
    ours.uninstrument()
    forget_services()


@pytest.fixture
def seen() -> Iterator[Seen]:
    """What the service saw; whatever waits in it goes on at the end."""
    one = Seen()
    yield one
    one.leave.set()


def interceptor(kind: str) -> Any:
    return ours.server_interceptor() if kind == "sync" else ours.aio_server_interceptor()


def methods(kind: str, seen: Seen) -> Any:
    return handler((sync_methods if kind == "sync" else aio_methods)(seen))


def plain_channel(port: int) -> Any:
    return grpc.aio.insecure_channel(f"127.0.0.1:{port}")


def lineages(trailing: Any) -> list[Lineage]:
    return [antipode.deserialize(value) for key, value in trailing if key == "antipode-lineage"]


@KINDS
async def test_a_scope_ends_when_the_client_cancels(kind: str, seen: Seen) -> None:
    """Who has gone needs no answer; the next call finds nothing of the one before."""
    interceptors = [interceptor(kind)]
    async with (
        served(methods(kind, seen), kind=kind, interceptors=interceptors, workers=1) as port,
        plain_channel(port) as channel,
    ):
        call = made(channel, "drip")(b"a")
        assert await call.read() == b"a"
        assert seen.scopes[0].open
        call.cancel()
        await asyncio.to_thread(
            wait_until, lambda: not seen.scopes[0].open, what="the scope to end", timeout_s=10
        )
        await made(channel, "unary_unary")(b"b")
        assert seen.scopes[1] is not seen.scopes[0]
        assert seen.scopes[1].lineage == Lineage([write("b")])


@KINDS
async def test_a_scope_ends_with_its_deadline(kind: str, seen: Seen) -> None:
    """Asyncio cancels the handler; a thread goes on, and its scope ends when it does."""
    interceptors = [interceptor(kind)]
    async with (
        served(methods(kind, seen), kind=kind, interceptors=interceptors) as port,
        plain_channel(port) as channel,
    ):
        while not seen.scopes:  # A busy machine may not come to the call before its deadline.
            with pytest.raises(grpc.RpcError):
                await made(channel, "wait")(b"a", timeout=0.2)
        seen.leave.set()
        await asyncio.to_thread(
            wait_until, lambda: not seen.scopes[0].open, what="the scope to end", timeout_s=10
        )


@KINDS
async def test_who_did_not_ask_is_told_what_was_added_alone(kind: str, seen: Seen) -> None:
    """A call without a lineage that added nothing is answered as if we were not there."""
    interceptors = [interceptor(kind)]
    async with (
        served(methods(kind, seen), kind=kind, interceptors=interceptors) as port,
        plain_channel(port) as channel,
    ):
        for metadata, written, answers in (
            ((), [], []),
            ((("baggage", "antipode=1"),), [], [Lineage()]),
            ((("antipode-sent", "1"),), [], [Lineage()]),
            ((), [b"a"], [Lineage([write("a")])]),
        ):
            call = made(channel, "stream_unary")(iter(written), metadata=metadata)
            await call
            assert lineages(await call.trailing_metadata()) == answers


@KINDS
async def test_interceptors_inside_that_abort_answer(kind: str, seen: Seen) -> None:
    """An interceptor of the application refuses calls: its answer has a lineage all the same."""

    def refuse(_: Any, context: Any) -> None:
        antipode.append(write("audit"))
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "who are you")

    async def aio_refuse(_: Any, context: Any) -> None:
        antipode.append(write("audit"))
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "who are you")

    class Guard(grpc.ServerInterceptor):
        def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(refuse)

    class AioGuard(grpc.aio.ServerInterceptor):
        async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(aio_refuse)

    interceptors = [interceptor(kind), Guard() if kind == "sync" else AioGuard()]
    async with (
        served(methods(kind, seen), kind=kind, interceptors=interceptors) as port,
        plain_channel(port) as channel,
    ):
        with pytest.raises(grpc.RpcError) as raised:
            await made(channel, "unary_unary")(b"a")
    error: Any = raised.value
    assert lineages(error.trailing_metadata()) == [Lineage([write("audit")])]


@KINDS
async def test_interceptors_nested_in_themselves_answer_once(kind: str, seen: Seen) -> None:
    """Given by hand and by ``instrument()``, around another that hides the context: one answer."""

    class Hiding:
        """A servicer context that passes on what its author thought of."""

        def __init__(self, context: Any) -> None:
            self._context = context
            for name in ("invocation_metadata", "set_trailing_metadata", "abort", "details"):
                setattr(self, name, getattr(context, name))
            self.trailing_metadata = context.trailing_metadata

    def hide(found: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(
            (lambda request, context: found.unary_unary(request, Hiding(context)))
            if kind == "sync"
            else aio_hide(found)
        )

    def aio_hide(found: Any) -> Any:
        async def respond(request: Any, context: Any) -> Any:
            return await found.unary_unary(request, Hiding(context))

        return respond

    class Between(grpc.ServerInterceptor):
        def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
            return hide(continuation(handler_call_details))

    class AioBetween(grpc.aio.ServerInterceptor):
        async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
            return hide(await continuation(handler_call_details))

    middle = [[], [Between() if kind == "sync" else AioBetween()]]
    for between in middle:
        interceptors = [interceptor(kind), *between, interceptor(kind)]
        async with (
            served(methods(kind, seen), kind=kind, interceptors=interceptors) as port,
            plain_channel(port) as channel,
        ):
            call = made(channel, "unary_unary")(b"a", metadata=baggage(START))
            assert await call == b"a"
            assert lineages(await call.trailing_metadata()) == [Lineage([write("a")])]


def baggage(lineage: Lineage) -> tuple[tuple[str, str], ...]:
    return (("baggage", f"k=v,antipode={antipode.serialize(lineage)}"), ("antipode-sent", "1"))


@KINDS
async def test_all_baggage_entries_count(kind: str, seen: Seen) -> None:
    """Mappings, as OpenTelemetry makes of metadata, keep the last entry of a name alone."""
    other = Lineage([WriteId("carts", "c1", 3, written_hour=490_000)])
    interceptors = [interceptor(kind)]
    async with (
        served(methods(kind, seen), kind=kind, interceptors=interceptors) as port,
        plain_channel(port) as channel,
    ):
        metadata = (*baggage(START), *baggage(other))
        await made(channel, "unary_unary")(b"a", metadata=metadata)
    assert seen.lineages == [START.merge(other)]


@KINDS
async def test_a_request_that_lost_its_baggage_is_marked(kind: str, seen: Seen) -> None:
    """Something on the way has taken the lineage out: a barrier must not pass on nothing."""
    interceptors = [interceptor(kind)]
    async with (
        served(methods(kind, seen), kind=kind, interceptors=interceptors) as port,
        plain_channel(port) as channel,
    ):
        await made(channel, "unary_unary")(b"a", metadata=(("antipode-sent", "1"),))
    assert seen.lineages[0].incomplete == {("baggage", "stripped")}


@KINDS
async def test_a_scope_around_the_server_is_not_its_requests(kind: str, seen: Seen) -> None:
    """A server that is started in a request of its own serves each call in another scope."""
    with antipode.scope(START) as around:
        async with (
            served(methods(kind, seen), kind=kind, interceptors=[interceptor(kind)]) as port,
            plain_channel(port) as channel,
        ):
            await made(channel, "unary_unary")(b"a")
        assert around.open
        assert around.lineage == START
    assert seen.lineages == [Lineage()]


@KINDS
async def test_writes_after_the_answer_are_counted(kind: str) -> None:
    """What a callback of the call writes is in no answer."""
    metric = antipode.telemetry.Metric("after_response_write", "posts")
    before = antipode.telemetry.metrics().get(metric, 0)

    def later(_: bytes, context: Any) -> bytes:
        held = scope_in()
        assert held is not None
        append = held.append
        if kind == "sync":
            context.add_callback(lambda: append(write("late")))
        else:
            context.add_done_callback(lambda _: append(write("late")))
        return b""

    async def aio_later(request: bytes, context: Any) -> bytes:
        return later(request, context)

    one = handler({"later": later if kind == "sync" else aio_later})
    async with (
        served(one, kind=kind, interceptors=[interceptor(kind)]) as port,
        plain_channel(port) as channel,
    ):
        await made(channel, "later")(b"")
        await asyncio.to_thread(
            wait_until,
            lambda: antipode.telemetry.metrics().get(metric, 0) == before + 1,
            what="the count",
            timeout_s=10,
        )


async def test_asyncio_serves_synchronous_handlers(seen: Seen) -> None:
    """GRPC runs them in threads, with a context that cannot tell what was set on it."""
    interceptors = [interceptor("aio")]
    async with (
        served(methods("sync", seen), kind="aio", interceptors=interceptors, workers=1) as port,
        plain_channel(port) as channel,
    ):
        call = made(channel, "unary_unary")(b"a", metadata=baggage(START))
        assert await call == b"a"
        assert lineages(await call.trailing_metadata()) == [Lineage([write("a")])]
        stream = made(channel, "unary_stream")(b"b")
        assert len([each async for each in stream]) == 3
        (found,) = lineages(await stream.trailing_metadata())
        assert found == Lineage(map(write, ("b0", "b1", "b2")))
        with pytest.raises(grpc.RpcError) as raised:
            await made(channel, "abort")(b"c")
        trailing = raised.value.trailing_metadata()  # type: ignore[attr-defined]
        assert ("app", "kept") in tuple(trailing)
        assert lineages(trailing) == [Lineage([write("c")])]
    assert not any(scope.open for scope in seen.scopes)


async def test_asyncio_serves_streams_that_write_and_read_by_hand(seen: Seen) -> None:
    """The other style of asyncio: a coroutine that calls ``context.read`` and ``write``."""

    async def stream_stream(_: Any, context: Any) -> None:
        seen.call(context)
        while (request := await context.read()) is not grpc.aio.EOF:
            antipode.append(write(request.decode()))
            await context.write(request)

    interceptors = [interceptor("aio")]
    async with (
        served(
            handler({"stream_stream": stream_stream}), kind="aio", interceptors=interceptors
        ) as port,
        plain_channel(port) as channel,
    ):
        call = made(channel, "stream_stream")(iter([b"a", b"b"]))
        assert [each async for each in call] == [b"a", b"b"]
        assert lineages(await call.trailing_metadata()) == [Lineage([write("a"), write("b")])]


@KINDS
async def test_an_abort_with_a_status_answers(kind: str) -> None:
    """``abort_with_status`` brings trailing metadata of its own."""

    class Refused(grpc.Status):  # type: ignore[misc]
        code = grpc.StatusCode.FAILED_PRECONDITION
        details = "not now"
        trailing_metadata = (("app", "1"),)

    def refuse(_: bytes, context: Any) -> None:
        antipode.append(write("a"))
        context.abort_with_status(Refused())

    async def aio_refuse(_: bytes, context: Any) -> None:
        antipode.append(write("a"))
        await context.abort_with_status(Refused())

    one = handler({"refuse": refuse if kind == "sync" else aio_refuse})
    async with (
        served(one, kind=kind, interceptors=[interceptor(kind)]) as port,
        plain_channel(port) as channel,
    ):
        with pytest.raises(grpc.RpcError) as raised:
            await made(channel, "refuse")(b"")
    error: Any = raised.value
    assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert ("app", "1") in tuple(error.trailing_metadata())
    assert lineages(error.trailing_metadata()) == [Lineage([write("a")])]


@KINDS
async def test_an_answer_made_by_hand_is_kept(kind: str) -> None:
    """``inject_response`` may have been there before us: what it says is in the answer."""

    def by_hand(_: bytes, context: Any) -> bytes:
        with antipode.scope():
            antipode.append(write("hand"))
            carrier: dict[str, str] = {}
            antipode.propagation.inject_response(carrier)
        context.set_trailing_metadata(tuple(carrier.items()))
        antipode.append(CAUSE)
        return b""

    async def aio_by_hand(request: bytes, context: Any) -> bytes:
        return by_hand(request, context)

    one = handler({"by_hand": by_hand if kind == "sync" else aio_by_hand})
    async with (
        served(one, kind=kind, interceptors=[interceptor(kind)]) as port,
        plain_channel(port) as channel,
    ):
        call = made(channel, "by_hand")(b"")
        await call
        assert lineages(await call.trailing_metadata()) == [Lineage([write("hand"), CAUSE])]
