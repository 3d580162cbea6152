"""WSGI applications: Flask, Django's, and any other.

    application = AntipodeMiddleware(application)       # or, for Flask:
    instrument_app(app)

Each request gets a scope of its own, from its headers to the end of its body, and its response says
in ``antipode-lineage`` what it added; with ``session=`` a cookie says it to the next request of the
same browser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode._request.context import scope_in
from antipode._runtime import switch
from antipode._runtime.adoption import AROUND
from antipode._runtime.metrics import logger
from antipode._runtime.switch import switchable
from antipode.propagation import MEMBER, RESPONSE_HEADER

from ._apps import Around, put_around, put_around_all, take_away
from ._incoming import Incoming, propagating

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from typing_extensions import Self

    from ._session import SessionCookie, SessionRequest

    Environ = dict[str, Any]
    Headers = list[tuple[str, str]]
    ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]
    StartResponse = Callable[..., Callable[[bytes], object]]
    App = Callable[[Environ, StartResponse], Iterable[bytes]]
    #: The method of an application.
    Serve = Callable[[Any, Environ, StartResponse], Iterable[bytes]]

__all__ = [
    "AntipodeMiddleware",
    "instrument_app",
    "instrument_class",
    "uninstrument_app",
    "uninstrument_class",
]


def __dir__() -> list[str]:
    return __all__


#: In the environment of a request that has a scope of ours.
MARKER = "antipode.request"


def begin(environ: Environ) -> Incoming:
    """The request of *environ*, in which servers have joined headers of one name."""
    header = environ.get("HTTP_BAGGAGE", "")
    baggage = [header] if MEMBER in header else []
    return Incoming(scope_in(), baggage, sent="HTTP_ANTIPODE_SENT" in environ, carrier=environ)


def _session_request(environ: Environ, request: Incoming, session: SessionCookie) -> SessionRequest:
    """The session request of the user whose browser sent the cookies and tokens of *environ*."""
    cookies, tokens = ([environ.get(name, "")] for name in ("HTTP_COOKIE", "HTTP_ANTIPODE_SESSION"))
    secure = environ.get("wsgi.url_scheme") == "https"
    return session.begin(request.scope, cookies, tokens=tokens, secure=secure)


def _with_cookie(status: str, headers: Headers, session_request: SessionRequest) -> Headers:
    """*headers* with what the response does to the session cookie."""
    change = session_request.change(
        int(status[:3]), ((name.lower(), value) for name, value in headers)
    )
    if change is None:
        return headers
    kept = [each for each in headers if each[0].lower() != "cache-control"]
    cookie = session_request.set_cookie(change)
    return [*kept, ("Cache-Control", change.cache_control), ("Set-Cookie", cookie)]


def _runs_no_code(body: Iterable[bytes], environ: Environ) -> bool:
    """Whether the request is over before its *body* is sent.

    Servers treat such bodies better than others, which they would not know in a wrapper: of a list
    they take the length, a file they leave to the system.
    """
    if type(body) is list or type(body) is tuple:
        return True
    files = environ.get("wsgi.file_wrapper")
    return isinstance(files, type) and isinstance(body, files)


class _Answering:
    """The ``start_response`` of one request, which adds the headers."""

    __slots__ = ("_request", "_session_request", "_start_response")

    def __init__(
        self,
        start_response: StartResponse,
        request: Incoming,
        session_request: SessionRequest | None,
    ) -> None:
        self._start_response = start_response
        self._request = request
        self._session_request = session_request

    def __call__(
        self, status: str, headers: Headers, exc_info: ExcInfo | None = None
    ) -> Callable[[bytes], object]:
        headers = [each for each in headers if each[0].lower() != RESPONSE_HEADER]
        if self._session_request is not None:
            headers = _with_cookie(status, headers, self._session_request)
        try:
            if text := self._request.answer():
                headers.append((RESPONSE_HEADER, text))
        except Exception:  # noqa: BLE001 - the response goes out; without the header its caller knows
            logger.warning("a response goes without its lineage", exc_info=True)
        if exc_info is None:  # Some servers take two arguments alone.
            return self._start_response(status, headers)
        try:
            return self._start_response(status, headers, exc_info)
        finally:
            del exc_info  # It refers to this frame.


class Body:
    """The body of a response, each part of which is made in the scope of its request."""

    def __init__(self, body: Iterable[bytes], request: Incoming) -> None:
        self._body = body
        self._request = request
        self._parts: Iterator[bytes] | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        # Between the parts the thread may do something else.
        request = self._request
        request.resume()
        try:
            if self._parts is None:
                self._parts = iter(self._body)
            return next(self._parts)
        finally:
            request.suspend()

    def close(self) -> None:
        """End the request, once the server has sent the body or given it up."""
        self._request.resume()
        try:
            close: Callable[[], object] | None = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            self._request.end()


def _serving(owner: type | None, original: Serve) -> Serve:
    """*original*, the method of *owner*, with a scope for each request that shall have one."""

    def __call__(self: Any, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:  # noqa: N807, ANN401 - in place of any application's
        """Serve one request."""
        ours: Around | None = getattr(self, AROUND, None)
        if ours is None or ours.owner is not owner or MARKER in environ:
            return original(self, environ, start_response)
        if not ours.began:
            propagating()
            ours.began = True
        request = begin(environ)
        environ[MARKER] = True
        try:
            session = ours.session
            session_request = (
                None if session is None else _session_request(environ, request, session)
            )
            body = original(self, environ, _Answering(start_response, request, session_request))
        except BaseException:
            environ.pop(MARKER, None)
            request.end()
            raise
        environ.pop(MARKER, None)
        if _runs_no_code(body, environ):
            request.end()
            return body
        request.suspend()
        return Body(body, request)

    return __call__


class AntipodeMiddleware:
    """A WSGI application around *app*, for the outermost place that there is.

    What is inside of it belongs to the request. It needs no instrumentation of OpenTelemetry, and
    works inside as well as outside of one.
    """

    def __init__(self, app: App, *, session: SessionCookie | None = None) -> None:
        """Wrap *app*.

        Args:
            app: what serves.
            session: the cookie by which a user's requests depend on what earlier ones wrote: an
                `antipode.integrations.session.Session`. None: each request is on its own.
        """
        self.app = app
        if not switch.disabled:
            setattr(self, AROUND, Around(None, session))

    __call__ = _serving(None, lambda self, *request: self.app(*request))


@switchable
def instrument_app(
    app: Any,  # noqa: ANN401 - an application of any framework
    *,
    session: SessionCookie | None = None,
) -> Any:  # noqa: ANN401 - the caller's own type, unchanged
    """Put the middleware around a Flask or Django application, and return it. Idempotent.

    It is then around everything that the application does, its ``wsgi_app`` and instrumentations
    of OpenTelemetry included, whichever of them is installed first.

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
