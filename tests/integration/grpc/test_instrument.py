"""``instrument()`` and ``instrument_channel()`` of gRPC: in any order, and undone."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from opentelemetry import propagate
from opentelemetry.instrumentation import grpc as otel

import antipode
from antipode import ConfigurationError, Lineage
from antipode.integrations import grpc as ours
from antipode.integrations._outgoing import forget_services

from ._service import SERVICE, START, Seen, handler, made, served, sync_methods, write

if TYPE_CHECKING:
    from collections.abc import Iterator

ANSWER = "antipode-lineage"
NAMES = ("server", "insecure_channel", "secure_channel")


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    forget_services()
    antipode.instrument()
    before = functions()
    yield
    ours.uninstrument()
    assert functions() == before
    forget_services()


def functions() -> list[Any]:
    return [getattr(module, name) for module in (grpc, grpc.aio) for name in NAMES]


def test_it_is_idempotent_and_undone() -> None:
    """Twice is once, and afterwards gRPC's functions are its own."""
    before = functions()
    ours.instrument()
    once = functions()
    ours.instrument()
    assert functions() == once
    assert not set(map(id, once)) & set(map(id, before))
    ours.uninstrument()
    ours.uninstrument()
    assert functions() == before


def test_undone_beneath_another_it_does_nothing() -> None:
    """Who has wrapped us since keeps working; we are no longer in it."""
    before = grpc.server, grpc.insecure_channel
    ours.instrument()
    instrumentor = otel.GrpcInstrumentorServer()
    instrumentor.instrument()
    try:
        ours.uninstrument()
        with ThreadPoolExecutor(1) as pool:
            server = grpc.server(pool)
            (only,) = server._state.interceptor_pipeline.interceptors
            assert not isinstance(only, ours.ServerInterceptor)
            server.stop(None)
    finally:
        instrumentor.uninstrument()
        grpc.server, grpc.insecure_channel = before


class Commits(grpc.ServerInterceptor):  # type: ignore[misc]  # gRPC has no annotations
    """An interceptor of the application, which writes when the handler is done."""

    def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        inner = continuation(handler_call_details).unary_unary

        def respond(request: bytes, context: Any) -> Any:
            response = inner(request, context)
            antipode.append(write("committed"))
            return response

        return grpc.unary_unary_rpc_method_handler(respond)


def writes(request: bytes, _: Any) -> bytes:
    """A handler."""
    antipode.append(write(request.decode()))
    return request


def answers(server: Any) -> list[Lineage]:
    """The lineages in the answer of the handler above, which *server* serves under ``writes``."""
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            _, call = made(channel, "writes").with_call(b"a")
            found = [text for name, text in call.trailing_metadata() if name == ANSWER]
    finally:
        server.stop(None).wait()
    return [antipode.deserialize(text) for text in found]


def test_interceptors_may_be_given_by_position() -> None:
    """As gRPC's own signatures allow; there is one answer, with what they write in it."""
    ours.instrument()
    both = Lineage([write("a"), write("committed")])
    for given in ([Commits()], [ours.server_interceptor(), Commits()]):
        with ThreadPoolExecutor(1) as pool:
            server = grpc.server(pool, [handler({"writes": writes})], given, None, 5)
            assert answers(server) == [both]


@pytest.mark.parametrize("instrumentor", [None, otel.GrpcInstrumentorServer], ids=["alone", "otel"])
@pytest.mark.parametrize("interceptors", [(), (Commits(),)], ids=["none", "own"])
@pytest.mark.parametrize("way", ["position", "keyword", "generic", "registered"])
def test_handlers_answer_however_they_are_registered(
    way: str, interceptors: tuple[Any, ...], instrumentor: Any
) -> None:
    """As ``grpc.server`` and generated code do it; with what interceptors write in the answer."""
    if way == "registered" and not hasattr(grpc.Server, "add_registered_method_handlers"):
        pytest.skip("this version of gRPC has no registered methods")
    theirs = instrumentor and instrumentor()
    if theirs is not None:
        theirs.instrument()
    ours.instrument()
    handlers = [handler({"writes": writes})]
    try:
        with ThreadPoolExecutor(1) as pool:
            if way == "position":
                server = grpc.server(pool, handlers, interceptors=interceptors)
            elif way == "keyword":
                server = grpc.server(pool, handlers=handlers, interceptors=interceptors)
            else:
                server = grpc.server(thread_pool=pool, interceptors=interceptors)
            if way == "generic":
                server.add_generic_rpc_handlers(handlers)
            elif way == "registered":
                method = grpc.unary_unary_rpc_method_handler(writes)
                server.add_registered_method_handlers(SERVICE, {"writes": method})
            keys = ("a", "committed") if interceptors else ("a",)
            assert answers(server) == [Lineage([write(key) for key in keys])]
    finally:
        if theirs is not None:
            ours.uninstrument()  # In the order in which they were put in place.
            theirs.uninstrument()


