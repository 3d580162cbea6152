"""The least that an answer in trailing metadata costs: a constant in it, and a look at it.

In place of Antipode both ends have an interceptor that does no more than that.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from . import _grpc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ANSWER = (("antipode-lineage", "1"),)


@contextmanager
def serve(*, antipode: bool) -> Iterator[int]:
    """A server with OpenTelemetry's instrumentation, and a constant in its answers or nothing."""
    import grpc

    class Constant(grpc.ServerInterceptor):  # type: ignore[misc]  # gRPC has no annotations
        def __init__(self) -> None:
            self._made: Any = None

        def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
            handler = continuation(details)
            if self._made is None:
                self._made = grpc.unary_unary_rpc_method_handler(_constant(handler.unary_unary))
            return self._made

    with _grpc.serve(antipode=False, interceptors=(Constant(),) if antipode else ()) as port:
        yield port


def _constant(behavior: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def respond(request: Any, context: Any) -> Any:
        try:
            return behavior(request, context)
        finally:
            context.set_trailing_metadata(_ANSWER)

    return respond


@contextmanager
def calling(port: int, *, antipode: bool) -> Iterator[Callable[[], None]]:
    """A call over a synchronous channel, whose answer is looked at or not."""
    with _grpc.calling(port, antipode=False, beneath=_looking if antipode else None) as call:
        yield call


def _looking(channel: Any) -> None:
    """Have the calls of *channel*, beneath all interceptors, look at what their answers bring."""
    make = channel.unary_unary

    def multi_callable(method: str, *args: Any, **kwargs: Any) -> Any:
        inner = make(method, *args, **kwargs)

        def call(*args: Any, **kwargs: Any) -> Any:
            response, done = inner.with_call(*args, **kwargs)
            if tuple(done.trailing_metadata()) != _ANSWER:
                msg = "answered something else"
                raise ValueError(msg)
            return response

        return call

    channel.unary_unary = multi_callable
