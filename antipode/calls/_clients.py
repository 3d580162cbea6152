"""HTTP clients that send the names of their calls: httpx, requests, aiohttp; each as one object."""

from __future__ import annotations

import functools
import sys
import weakref
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from antipode import ConfigurationError
from antipode.shim import adopt, disown, switchable

from . import _http
from ._names import HEADER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, MutableMapping

    from typing_extensions import Self

    from ._current import Nested

ClientT = TypeVar("ClientT")

#: The method of an aiohttp session that all others call.
_REQUEST = "_request"


@switchable
def instrument_client(client: ClientT, *, callee: str | None = None) -> ClientT:
    """Let *client* name the calls that a handler makes by it, in the header ``antipode-call``.

    A request that is not GET, HEAD, OPTIONS or TRACE gets a name that follows from the call that is
    handled (:func:`current`), the service, the method, the path and the body. An equal request
    after an error has the same name; after a reply it is another call. Outside of a call nothing is
    added. A request that has the header already keeps it.

    Idempotent. It works with the instrumentations of ``antipode.integrations`` and OpenTelemetry,
    in any order.

    Args:
        client: an ``httpx.Client`` or ``AsyncClient``, a ``requests.Session``, an
            ``aiohttp.ClientSession``, or an application of Celery (see :func:`instrument_celery`).
        callee: the service that it calls, default the host and port of each URL. Name it where
            these differ from one attempt to the next.

    Returns:
        The same client.

    Raises:
        ConfigurationError: it is none of these.

    Its requests raise:
        EqualCalls: an equal one is under way.
        CallError: the body is a stream or has several parts, and the caller gave no name
            (:class:`named`).
    """
    if _is(client, "celery", "Celery"):
        from ._celery import instrument_celery

        return instrument_celery(client)
    if _is(client, "aiohttp", "ClientSession"):
        named = functools.partial(_request, weakref.ref(client), callee)
        vars(client)[_REQUEST] = named
        return client
    return adopt(client, _mixin_for(client), callee)


def uninstrument_client(client: object) -> None:
    """Undo :func:`instrument_client`. Idempotent.

    Raises:
        ConfigurationError: it is no client that can be instrumented.
    """
    if _is(client, "celery", "Celery"):
        from ._celery import uninstrument_celery

        uninstrument_celery(client)
    elif _is(client, "aiohttp", "ClientSession"):
        vars(client).pop(_REQUEST, None)
    elif isinstance(client, mixin := _mixin_for(client)):
        disown(client, mixin)


def _is(client: object, module: str, name: str) -> bool:
    """Whether *client* is of a class of *module*, which nobody has to install or import for us."""
    found = sys.modules.get(module)
    return found is not None and isinstance(client, getattr(found, name))


def _mixin_for(client: object) -> type:
    for mixin, module, name in (
        (_HttpxClient, "httpx", "Client"),
        (_HttpxAsyncClient, "httpx", "AsyncClient"),
        (_RequestsSession, "requests", "Session"),
    ):
        if _is(client, module, name):
            return mixin
    msg = (
        f"{client!r} names no calls: pass an httpx.Client or AsyncClient, a requests.Session, an "
        "aiohttp.ClientSession or a Celery application"
    )
    raise ConfigurationError(msg)


class _Sending:
    """One request with a name while it is sent, on whatever hops and by whatever attempts."""

    __slots__ = ("_nested", "status")

    def __init__(self, nested: Nested) -> None:
        self._nested = nested
        #: Of the response that is there; None where there is none.
        self.status: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._nested.ended(answered=self.status is not None and _http.is_reply(self.status))


class _HttpxClient:
    """The methods of an ``httpx.Client`` that names its calls."""

    _antipode: str | None

    def send(self, request: Any, **options: Any) -> Any:
        """Send *request* with a name."""
        original: Any = super()
        if (nested := _httpx_name(self._antipode, request)) is None:
            return original.send(request, **options)
        with _Sending(nested) as sending:
            response = original.send(request, **options)
            sending.status = response.status_code
        return adopt(response, _HttpxResponse, nested) if options.get("stream") else response


class _HttpxAsyncClient:
    """The methods of an ``httpx.AsyncClient`` that names its calls."""

    _antipode: str | None

    async def send(self, request: Any, **options: Any) -> Any:
        """Send *request* with a name."""
        original: Any = super()
        if (nested := _httpx_name(self._antipode, request)) is None:
            return await original.send(request, **options)
        with _Sending(nested) as sending:
            response = await original.send(request, **options)
            sending.status = response.status_code
        return adopt(response, _HttpxResponse, nested) if options.get("stream") else response


class _HttpxResponse:
    """The methods of a response whose body is read after its call is over."""

    _antipode: Nested

    def iter_raw(self, *args: Any, **options: Any) -> Iterator[bytes]:
        """The parts of the body."""
        original: Any = super()
        with _losing(self._antipode):
            yield from original.iter_raw(*args, **options)

    async def aiter_raw(self, *args: Any, **options: Any) -> AsyncIterator[bytes]:
        """The parts of the body."""
        original: Any = super()
        with _losing(self._antipode):
            async for part in original.aiter_raw(*args, **options):
                yield part


