"""Lineages through the HTTP client httpx: with every request, and back with its response.

Needs httpx 0.27 or later (``pip install "antipode-xcy[httpx]"``). See docs/guides/integrations.md.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from antipode._runtime.metrics import logger
from antipode._runtime.switch import switchable
from antipode.propagation import BAGGAGE, RESPONSE_HEADER

from ._http_call import HttpCall, began

try:
    import httpx
except ImportError as error:
    raise ImportError('httpx is missing: pip install "antipode-xcy[httpx]"') from error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["instrument", "instrument_client", "uninstrument", "uninstrument_client"]


def __dir__() -> list[str]:
    return __all__


ClientT = TypeVar("ClientT", bound="httpx.Client | httpx.AsyncClient")


#: Raised before anything is sent. Where the transport reports what it does, that decides.
_UNSENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.InvalidURL,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)
#: Transports that report everything that they do.
_TELLING = (httpx.HTTPTransport, httpx.AsyncHTTPTransport)
_SENDING = ".send_request_headers.started"
_ANSWERED = ".receive_response_headers.complete"


class _Choice(NamedTuple):
    """What was said of one client."""

    on: bool
    service: str | None = None


class _Attempts:
    """What httpx's transports report of the attempts of one request, which others may repeat."""

    __slots__ = ("call", "open", "seen", "told")

    def __init__(self, call: HttpCall, request: httpx.Request) -> None:
        self.call = call
        #: Whether the transport reports; another kind of transport does not.
        self.seen = False
        #: Whether an attempt was sent and is not answered.
        self.open = False
        self.told: Callable[[str, dict[str, Any]], Any] | None = request.extensions.get("trace")

    def event(self, name: str, info: dict[str, Any]) -> None:
        """The transport does something."""
        self.seen = True
        try:
            if name.endswith(_SENDING):
                self.lost()
                # To a proxy goes a CONNECT of its own, without the headers of this request.
                self.open = info["request"].method != b"CONNECT"
            elif name.endswith(_ANSWERED) and self.open:
                self.open = False
                value = info["return_value"]  # HTTP/2 has no version and no phrase.
                status = value[0] if len(value) == 2 else value[1]  # noqa: PLR2004 - as said
                self.call.response(status, _lineage(httpx.Headers(value[-1])))
        except Exception:  # noqa: BLE001 - a request of the application never fails by us
            logger.warning("what became of a call is not known", exc_info=True)

    def lost(self) -> None:
        """The attempt before this moment is not answered any more."""
        if self.open:
            self.open = False
            self.call.failed()

    def answered(self, response: httpx.Response) -> None:
        """The call is over with *response*, which the transport may have reported already."""
        if not self.seen:
            self.call.response(response.status_code, _lineage(response.headers))

    def raised(self, error: BaseException, transport: object) -> None:
        """The call is over by *error*, out of *transport*."""
        if self.seen or isinstance(transport, _TELLING):
            self.lost()
        elif not isinstance(error, _UNSENT):
            self.call.failed()

    def trace(self, name: str, info: dict[str, Any]) -> Any:
        """The extension ``trace`` of the request, before the application's own."""
        self.event(name, info)
        return None if self.told is None else self.told(name, info)

    async def trace_async(self, name: str, info: dict[str, Any]) -> None:
        """As :meth:`trace`."""
        self.event(name, info)
        if self.told is not None:
            await self.told(name, info)


_lock = threading.Lock()
_everywhere = False
#: Clients of which something was said separately.
_choices: WeakKeyDictionary[object, _Choice] = WeakKeyDictionary()
#: What is patched, as it was; None while nothing is.
_original: tuple[Callable[..., httpx.Response], Callable[..., Awaitable[httpx.Response]]] | None
_original = None


@switchable
def instrument() -> None:
    """Let all clients, and ``httpx.get()`` and its like, carry lineages. Idempotent."""
    global _everywhere  # noqa: PLW0603 - it is about the whole process
    with _lock:
        _everywhere = True
        _patch()


