"""Django's own kind of middleware, where the application cannot be wrapped.

    MIDDLEWARE = ["antipode.integrations.django.AntipodeMiddleware", ...]

The middleware of `antipode.integrations.wsgi` or `asgi` around the application does more: it has
all of Django's middleware inside, and what is done when a response is closed.

:class:`AntipodeSessionMiddleware`, in the same place, is for users whose requests shall see what
their earlier ones wrote. It works inside of a middleware around the application, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode._request.context import scope_in
from antipode._runtime import switch
from antipode._runtime.metrics import logger
from antipode.propagation import RESPONSE_HEADER

from . import asgi, wsgi
from ._incoming import propagating
from ._session import EVENT_SALT, SALT, SessionCookie
from .wsgi import Body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from typing_extensions import Self

    from ._incoming import Incoming
    from ._session import SessionRequest

__all__ = ["AntipodeMiddleware", "AntipodeSessionMiddleware"]


def __dir__() -> list[str]:
    return __all__


class AntipodeMiddleware:
    """Gives each request a scope, and its response the header. To be the first in the list.

    Under WSGI as well as ASGI, for synchronous and asynchronous views.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        """Wrap what comes after it in the list."""
        from asgiref.sync import iscoroutinefunction, markcoroutinefunction

        self.get_response = get_response
        self._asynchronous = iscoroutinefunction(get_response)
        self._began = False
        if self._asynchronous:
            markcoroutinefunction(self)

    def __call__(self, request: Any) -> Any:  # noqa: ANN401 - Django's request and response
        """Serve one request."""
        if self._asynchronous:
            return self._serve(request)
        incoming = self._begin(request)
        session_request = self._session_request(request)
        try:
            response = self.get_response(request)
        except BaseException:
            if incoming is not None:
                incoming.end()
            raise
        return _answered(response, incoming, session_request)

    async def _serve(self, request: Any) -> Any:  # noqa: ANN401 - Django's request and response
        incoming = self._begin(request)
        session_request = self._session_request(request)
        try:
            response = await self.get_response(request)
        except BaseException as error:
            if incoming is not None:
                # Where nobody waits for it any more, it is collected, anywhere.
                incoming.end(leave=not isinstance(error, GeneratorExit))
            raise
        return _answered(response, incoming, session_request)

    def _session_request(self, request: Any) -> SessionRequest | None:  # noqa: ANN401 - Django's request
        """The session request of *request*; None where nobody asks for it."""
        del request
        return None

    def _begin(self, request: Any) -> Incoming | None:  # noqa: ANN401 - Django's request
        """The request; None where a middleware around the application has begun it.

        Or where the library is disabled.
        """
        if switch.disabled:
            return None
        if not self._began:
            propagating()
            self._began = True
        scope = getattr(request, "scope", None)
        if scope is not None:
            return None if asgi.MARKER in scope else asgi.begin(scope)
        return None if wsgi.MARKER in request.META else wsgi.begin(request.META)


class AntipodeSessionMiddleware(AntipodeMiddleware):
    """What :class:`AntipodeMiddleware` does, and a cookie from one request of a user to the next.

    Signed with ``SECRET_KEY``, and read with ``SECRET_KEY_FALLBACKS``, too. Browsers send it where
    they send the cookie of Django's sessions: ``SESSION_COOKIE_PATH``, ``SESSION_COOKIE_DOMAIN``,
    ``SESSION_COOKIE_SECURE``.
    """

    #: The name of the cookie. Sites that share a domain, and no secret, need a name each: override.
    cookie = "antipode"

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        """Wrap what comes after it in the list."""
        super().__init__(get_response)
        self._session = self._of_the_site()

    @classmethod
    def _of_the_site(cls) -> SessionCookie:
        from django.conf import settings

        return SessionCookie(
            _DjangoSigner(SALT),
            _DjangoSigner(EVENT_SALT),
            name=cls.cookie,
            path=settings.SESSION_COOKIE_PATH,
            domain=settings.SESSION_COOKIE_DOMAIN,
            secure=settings.SESSION_COOKIE_SECURE or None,
        )

    @classmethod
    def token(cls) -> str:
        """What the current request depends on, for an event to whoever's browser.

        As ``antipode.integrations.session.Session.token`` gives it, signed as the cookie is.
        """
        return cls._of_the_site().token()

    def _session_request(self, request: Any) -> SessionRequest | None:  # noqa: ANN401 - Django's request
        scope = None if switch.disabled else scope_in()
        if scope is None:
            return None
        cookies, tokens = (
            [request.META.get(name, "")] for name in ("HTTP_COOKIE", "HTTP_ANTIPODE_SESSION")
        )
        return self._session.begin(scope, cookies, tokens=tokens, secure=request.is_secure())


class _DjangoSigner:
    """Signs with the site's secret."""

    def __init__(self, salt: str) -> None:
        from django.core.signing import Signer

        self._signer: Any = Signer(salt=salt)

    def sign(self, content: str) -> str:
        return str(self._signer.sign(content))

    def unsign(self, value: str) -> str | None:
        from django.core.signing import BadSignature

        try:
            return str(self._signer.unsign(value))
        except BadSignature:
            return None


def _set_cookie(response: Any, session_request: SessionRequest) -> None:  # noqa: ANN401 - Django's response
    """Do to the session cookie what *response* does."""
    headers = [(name.lower(), value) for name, value in response.items()]
    change = session_request.change(response.status_code, headers)
    if change is None:
        return
    response["Cache-Control"] = change.cache_control
    response.set_cookie(
        session_request.cookie.name,
        change.value,
        max_age=change.max_age_s,
        path=session_request.cookie.path,
        domain=session_request.cookie.domain,
        secure=session_request.secure,
        httponly=True,
        samesite="Lax",
    )


def _answered(
    response: Any,  # noqa: ANN401
    incoming: Incoming | None,
    session_request: SessionRequest | None,
) -> Any:  # noqa: ANN401
    """*response* with the answer of *incoming*, which is over once nothing more is made for it."""
    if session_request is not None:
        _set_cookie(response, session_request)
    if incoming is None:
        return response
    try:
        del response[RESPONSE_HEADER]
        if text := incoming.answer():
            response[RESPONSE_HEADER] = text
    except Exception:  # noqa: BLE001 - the response goes out; without the header its caller knows
        logger.warning("a response goes without its lineage", exc_info=True)
    if not response.streaming or getattr(response, "file_to_stream", None) is not None:
        incoming.end()
        return response
    incoming.suspend()
    made = AsyncBody if response.is_async else Body
    # Django closes what it is given here together with the response.
    response.streaming_content = made(response.streaming_content, incoming)
    return response


class AsyncBody:
    """The body of a response, each part of which is made in the scope of its request."""

    def __init__(self, body: AsyncIterator[bytes], request: Incoming) -> None:
        self._body = body
        self._request = request

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        self._request.resume()
        try:
            return await self._body.__anext__()
        finally:
            self._request.suspend()

    def close(self) -> None:
        """End the request."""
        self._request.end()
