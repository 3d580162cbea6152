"""Lineages through the HTTP client of aiohttp: with every request, and back with its response.

Needs aiohttp 3.12 or later (``pip install "antipode-xcy[aiohttp]"``). See
docs/guides/integrations.md.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from antipode._runtime.switch import switchable
from antipode.propagation import BAGGAGE, RESPONSE_HEADER

from ._http_call import HttpCall, began

try:
    import aiohttp
except ImportError as error:
    raise ImportError('aiohttp is missing: pip install "antipode-xcy[aiohttp]"') from error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp import ClientHandlerType, ClientRequest, ClientResponse

__all__ = ["instrument", "instrument_client", "uninstrument", "uninstrument_client"]


def __dir__() -> list[str]:
    return __all__


SessionT = TypeVar("SessionT", bound="aiohttp.ClientSession")


class _Choice(NamedTuple):
    """What was said of one session."""

    on: bool
    service: str | None = None


_lock = threading.Lock()
_everywhere = False
#: Sessions of which something was said separately.
_choices: WeakKeyDictionary[aiohttp.ClientSession, _Choice] = WeakKeyDictionary()
#: What is patched, as it was; None while nothing is.
_original: Callable[..., Awaitable[Any]] | None = None


@switchable
def instrument() -> None:
    """Let all sessions carry lineages, those that exist too. Idempotent."""
    global _everywhere  # noqa: PLW0603 - it is about the whole process
    with _lock:
        _everywhere = True
        _patch()


def uninstrument() -> None:
    """Undo :func:`instrument`. Sessions that were instrumented one by one stay so."""
    global _everywhere  # noqa: PLW0603 - as above
    with _lock:
        _everywhere = False
        _unpatch()


@switchable
def instrument_client(session: SessionT, *, service: str | None = None) -> SessionT:
    """Let *session* carry lineages. Idempotent.

    Args:
        session: tasks may share it.
        service: whom it calls, for the marks of calls whose outcome is not known; default the
            host of each URL.

    Returns:
        The same session.
    """
    with _lock:
        _choices[session] = _Choice(on=True, service=service)
        _patch()
    return session


def uninstrument_client(session: aiohttp.ClientSession) -> None:
    """Let *session* carry no lineages, after :func:`instrument` either. Idempotent."""
    with _lock:
        if _everywhere:
            _choices[session] = _Choice(on=False)
        else:
            _choices.pop(session, None)
        _unpatch()


def _patch() -> None:
    """Add a middleware to each request, after all others: one hop, one attempt at a time."""
    global _original  # noqa: PLW0603 - as above
    if _original is not None:
        return
    session: Any = aiohttp.ClientSession
    request = _original = session._request  # noqa: SLF001 - whom all methods call

    @functools.wraps(request)
    async def carrying(self: Any, *args: Any, **kwargs: Any) -> Any:
        choice = _choices.get(self)
        if not (_everywhere if choice is None else choice.on):
            return await request(self, *args, **kwargs)
        given = kwargs.get("middlewares")
        given = self._middlewares if given is None else given
        service = None if choice is None else choice.service
        kwargs["middlewares"] = (*given, functools.partial(_carry, service))
        return await request(self, *args, **kwargs)

    session._request = carrying  # noqa: SLF001 - as above


def _unpatch() -> None:
    """Leave that place, once nothing is instrumented and nobody stands in front."""
    global _original
    session: Any = aiohttp.ClientSession
    if _original is None or _everywhere or any(choice.on for choice in _choices.values()):
        return
    if getattr(session._request, "__wrapped__", None) is _original:  # noqa: SLF001 - as above
        session._request, _original = _original, None  # noqa: SLF001 - as above


async def _carry(
    service: str | None, request: ClientRequest, handler: ClientHandlerType
) -> ClientResponse:
    """One attempt of one hop."""
    call = _begin(service, request)
    if call is None:
        return await handler(request)
    held: Any = request  # Annotated as having no response for ever.
    before = held.response
    try:
        response = await handler(request)
    except BaseException:
        # It gets one when it begins to be sent, not before, whatever the error is.
        if held.response is not before:
            call.failed()
        raise
    call.response(response.status, _lineage(response))
    return response


def _begin(service: str | None, request: ClientRequest) -> HttpCall | None:
    """The call that *request* is, with its headers set."""
    url = request.url
    call = began(url.scheme, url.raw_host or "", url.explicit_port, url.raw_path, service)
    if call is not None:
        call.outfit(request.headers, request.headers.getall(BAGGAGE, ()))
    return call


def _lineage(response: ClientResponse) -> str | None:
    values = response.headers.getall(RESPONSE_HEADER, ())
    return ",".join(values) if values else None
