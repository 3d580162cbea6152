"""Django's own kind of middleware, where the application cannot be wrapped.

    MIDDLEWARE = ["antipode.integrations.django.AntipodeMiddleware", ...]

The middleware of `antipode.integrations.wsgi` or `asgi` around the application does more: it has
all of Django's middleware inside, and what is done when a response is closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode._runtime import switch
from antipode._runtime.metrics import logger
from antipode.propagation import RESPONSE_HEADER

from . import asgi, wsgi
from ._incoming import propagating
from .wsgi import Body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from typing_extensions import Self

    from ._incoming import Incoming

__all__ = ["AntipodeMiddleware"]


def __dir__() -> list[str]:
    return __all__


class AntipodeMiddleware:
    """Gives each request a scope, and its response the header. To be the first in the list.

    Under WSGI as well as ASGI, for synchronous and asynchronous views.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        """Wrap what comes behind in the list."""
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
        if incoming is None:
            return self.get_response(request)
        try:
            response = self.get_response(request)
        except BaseException:
            incoming.end()
            raise
        return _answered(response, incoming)

    async def _serve(self, request: Any) -> Any:  # noqa: ANN401 - Django's request and response
        incoming = self._begin(request)
        if incoming is None:
            return await self.get_response(request)
        try:
            response = await self.get_response(request)
        except GeneratorExit:  # Nobody waits for it any more: it is collected, anywhere.
            incoming.end(leave=False)
            raise
        except BaseException:
            incoming.end()
            raise
        return _answered(response, incoming)

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


def _answered(response: Any, incoming: Incoming) -> Any:  # noqa: ANN401 - Django's response
    """*response* with the answer of *incoming*, which is over once nothing more is made for it."""
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