def uninstrument() -> None:
    """Undo :func:`instrument`. Clients that were instrumented one by one stay so."""
    global _everywhere  # noqa: PLW0603 - as above
    with _lock:
        _everywhere = False
        _unpatch()


@switchable
def instrument_client(client: ClientT, *, service: str | None = None) -> ClientT:
    """Let *client* carry lineages. Idempotent.

    Args:
        client: threads or tasks may share it.
        service: whom it calls, for the marks of calls whose outcome is not known; default the
            host of each URL.

    Returns:
        The same client.
    """
    with _lock:
        _choices[client] = _Choice(on=True, service=service)
        _patch()
    return client


def uninstrument_client(client: httpx.Client | httpx.AsyncClient) -> None:
    """Let *client* carry no lineages, after :func:`instrument` either. Idempotent."""
    with _lock:
        if _everywhere:
            _choices[client] = _Choice(on=False)
        else:
            _choices.pop(client, None)
        _unpatch()


def _patch() -> None:
    """Stand before the transports, where each hop of a redirect passes."""
    global _original  # noqa: PLW0603 - as above
    if _original is not None:
        return
    client: Any = httpx.Client
    async_client: Any = httpx.AsyncClient
    send, send_async = _original = client._send_single_request, async_client._send_single_request  # noqa: SLF001 - the one place

    @functools.wraps(send)
    def carrying(self: Any, request: httpx.Request) -> Any:
        if (attempts := _begin(self, request)) is None:
            return send(self, request)
        given, request.extensions = request.extensions, _traced(request, attempts.trace)
        try:
            with attempts.call.sending():
                response = send(self, request)
        except BaseException as error:
            attempts.raised(error, self._transport_for_url(request.url))
            raise
        finally:
            request.extensions = given
        attempts.answered(response)
        return response

    @functools.wraps(send_async)
    async def carrying_async(self: Any, request: httpx.Request) -> Any:
        if (attempts := _begin(self, request)) is None:
            return await send_async(self, request)
        given, request.extensions = request.extensions, _traced(request, attempts.trace_async)
        try:
            with attempts.call.sending():
                response = await send_async(self, request)
        except BaseException as error:
            attempts.raised(error, self._transport_for_url(request.url))
            raise
        finally:
            request.extensions = given
        attempts.answered(response)
        return response

    client._send_single_request = carrying  # noqa: SLF001 - as above
    async_client._send_single_request = carrying_async  # noqa: SLF001 - as above


def _unpatch() -> None:
    """Leave that place, once nothing is instrumented and nobody stands in front."""
    global _original  # noqa: PLW0603 - as above
    clients: tuple[Any, Any] = (httpx.Client, httpx.AsyncClient)
    if _original is None or _everywhere or any(choice.on for choice in _choices.values()):
        return
    ours = tuple(one._send_single_request for one in clients)  # noqa: SLF001 - as above
    if tuple(getattr(one, "__wrapped__", None) for one in ours) == _original:
        for one, original in zip(clients, _original, strict=True):
            one._send_single_request = original  # noqa: SLF001 - as above
        _original = None


def _begin(client: object, request: httpx.Request) -> _Attempts | None:
    """The call that *request* is, with its headers set; None where it is none of ours."""
    choice = _choices.get(client)
    if not (_everywhere if choice is None else choice.on):
        return None
    url = request.url
    host = url.raw_host.decode("ascii")
    path = url.raw_path.partition(b"?")[0].decode("ascii")
    call = began(url.scheme, host, url.port, path, None if choice is None else choice.service)
    if call is None:
        return None
    call.outfit(request.headers, request.headers.get_list(BAGGAGE))
    return _Attempts(call, request)


def _traced(request: httpx.Request, trace: Callable[..., Any]) -> dict[str, Any]:
    return {**request.extensions, "trace": trace}


def _lineage(headers: httpx.Headers) -> str | None:
    text: str | None = headers.get(RESPONSE_HEADER)
    return text