def _httpx_name(callee: str | None, request: Any) -> Nested | None:
    """The call that *request* is, with the header set; None where that is not asked for."""
    if HEADER in request.headers:
        return None
    url = request.url
    body: bytes | None = vars(request).get("_content")  # None of a stream.
    return _outfitted(
        request.headers,
        callee or _http.callee_of(url.scheme, url.raw_host.decode("ascii"), url.port),
        request.method,
        url.raw_path.decode("ascii"),
        None if _in_parts(request.headers) else body,
    )


class _RequestsSession:
    """The methods of a ``requests.Session`` that names its calls."""

    _antipode: str | None

    def send(self, request: Any, **options: Any) -> Any:
        """Send *request* with a name. A redirect, which comes here too, has one already."""
        original: Any = super()
        if (nested := _requests_name(self._antipode, request)) is None:
            return original.send(request, **options)
        with _Sending(nested) as sending:
            response = original.send(request, **options)
            sending.status = response.status_code
        return adopt(response, _RequestsResponse, nested) if options.get("stream") else response


class _RequestsResponse:
    """The methods of a response whose body is read after its call is over."""

    _antipode: Nested

    def iter_content(self, *args: Any, **options: Any) -> Iterator[Any]:
        """The parts of the body."""
        original: Any = super()
        return self._antipode_parts(original.iter_content(*args, **options))

    def _antipode_parts(self, parts: Iterator[Any]) -> Iterator[Any]:
        with _losing(self._antipode):
            yield from parts


def _requests_name(callee: str | None, request: Any) -> Nested | None:
    """The call that *request* is, with the header set; None where that is not asked for."""
    if HEADER in request.headers:
        return None
    try:
        url = urlsplit(request.url or "")
        host, port = url.hostname or "", url.port
    except ValueError:  # Which requests will report to the caller.
        return None
    given = request.body or b""
    body: bytes | None = None
    if isinstance(given, str | bytes | bytearray):
        body = given.encode() if isinstance(given, str) else bytes(given)
    return _outfitted(
        request.headers,
        callee or _http.callee_of(url.scheme, host, port),
        request.method,
        request.path_url,
        None if _in_parts(request.headers) else body,
    )


def _outfitted(
    headers: MutableMapping[str, Any], callee: str, method: str, target: str, body: bytes | None
) -> Nested | None:
    """The call, whose name *headers* have now."""
    nested = _http.begin(callee, method, target, body)
    if nested is not None:
        headers[HEADER] = nested.name
    return nested


def _in_parts(headers: MutableMapping[str, Any]) -> bool:
    """Whether the body has several parts, with another boundary between them each time."""
    kind = headers.get("content-type", "")
    text = kind.decode("latin-1") if isinstance(kind, bytes) else kind
    return text.lower().startswith("multipart/")


class _losing:  # noqa: N801 - a block
    """Whoever reads a reply in this block and fails has none. Who stops reading has enough."""

    __slots__ = ("_nested",)

    def __init__(self, nested: Nested) -> None:
        self._nested = nested

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, GeneratorExit):
            self._nested.lost()


class _AiohttpCall:
    """One call of an aiohttp session, whose redirects are requests of their own."""

    def __init__(self, callee: str | None) -> None:
        self._callee = callee
        self._sending: _Sending | None = None
        #: The call; None until it has a name.
        self.nested: Nested | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._sending is not None:
            self._sending.__exit__()

    async def carry(self, request: Any, handler: Any) -> Any:
        """One attempt of one hop, after all other middlewares."""
        if self.nested is None:
            self.nested = self._name(request)
            if self.nested is not None:
                self._sending = _Sending(self.nested)
        elif request.method.upper() not in _http.SAFE:
            request.headers.setdefault(HEADER, self.nested.name)
        if self._sending is None:
            return await handler(request)
        self._sending.status = None
        response = await handler(request)
        self._sending.status = response.status
        return response

    def _name(self, request: Any) -> Nested | None:
        from aiohttp.payload import BytesPayload

        if HEADER in request.headers:
            return None
        url, body = request.url, request.body
        if isinstance(body, BytesPayload):
            body = bytes(body._value)  # noqa: SLF001 - the oldest that we support has no as_bytes()
        elif not isinstance(body, bytes):
            body = None
        return _outfitted(
            request.headers,
            self._callee or _http.callee_of(url.scheme, url.raw_host or "", url.explicit_port),
            request.method,
            url.raw_path_qs,
            None if _in_parts(request.headers) else body,
        )


async def _request(
    session: weakref.ref[Any], callee: str | None, *args: Any, **options: Any
) -> Any:
    """A request of *session*: what its class does, with one middleware more."""
    held: Any = session()
    given = options.get("middlewares")
    given = held._middlewares if given is None else given  # noqa: SLF001 - as it does itself
    with _AiohttpCall(callee) as call:
        options["middlewares"] = (*given, call.carry)
        response = await type(held)._request(held, *args, **options)  # noqa: SLF001 - the one place
    return response if call.nested is None else adopt(response, _AiohttpResponse, call.nested)


class _AiohttpResponse:
    """The methods of a response whose body is read after its call is over."""

    _antipode: Nested

    async def read(self) -> bytes:
        """The body."""
        original: Any = super()
        with _losing(self._antipode):
            body: bytes = await original.read()
        return body
