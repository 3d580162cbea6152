"""Interceptor of ``grpc.server``: each call has a scope, and answers with its lineage."""

from __future__ import annotations

import contextvars
import functools
from typing import TYPE_CHECKING, Any

from antipode._request.context import scope_in
from antipode._runtime import switch
from antipode.integrations._incoming import propagating

from ._library import grpc
from ._serving import service_of, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    Behavior = Callable[[Any, Any], Any]

_END = object()
_KINDS = {
    (False, False): ("unary_unary", grpc.unary_unary_rpc_method_handler),
    (False, True): ("unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, False): ("stream_unary", grpc.stream_unary_rpc_method_handler),
    (True, True): ("stream_stream", grpc.stream_stream_rpc_method_handler),
}


class ServerInterceptor(grpc.ServerInterceptor):  # type: ignore[misc]  # gRPC has no annotations
    """Gives every call a scope that ends with it; its lineage goes into the trailing metadata."""

    def __init__(self) -> None:
        self._wrapped = Wrapped(behave)

    def intercept_service(
        self, continuation: Callable[[Any], Any], handler_call_details: Any
    ) -> Any:
        """Wrap the handler that *continuation* finds."""
        handler = continuation(handler_call_details)
        if switch.disabled:
            return handler
        return handler and self._wrapped.of(handler, handler_call_details.method)


class Wrapped:
    """Handlers as we wrap them, kept while the same ones are found again."""

    _MOST = 1_000

    def __init__(self, behave: Callable[[Behavior, str, bool], Behavior]) -> None:
        self._behave = behave
        self._asked = False
        self._known: dict[str, tuple[Any, Any]] = {}

    def of(self, handler: Any, method: str) -> Any:
        """*handler*, found for *method*, as we wrap it."""
        known = self._known.get(method)
        if known is not None and known[0] is handler:
            return known[1]
        if not self._asked:
            self._asked = True
            propagating()
        made = _wrapped(handler, method, self._behave)
        if len(self._known) >= self._MOST:
            self._known.clear()
        self._known[method] = (handler, made)
        return made


def _wrapped(handler: Any, method: str, behave: Callable[[Behavior, str, bool], Behavior]) -> Any:
    """*handler* with its function replaced by what *behave* makes of it."""
    kind, make = _KINDS[bool(handler.request_streaming), bool(handler.response_streaming)]
    behavior = getattr(handler, kind)
    if getattr(behavior, "experimental_non_blocking", False):
        return handler  # It goes on after it has returned: nothing reports when it is over.
    return make(
        behave(behavior, service_of(method), bool(handler.response_streaming)),
        request_deserializer=handler.request_deserializer,
        response_serializer=handler.response_serializer,
    )


def behave(behavior: Behavior, service: str, streams: bool) -> Behavior:  # noqa: FBT001 - of a table
    """*behavior* of a synchronous handler, in a scope of its own."""
    wrapper = _stream(behavior, service) if streams else _unary(behavior, service)
    if hasattr(behavior, "experimental_thread_pool"):
        wrapper = functools.wraps(behavior)(wrapper)
    return wrapper


def _unary(behavior: Behavior, service: str) -> Behavior:
    def respond(request: Any, context: Any) -> Any:
        call = serving(context.invocation_metadata(), scope_in(), service)
        if call is None:
            return behavior(request, context)
        try:
            return behavior(request, context)
        except BaseException as error:
            call.error = error
            raise
        finally:
            call.finish(context)

    return respond


def _stream(behavior: Behavior, service: str) -> Behavior:
    def respond(request: Any, context: Any) -> Iterator[Any]:
        # Of its own: whoever drops a stream, in whatever thread, leaves nothing attached there.
        own = contextvars.copy_context()
        responses = own.run(_responses, behavior, service, request, context)
        try:
            while (response := own.run(next, responses, _END)) is not _END:
                yield response
        finally:
            own.run(responses.close)

    return respond


def _responses(
    behavior: Behavior, service: str, request: Any, context: Any
) -> Generator[Any, None, None]:
    call = serving(context.invocation_metadata(), scope_in(), service)
    if call is None:
        yield from behavior(request, context)
        return
    if (serves := getattr(type(context), "serves", None)) is not None:
        serves(context, call)
    try:
        yield from behavior(request, context)
    except BaseException as error:
        call.error = error
        raise
    finally:
        call.finish(context)
