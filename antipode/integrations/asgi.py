"""ASGI applications: FastAPI, Starlette, Django's, and any other.

    app = AntipodeMiddleware(app)       # or, for FastAPI and Starlette:
    instrument_app(app)

Each request gets a scope of its own, from its headers to the end of the application's call, and its
response says in ``antipode-lineage`` what it added; with ``session=`` a cookie says it to the next
request of the same browser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from antipode._propagation.session import SESSION_HEADER
from antipode._request.context import scope_in
from antipode._runtime import switch
from antipode._runtime.adoption import AROUND
from antipode._runtime.metrics import logger
from antipode._runtime.switch import switchable
from antipode.propagation import BAGGAGE, MEMBER, RESPONSE_HEADER, SENT_HEADER

from ._apps import Around, put_around, put_around_all, take_away
from ._incoming import Incoming, propagating
from .asyncio import follow_running_loop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from ._session import SessionCookie, SessionRequest

    Message = MutableMapping[str, Any]
    AsgiScope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    App = Callable[[AsgiScope, Receive, Send], Awaitable[None]]
    #: The method of an application.
    Serve = Callable[[Any, AsgiScope, Receive, Send], Awaitable[None]]

__all__ = [
    "AntipodeMiddleware",
    "instrument_app",
    "instrument_class",
    "uninstrument_app",
    "uninstrument_class",
]


def __dir__() -> list[str]:
    return __all__


#: In the scope of a request that has one of ours.
MARKER = "antipode"
_BAGGAGE = BAGGAGE.encode()
_SENT = SENT_HEADER.encode()
_MEMBER = MEMBER.encode()
_ANSWER = RESPONSE_HEADER.encode()
_LENGTH = len(_ANSWER)
_TOKEN = SESSION_HEADER.encode("ascii")
_FIRST_FINAL_STATUS = 200


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
    context = otel_context.get_current()
    return Incoming(scope_in(context), baggage, sent=sent, carrier=scope, context=context)


def _session_request(scope: AsgiScope, request: Incoming, session: SessionCookie) -> SessionRequest:
    """The session request of the user whose browser sent the cookies and tokens of *scope*."""
    cookies, tokens = (
        [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]
        for wanted in (b"cookie", _TOKEN)
    )
    secure = scope.get("scheme") in ("https", "wss")
    return session.begin(request.scope, cookies, tokens=tokens, secure=secure)


def _with_cookie(message: Message, session_request: SessionRequest) -> Message:
    """*message*, with which a response starts, with what it does to the session cookie."""
    headers: list[tuple[bytes, bytes]] = [(n, v) for n, v in message.get("headers", ())]
    named = ((name.lower().decode("latin-1"), value.decode("latin-1")) for name, value in headers)
    change = session_request.change(message["status"], named)
    if change is None:
        return message
    kept = [each for each in headers if each[0].lower() != b"cache-control"]
    kept.append((b"cache-control", change.cache_control.encode("latin-1")))
    kept.append((b"set-cookie", session_request.set_cookie(change).encode("ascii")))
    return {**message, "headers": kept}


def _answering(message: Message, request: Incoming) -> Message:
    """*message*, with which the response of *request* starts, with its answer for header."""
    headers = message.get("headers", ())
    for each in headers:  # Most have none: a comprehension would be one more call.
        if len(each[0]) == _LENGTH and each[0].lower() == _ANSWER:
            headers = [each for each in headers if each[0].lower() != _ANSWER]
            message = {**message, "headers": headers}
            break
    try:
        text = request.answer()
    except Exception:  # noqa: BLE001 - it goes out; without the header its caller knows
        logger.warning("a response goes without its lineage", exc_info=True)
        return message
    if not text:
        return message
    # The message may be used for other responses as well.
    return {**message, "headers": [*headers, (_ANSWER, text.encode())]}


def _serving(owner: type | None, original: Serve) -> Serve:
    """*original*, the method of *owner*, with a scope for each request that shall have one.

    It is here once and not a layer of its own: each coroutine within another takes its time.
    """

    # A coroutine function: servers see by that which version of ASGI it is.
    async def __call__(self: Any, scope: AsgiScope, receive: Receive, send: Send) -> None:  # noqa: N807, ANN401 - in place of any application's
        """Serve one connection."""
        kind = scope["type"]
        ours: Around | None = getattr(self, AROUND, None)
        if (
            ours is None
            or ours.owner is not owner
            or (kind != "http" and kind != "websocket")  # noqa: PLR1714 - each request asks
            or MARKER in scope
        ):
            await original(self, scope, receive, send)
            return
        if not ours.began:
            propagating()
            ours.began = True
        follow_running_loop()
        request = begin(scope)
        scope[MARKER] = True
        leave = True
        session = ours.session
        session_request = None if session is None else _session_request(scope, request, session)

        # Not asynchronous itself: it would be one more coroutine for each part of a body.
        def answer(message: Message) -> Awaitable[None]:
            if message["type"] != "http.response.start" or message["status"] < _FIRST_FINAL_STATUS:
                return send(message)
            if session_request is not None:
                message = _with_cookie(message, session_request)
            return send(_answering(message, request))

        try:
            await original(self, scope, receive, answer if kind == "http" else send)
        except GeneratorExit:  # Nobody waits for it any more: it is collected, anywhere.
            leave = False
            raise
        finally:
            # Whoever called may pass the same scope to another application afterwards.
            scope.pop(MARKER, None)
            request.end(leave=leave)

    return __call__


class AntipodeMiddleware:
    """An ASGI application around *app*, for the outermost place that there is.

    What is inside of it belongs to the request. It needs no instrumentation of OpenTelemetry, and
    works inside as well as outside of one. A WebSocket connection has one scope, and no answer.
    """

    def __init__(self, app: App, *, session: SessionCookie | None = None) -> None:
        """Wrap *app*, an ASGI 3 application.

        Args:
            app: what serves.
            session: the cookie by which a user's requests depend on what earlier ones wrote: an
                `antipode.integrations.session.Session`. None: each request is on its own.
        """
        self.app = app
        if not switch.disabled:
            setattr(self, AROUND, Around(None, session))

    __call__ = _serving(None, lambda self, *connection: self.app(*connection))


@switchable
def instrument_app(
    app: Any,  # noqa: ANN401 - an application of any framework
    *,
    session: SessionCookie | None = None,
) -> Any:  # noqa: ANN401 - the caller's own type, unchanged
    """Put the middleware around a FastAPI or Starlette application, and return it. Idempotent.

    It is then around everything that the application does, its answers to errors and
    instrumentations of OpenTelemetry included, whichever of them is installed first.

    Args:
        app: what serves.
        session: as :class:`AntipodeMiddleware` takes it.

    Raises:
        ConfigurationError: *app* is a function: use :class:`AntipodeMiddleware`.
    """
    put_around(app, _serving, session)
    return app


def uninstrument_app(app: Any) -> None:  # noqa: ANN401 - an application of any framework
    """Undo :func:`instrument_app`. Idempotent."""
    take_away(app)


@switchable
def instrument_class(kind: type) -> type:
    """Put the middleware around every application of a class, and return it. Idempotent.

    Applications that were made before have it, too, and one that has a middleware of its own, as
    :func:`instrument_app` gives it, keeps that. :func:`antipode.setup` does it for the frameworks
    that it covers.

    Args:
        kind: a class, written in Python, whose instances are called by a server.
    """
    put_around_all(kind, _serving)
    return kind


def uninstrument_class(kind: type) -> None:
    """Undo :func:`instrument_class`. Idempotent."""
    take_away(kind)
