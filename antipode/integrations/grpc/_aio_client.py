"""Interceptors of ``grpc.aio`` channels, whose calls carry and bring back lineages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._library import grpc
from ._metadata import answers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from antipode.integrations._outgoing import Outgoing

    from ._calling import Channel, Method

    Continuation = Callable[[Any, Any], Awaitable[Any]]


class AioInterceptor:
    """What the four kinds share."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def _call(
        self, continuation: Continuation, details: Any, request: Any, *, streams: bool
    ) -> Any:
        method = self._channel.method(details.method)
        call, sent = method.begin(details.metadata)
        try:
            inner = await continuation(
                grpc.aio.ClientCallDetails(
                    details.method,
                    details.timeout,
                    grpc.aio.Metadata(*sent),
                    details.credentials,
                    details.wait_for_ready,
                ),
                request,
            )
        except BaseException as error:  # Of an interceptor inside of ours, which may have sent it.
            method.raised(call, error)
            raise
        if streams:
            call.began()
        try:
            inner.add_done_callback(_ending(method, call, streams=streams))
        except NotImplementedError:  # An interceptor inside of ours has awaited the call.
            await _ended(method, call, inner, streams=streams)
            return inner
        if not streams:
            await _over(call, inner)
        return inner


async def _over(call: Outgoing, inner: Any) -> None:
    """Wait until *inner* is over, here: gRPC forgets a call whose awaiter is cancelled early on.

    It would go on alone then, unknown to whoever gave it up and reads the lineage.
    """
    try:
        await inner.code()
    except BaseException:
        inner.cancel()
        call.failed()
        raise


def _ending(method: Method, call: Outgoing, *, streams: bool) -> Callable[[Any], None]:
    return lambda inner: _now(_ended(method, call, inner, streams=streams))


async def _ended(method: Method, call: Outgoing, inner: Any, *, streams: bool) -> None:
    """Judge *call* by the status of *inner*, which is there."""
    trailing = await inner.trailing_metadata()
    code = details = None
    if not answers(trailing):
        code, details = await inner.code(), await inner.details()

    def judge() -> None:
        if streams:
            call.finished()
        method.ended(call, code, details, trailing)

    if code is grpc.StatusCode.CANCELLED:
        call.later(judge)  # gRPC cancels a call that nobody holds any more, in its finaliser.
    else:
        judge()


def _now(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run what waits for nothing: the status is there."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()


class _UnaryUnary(AioInterceptor, grpc.aio.UnaryUnaryClientInterceptor):  # type: ignore[misc]
    async def intercept_unary_unary(
        self, continuation: Continuation, client_call_details: Any, request: Any
    ) -> Any:
        return await self._call(continuation, client_call_details, request, streams=False)


class _UnaryStream(AioInterceptor, grpc.aio.UnaryStreamClientInterceptor):  # type: ignore[misc]
    async def intercept_unary_stream(
        self, continuation: Continuation, client_call_details: Any, request: Any
    ) -> Any:
        return await self._call(continuation, client_call_details, request, streams=True)


class _StreamUnary(AioInterceptor, grpc.aio.StreamUnaryClientInterceptor):  # type: ignore[misc]
    async def intercept_stream_unary(
        self, continuation: Continuation, client_call_details: Any, request_iterator: Any
    ) -> Any:
        # Its requests may be written while it runs: it cannot be waited for in here.
        return await self._call(continuation, client_call_details, request_iterator, streams=True)


class _StreamStream(AioInterceptor, grpc.aio.StreamStreamClientInterceptor):  # type: ignore[misc]
    async def intercept_stream_stream(
        self, continuation: Continuation, client_call_details: Any, request_iterator: Any
    ) -> Any:
        return await self._call(continuation, client_call_details, request_iterator, streams=True)


def interceptors(channel: Channel) -> list[Any]:
    """One interceptor of each kind, for *channel*."""
    return [each(channel) for each in (_UnaryUnary, _UnaryStream, _StreamUnary, _StreamStream)]
