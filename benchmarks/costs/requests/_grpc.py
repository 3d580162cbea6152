"""gRPC: an empty unary call between a synchronous channel and server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

_METHOD = "/benchmark.Empty/Call"


@contextmanager
def serve(*, antipode: bool, interceptors: tuple[Any, ...] = ()) -> Iterator[int]:
    """A server with OpenTelemetry's SDK and its instrumentation."""
    import grpc

    _instrument("GrpcInstrumentorServer", antipode=antipode)
    server = grpc.server(ThreadPoolExecutor(2), interceptors=interceptors)
    empty = grpc.unary_unary_rpc_method_handler(lambda _request, _context: b"")
    handler = grpc.method_handlers_generic_handler("benchmark.Empty", {"Call": empty})
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(grace=None)


@contextmanager
def calling(
    port: int,
    *,
    antipode: bool,
    request: AbstractContextManager[Any] | None = None,
    beneath: Callable[[Any], None] | None = None,
) -> Iterator[Callable[[], None]]:
    """A call over a synchronous channel.

    Args:
        port: of the server.
        antipode: whether Antipode is there as well.
        request: a block in which to call.
        beneath: what changes the channel beneath OpenTelemetry's interceptor.
    """
    import grpc

    _instrument("GrpcInstrumentorClient", antipode=antipode)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel, request or nullcontext():
        if beneath is not None:
            beneath(_innermost(channel))
        method = channel.unary_unary(_METHOD)

        def call() -> None:
            if method(b"") != b"":
                msg = "answered something"
                raise ValueError(msg)

        yield call


def _innermost(channel: Any) -> Any:
    import grpc

    while isinstance(inner := getattr(channel, "_channel", None), grpc.Channel):
        channel = inner
    return channel


def _instrument(instrumentor: str, *, antipode: bool) -> None:
    from opentelemetry import trace
    from opentelemetry.instrumentation import grpc as otel
    from opentelemetry.sdk.trace import TracerProvider

    trace.set_tracer_provider(TracerProvider())
    getattr(otel, instrumentor)().instrument()
    if antipode:
        from antipode import instrument
        from antipode.integrations import grpc

        instrument()
        grpc.instrument()
