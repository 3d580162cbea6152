"""ASGI applications: FastAPI, Starlette, Django's, and any other.

    app = AntipodeMiddleware(app)       # or, for FastAPI and Starlette:
    instrument_app(app)

Each request gets a scope of its own, from its headers to the end of the application's call, and its
response says in ``antipode-lineage`` what it added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode._headers import BAGGAGE, MEMBER, RESPONSE_HEADER, SENT_HEADER
from antipode._metrics import logger
from antipode._scope import scope_in

from ._apps import around, put_around, take_away
from ._incoming import Incoming, propagating

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Message = MutableMapping[str, Any]
    AsgiScope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    App = Callable[[AsgiScope, Receive, Send], Awaitable[None]]

__all__ = ["AntipodeMiddleware", "instrument_app", "uninstrument_app"]

#: In the scope of a request that has one of ours.
MARKER = "antipode"
_BAGGAGE = BAGGAGE.encode()
_SENT = SENT_HEADER.encode()
_MEMBER = MEMBER.encode()
_ANSWER = RESPONSE_HEADER.encode()
_FIRST_FINAL_STATUS = 200


class AntipodeMiddleware:
    """An ASGI application around *app*, for the outermost place that there is.

    What is inside of it belongs to the request. It needs no instrumentation of OpenTelemetry, and
    works inside as well as outside of one. A WebSocket connection has one scope, and no answer.
    """

    def __init__(self, app: App) -> None:
        """Wrap *app*, an ASGI 3 application."""
        self.app = app
        self._began = False

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        kind = scope["type"]
        if (kind != "http" and kind != "websocket") or MARKER in scope:  # noqa: PLR1714 - each request asks
            await self.app(scope, receive, send)
            return
        if not self._began:
            propagating()
            self._began = True
        request = begin(scope)
        scope[MARKER] = True
        leave = True
        try:
            await self.app(scope, receive, _answering(send, request) if kind == "http" else send)
        except GeneratorExit:  # Nobody waits for it any more: it is collected, anywhere.
            leave = False
            raise
        finally:
            # Whoever called may pass the same scope to another application afterwards.
            scope.pop(MARKER, None)
            request.end(leave=leave)


def begin(scope: AsgiScope) -> Incoming:
    """The request of *scope*, whose names of headers are in lower case."""
    baggage: list[str] = []
    sent = False
    for name, value in scope["headers"]:
        if name == _BAGGAGE:
            if _MEMBER in value:
                baggage.append(value.decode("latin-1"))
        elif name == _SENT:
            sent = True
    return Incoming(scope_in(), baggage, sent=sent, carrier=scope)


def _answering(send: Send, request: Incoming) -> Send:
    """The ``send`` of one request, which adds the header to the start of the response."""

    # Not asynchronous itself: it would be one more coroutine for each part of a body.
    def answer(message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.start" and message["status"] >= _FIRST_FINAL_STATUS:
            message = _with_answer(message, request)
        return send(message)

    return answer


def _with_answer(message: Message, request: Incoming) -> Message:
    """*message*, which may be used for other responses as well, with the answer of *request*."""
    size = len(_ANSWER)
    headers = [
        each
        for each in message.get("headers", ())
        if len(each[0]) != size or each[0].lower() != _ANSWER
    ]
    try:
        headers.append((_ANSWER, request.scope.answer().encode()))
    except Exception:  # noqa: BLE001 - the response goes out; without the header its caller knows
        logger.warning("a response goes without its lineage", exc_info=True)
    return {**message, "headers": headers}


def instrument_app(app: Any) -> Any:  # noqa: ANN401 - the caller's own type, unchanged
    """Put the middleware around a FastAPI or Starlette application, and return it. Idempotent.

    It is then around everything that the application does, its answers to errors and
    instrumentations of OpenTelemetry included, whichever of them is installed first.

    Raises:
        ConfigurationError: *app* is a function: use :class:`AntipodeMiddleware`.
    """
    put_around(app, AntipodeMiddleware, _method)
    return app


def uninstrument_app(app: Any) -> None:  # noqa: ANN401 - an application of any framework
    """Undo :func:`instrument_app`. Idempotent."""
    take_away(app)


def _method(owner: type, original: Any) -> Any:  # noqa: ANN401 - methods of any framework
    # A coroutine function: servers tell by that which version of ASGI it is.
    async def __call__(self: object, scope: AsgiScope, receive: Receive, send: Send) -> None:  # noqa: N807 - it stands in for one
        held = around(self, owner)
        if held is None:
            await original(self, scope, receive, send)
        else:
            await held(scope, receive, send)

    return __call__
