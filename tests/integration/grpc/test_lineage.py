"""Lineages over gRPC: there with the metadata, back with the trailing metadata, for every kind."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from opentelemetry import propagate
from opentelemetry.instrumentation import grpc as otel
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

import antipode
from antipode.integrations import grpc as ours
from antipode.integrations._outgoing import forget_services
from antipode.propagation import AntipodeBaggagePropagator
from antipode.shim import Incomplete

from ._service import (
    CAUSE,
    SERVICE,
    START,
    Seen,
    aio_methods,
    called,
    handler,
    served,
    sync_methods,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

SIDES = [(server, client) for server in ("sync", "aio") for client in ("sync", "aio")]
sides = pytest.mark.parametrize(("server", "client"), SIDES)


@pytest.fixture(autouse=True, params=["alone", "otel before", "otel after", "listed"])
def _instrumented(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both sides instrumented by us: alone, inside and around of OpenTelemetry's.

    ``listed`` is the last with our propagator by its entry point, behind another's.
    """
    forget_services()
    if request.param == "listed":
        listed = CompositePropagator([TraceContextTextMapPropagator(), AntipodeBaggagePropagator()])
        propagate.set_global_textmap(listed)
    antipode.instrument()
    others: list[Any] = [
        otel.GrpcInstrumentorServer(),
        otel.GrpcAioInstrumentorServer(),
        otel.GrpcInstrumentorClient(),
        otel.GrpcAioInstrumentorClient(),
    ]
    if request.param == "otel before":
        for each in others:
            each.instrument()
    ours.instrument()
    if request.param in {"otel after", "listed"}:
        for each in others:
            each.instrument()
    yield
    if request.param in {"otel after", "listed"}:
        for each in others:
            each.uninstrument()
    ours.uninstrument()
    if request.param == "otel before":
        for each in others:
            each.uninstrument()
    forget_services()


def methods(kind: str, seen: Seen) -> Any:
    return handler((sync_methods if kind == "sync" else aio_methods)(seen))


# Both sides in every order, which the other claims test in pairs.
@sides
async def test_every_kind_of_call_brings_back_what_it_wrote(server: str, client: str) -> None:
    """The callee has the caller's lineage, the caller what was written until the call's end."""
    seen = Seen()
    async with served(methods(server, seen), kind=server) as port, called(port, client) as to:
        for name, request, keys in (
            ("unary_unary", b"a", ["a"]),
            ("stream_unary", iter([b"b", b"c"]), ["b", "c"]),
        ):
            with antipode.scope(START) as held:
                await to.one(name, request)
                assert set(held.lineage) == {CAUSE, *map(write, keys)}
        for name, request, keys in (
            ("unary_stream", b"d", ["d0", "d1", "d2"]),
            ("stream_stream", iter([b"e", b"f"]), ["e", "f"]),
        ):
            with antipode.scope(START) as held:
                await to.many(name, request)
                assert set(held.lineage) == {CAUSE, *map(write, keys)}
                assert not held.lineage.incomplete
    assert seen.lineages == [START] * 4
    assert not any(scope.open for scope in seen.scopes)
    assert len(set(map(id, seen.scopes))) == 4


@pytest.mark.pairwise
@sides
@pytest.mark.parametrize(
    ("name", "code"),
    [("abort", grpc.StatusCode.NOT_FOUND), ("crash", grpc.StatusCode.UNKNOWN)],
)
async def test_errors_bring_it_back_too(
    server: str, client: str, name: str, code: grpc.StatusCode
) -> None:
    """A call that fails has written all the same; the application's own trailers stay."""
    async with served(methods(server, Seen()), kind=server) as port, called(port, client) as to:
        with antipode.scope(START) as held:
            with pytest.raises(grpc.RpcError) as raised:
                await to.one(name, b"a")
            assert held.lineage == START.append(write("a"))
    error: Any = raised.value
    assert error.code() is code
    own = [tuple(e) for e in error.trailing_metadata() if e[0] != "antipode-lineage"]
    assert own == ([("app", "kept"), ("app-bin", b"\x00\xff")] if name == "abort" else [])


@pytest.mark.pairwise
@sides
async def test_calls_without_a_scope_are_served(server: str, client: str) -> None:
    """A caller without a request of its own is served; what its callee wrote is counted."""
    seen = Seen()
    before = antipode.telemetry.metrics().get(
        antipode.telemetry.Metric("unscoped_response", SERVICE), 0
    )
    async with served(methods(server, seen), kind=server) as port, called(port, client) as to:
        assert await to.one("unary_unary", b"a") == b"a"
    assert not seen.lineages[0]
    assert (
        antipode.telemetry.metrics()[antipode.telemetry.Metric("unscoped_response", SERVICE)]
        == before + 1
    )


@pytest.mark.pairwise
@sides
async def test_one_worker_serves_requests_apart(server: str, client: str) -> None:
    """Nothing of a call is seen by the next one on the same thread or loop, however it ended."""
    seen = Seen()
    async with (
        served(methods(server, seen), kind=server, workers=1) as port,
        called(port, client) as to,
    ):
        for name in ("unary_unary", "abort", "crash"):
            with antipode.scope(START):
                if name == "unary_unary":
                    await to.one(name, b"a")
                else:
                    with pytest.raises(grpc.RpcError):
                        await to.one(name, b"a")
            assert await to.one("unary_unary", b"a")
    assert seen.lineages == [START, antipode.Lineage()] * 3
    assert not any(scope.open for scope in seen.scopes)


@pytest.mark.pairwise
@sides
async def test_a_service_that_answered_before_and_does_not_now_is_in_doubt(
    server: str, client: str
) -> None:
    """A success without trailers is noticed: the service is known to have sent some."""
    seen = Seen()
    async with contextlib.AsyncExitStack() as stack:
        async with served(methods(server, seen), kind=server) as port:
            to = await stack.enter_async_context(called(port, client))
            await to.one("unary_unary", b"a")
        ours.uninstrument()  # Its next instance is a server without lineages.
        await stack.enter_async_context(served(methods(server, seen), kind=server, port=port))
        with antipode.scope() as held:
            await to.one("unary_unary", b"a", wait_for_ready=True)
            assert held.lineage.incomplete == {Incomplete(SERVICE, "in_doubt")}
