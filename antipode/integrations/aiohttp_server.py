"""Applications of aiohttp's server.

    instrument_app(app)

Each request gets a scope of its own, from its headers to the end of its handler, and its response
says in ``antipode-lineage`` what it added; with ``session=`` a cookie says it to the next request
of the same browser.

Needs aiohttp 3.12 or later (``pip install "antipode-xcy[aiohttp]"``). See
docs/guides/integrations.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode._propagation.session import SESSION_HEADER
from antipode._request.context import scope_in
from antipode._runtime.adoption import AROUND
from antipode._runtime.metrics import logger
from antipode._runtime.switch import switchable
from antipode.propagation import BAGGAGE, MEMBER, RESPONSE_HEADER, SENT_HEADER

from ._incoming import Incoming, propagating
from ._method import Method
from .asyncio import follow_running_loop

try:
    from aiohttp import web
except ImportError as error:
    raise ImportError('aiohttp is missing: pip install "antipode-xcy[aiohttp]"') from error

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp.typedefs import Handler

    from ._session import SessionCookie, SessionRequest

__all__ = ["instrument", "instrument_app", "uninstrument", "uninstrument_app"]


def __dir__() -> list[str]:
    return __all__


#: In a request that has a scope of ours; None once its response has begun. Since aiohttp 3.14 texts
#: are not welcome as keys.
_ANSWER: Any = getattr(web, "RequestKey", lambda name, _: name)("antipode", object)
_FIRST_FINAL_STATUS = 200


class _Answer:
    """What the response of one request says of it."""

    __slots__ = ("_request", "_session_request")

    def __init__(self, request: Incoming, session_request: SessionRequest | None) -> None:
        self._request = request
        self._session_request = session_request

    def put_on(self, response: web.StreamResponse) -> None:
        """Add it to the headers of *response*, which are complete and not sent yet."""
        headers = response.headers
        if self._session_request is not None:
            named = ((name.lower(), value) for name, value in headers.items())
            change = self._session_request.change(response.status, named)
            if change is not None:
                headers["Cache-Control"] = change.cache_control
                headers.add("Set-Cookie", self._session_request.set_cookie(change))
        headers.popall(RESPONSE_HEADER, None)
        try:
            if text := self._request.answer():
                headers[RESPONSE_HEADER] = text
        except Exception:  # noqa: BLE001 - it goes out; without the header its caller knows
            logger.warning("a response goes without its lineage", exc_info=True)


async def _answering(request: web.Request, response: web.StreamResponse) -> None:
    """A response begins, whether a handler or an error made it."""
    if response.status < _FIRST_FINAL_STATUS:  # A WebSocket connection has no answer.
        return
    answer: _Answer | None = request.get(_ANSWER)
    if answer is not None:
        request[_ANSWER] = None
        answer.put_on(response)


def _begin(request: web.Request) -> Incoming:
    headers = request.headers
    baggage = [value for value in headers.getall(BAGGAGE, ()) if MEMBER in value]
    return Incoming(scope_in(), baggage, sent=SENT_HEADER in headers, carrier=request)


class _Middleware:
    """Opens a scope for each request of one application; it goes before all other middleware."""

    __middleware_version__ = 1

    def __init__(self, session: SessionCookie | None) -> None:
        self.on = True
        self.session = session
        self._began = False

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Serve one request; of an application within another the outer one has done so."""
        if not self.on or _ANSWER in request:
            return await handler(request)
        if not self._began:
            propagating()
            self._began = True
        follow_running_loop()
        incoming = _begin(request)
        session_request = None
        if self.session is not None:
            cookies, tokens = (
                request.headers.getall(name, ()) for name in ("Cookie", SESSION_HEADER)
            )
            session_request = self.session.begin(
                incoming.scope, cookies, tokens=tokens, secure=request.secure
            )
        request[_ANSWER] = _Answer(incoming, session_request)
        leave = True
        try:
            return await handler(request)
        except GeneratorExit:  # Nobody waits for it any more: it is collected, anywhere.
            leave = False
            raise
        finally:
            incoming.end(leave=leave)


def _middleware_of(app: web.Application) -> _Middleware | None:
    return next((each for each in app.middlewares if isinstance(each, _Middleware)), None)


@switchable
def instrument_app(
    app: web.Application, *, session: SessionCookie | None = None
) -> web.Application:
    """Open a scope for each request of *app*, answer with what it added, and return *app*.

    It needs no instrumentation of OpenTelemetry, and works together with one: that one takes the
    span of a request alone. A WebSocket connection has one scope, and no answer. Idempotent.

    Args:
        app: before it is served. Applications within it are served by it.
        session: the cookie by which a user's requests depend on what earlier ones wrote: an
            `antipode.integrations.session.Session`. None: each request is on its own.

    Raises:
        ConfigurationError: *app* is being served already.
    """
    if (found := _middleware_of(app)) is not None:
        found.on = True
        return app
    if app.frozen:
        msg = "this application is being served: call instrument_app() before it is"
        raise ConfigurationError(msg)
    app.middlewares.insert(0, _Middleware(session))
    app.on_response_prepare.append(_answering)
    return app


def uninstrument_app(app: web.Application) -> None:
    """Undo :func:`instrument_app`, for requests from now on."""
    if (found := _middleware_of(app)) is not None:
        found.on = False


@switchable
def instrument() -> None:
    """Do to every application what :func:`instrument_app` does, before it is served. Idempotent.

    It may have been made already. One that is being served stays as it is.
    """
    _FREEZING.wrap()
    setattr(web.Application, AROUND, True)


def uninstrument() -> None:
    """Undo :func:`instrument`, for applications that are served from now on. Idempotent."""
    _FREEZING.unwrap()
    if AROUND in vars(web.Application):
        delattr(web.Application, AROUND)


def _freeze(
    call: Callable[..., Any],
    app: web.Application,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> object:
    """``Application.pre_freeze``, after which no middleware can be added."""
    if not app.pre_frozen:
        instrument_app(app)
    return call(*args, **kwargs)


_FREEZING = Method(web.Application, "pre_freeze", _freeze)