async def test_asyncio_interceptors_may_be_given_by_position() -> None:
    """The same for channels of asyncio: each kind of ours is there once, behind the user's."""

    class Mine(grpc.aio.UnaryUnaryClientInterceptor):
        async def intercept_unary_unary(
            self, continuation: Any, client_call_details: Any, request: Any
        ) -> Any:
            return await continuation(client_call_details, request)

    ours.instrument()
    mine = Mine()
    for given in ([mine], [mine, *ours.aio_client_interceptors()]):
        channel = grpc.aio.insecure_channel("127.0.0.1:1", None, None, given)
        first, second = channel._unary_unary_interceptors
        assert first is mine
        assert second is not mine
        assert len(channel._stream_stream_interceptors) == 1
        await channel.close()


@pytest.mark.parametrize("kind", ["sync", "aio"])
async def test_one_channel_can_be_instrumented(kind: str) -> None:
    """Beneath interceptors that are there already; twice is once; undone for new stubs."""
    seen = Seen()
    one = handler(sync_methods(seen))
    async with served(one, kind="sync", interceptors=[ours.server_interceptor()]) as port:
        target = f"127.0.0.1:{port}"
        if kind == "aio":
            channel = grpc.aio.insecure_channel(target)
        else:
            channel = grpc.intercept_channel(grpc.insecure_channel(target), Retrying())
        assert ours.instrument_channel(channel, target=target) is channel
        ours.instrument_channel(channel)

        async def write_one() -> antipode.Lineage:
            call = made(channel, "unary_unary")
            with antipode.scope(START) as held:
                await (call(b"a") if kind == "aio" else asyncio.to_thread(call, b"a"))
                return held.lineage

        assert await write_one() == START.append(write("a"))
        ours.uninstrument_channel(channel)
        ours.uninstrument_channel(channel)
        assert await write_one() == START
        closed = channel.close()
        if kind == "aio":
            await closed


class Retrying(grpc.UnaryUnaryClientInterceptor):
    """Sends a call that failed once more."""

    def intercept_unary_unary(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        found = continuation(client_call_details, request)
        if found.code() is not grpc.StatusCode.OK:
            found = continuation(client_call_details, request)
        return found


async def test_each_attempt_of_a_retrying_interceptor_counts() -> None:
    """The first one wrote before it failed: its answer is in the scope as well."""
    attempts: list[int] = []

    def flaky(request: bytes, context: Any) -> bytes:
        attempts.append(1)
        antipode.append(write(f"attempt{len(attempts)}"))
        if len(attempts) == 1:
            context.abort(grpc.StatusCode.UNAVAILABLE, "once more")
        return request

    ours.instrument()
    async with served(handler({"flaky": flaky}), kind="sync") as port:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel, antipode.scope() as held:
            call = made(grpc.intercept_channel(channel, Retrying()), "flaky")
            await asyncio.to_thread(call, b"a")
            assert held.lineage == antipode.Lineage([write("attempt1"), write("attempt2")])


def test_what_is_no_channel_is_refused() -> None:
    """An object of another kind has no calls to carry anything."""
    with pytest.raises(ConfigurationError):
        ours.instrument_channel(object())


def test_without_grpc_the_error_names_the_extra() -> None:
    """The module needs its framework alone, and says how to get it."""
    code = (
        "import sys; sys.modules['grpc'] = None\n"
        "from antipode import ConfigurationError\n"
        "try:\n    import antipode.integrations.grpc\n"
        "except ConfigurationError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "antipode-xcy[grpc]"' in done.stdout


async def test_a_server_asks_for_scopes_in_propagators() -> None:
    """Where nobody called ``antipode.instrument()``, stock clients would send on what came."""
    antipode.propagation.uninstrument()
    interceptors = [ours.server_interceptor()]
    async with served(
        handler(sync_methods(Seen())), kind="sync", interceptors=interceptors
    ) as port:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            await asyncio.to_thread(made(channel, "unary_unary"), b"a")
    assert isinstance(propagate.get_global_textmap(), antipode.propagation.AntipodePropagator)
