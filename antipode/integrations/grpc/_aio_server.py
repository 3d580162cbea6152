"""Interceptor of ``grpc.aio.server``: each call has a scope, and answers with its lineage."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from antipode._request.context import scope_in
from antipode._runtime import switch

from . import _server
from ._library import grpc
from ._serving import Serving, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from ._server import Behavior


class AioServerInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # no annotations
    """As :class:`ServerInterceptor`, for asyncio; handlers may be synchronous too."""

    def __init__(self) -> None:
        self._wrapped = _server.Wrapped(_behave)

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any
    ) -> Any:
        """Wrap the handler that *continuation* finds."""
        handler = await continuation(handler_call_details)
        if switch.disabled:
            return handler
        return handler and self._wrapped.of(handler, handler_call_details.method)


class _Context:
    """A servicer context whose ``abort`` sends the lineage: it sends the status at once."""

    def __init__(self, context: Any, call: Serving) -> None:
        self._context = context
        self._call = call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def invocation_metadata(self) -> Any:
        return self._call.metadata

    async def abort(self, code: Any, details: str = "", trailing_metadata: Any = ()) -> None:
        own = tuple(trailing_metadata) or self._context.trailing_metadata()
        trailing = self._call.trailing(own, lambda: details or self._context.details())
        await self._context.abort(code, details, trailing)

    async def abort_with_status(self, status: Any) -> None:
        await self.abort(status.code, status.details, status.trailing_metadata)


class _ThreadContext:
    """The same for a synchronous handler, whose context does not show what was set."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._metadata = context.invocation_metadata()
        self._call: Serving | None = None
        self._trailing: Any = ()
        self._details = ""

    def serves(self, call: Serving) -> None:
        """Know the call whose answer an abort sends."""
        self._call = call

    def invocation_metadata(self) -> Any:
        return self._metadata

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:
        self._trailing = trailing_metadata
        self._context.set_trailing_metadata(trailing_metadata)

    def trailing_metadata(self) -> Any:
        return self._trailing

    def set_details(self, details: str) -> None:
        self._details = details
        self._context.set_details(details)

    def details(self) -> str:
        return self._details

    def abort(self, code: Any, details: str = "", trailing_metadata: Any = ()) -> None:
        own = tuple(trailing_metadata) or self._trailing
        if self._call is not None:  # Else one around this one answers.
            own = self._call.trailing(own, lambda: details or self._details)
        self._context.abort(code, details, own)

    def abort_with_status(self, status: Any) -> None:
        self.abort(status.code, status.details, status.trailing_metadata)


def _behave(behavior: Behavior, service: str, streams: bool) -> Behavior:  # noqa: FBT001 - of a table
    """*behavior* of a handler in a scope of its own, a function of the same kind: gRPC asks."""
    if inspect.isasyncgenfunction(behavior):
        return _async_generator(behavior, service)
    if inspect.iscoroutinefunction(behavior):
        return _coroutine(behavior, service)
    if not streams:
        return _in_thread(behavior, service)
    inner = _server.behave(behavior, service, streams)
    return lambda request, context: inner(request, _ThreadContext(context))


def _in_thread(behavior: Behavior, service: str) -> Behavior:
    def respond(request: Any, context: Any) -> Any:
        known = _ThreadContext(context)
        call = serving(known.invocation_metadata(), scope_in(), service)
        if call is None:
            return behavior(request, known)
        known.serves(call)
        try:
            return behavior(request, known)
        except BaseException as error:
            call.error = error
            raise
        finally:
            call.finish(known)

    return respond


def _coroutine(behavior: Behavior, service: str) -> Behavior:
    async def respond(request: Any, context: Any) -> Any:
        call = serving(context.invocation_metadata(), scope_in(), service)
        if call is None:
            return await behavior(request, context)
        try:
            return await behavior(request, _Context(context, call))
        except BaseException as error:
            call.error = error
            raise
        finally:
            call.finish(context)

    return respond


def _async_generator(behavior: Behavior, service: str) -> Behavior:
    async def respond(request: Any, context: Any) -> AsyncIterator[Any]:
        call = serving(context.invocation_metadata(), scope_in(), service)
        if call is None:
            async for response in behavior(request, context):
                yield response
            return
        here = True
        try:
            async for response in behavior(request, _Context(context, call)):
                yield response
        except GeneratorExit:
            here = False  # Closed by the event loop after the client has gone, in another task.
            raise
        except BaseException as error:
            call.error = error
            raise
        finally:
            call.finish(context, here=here)

    return respond
