"""Lineages through the HTTP client requests: with every request, and back with its response.

Needs requests 2.31 or later (``pip install "antipode-xcy[requests]"``). See
docs/guides/integrations.md.
"""

from __future__ import annotations

import functools
import ssl
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit
from weakref import WeakSet

from antipode._runtime.switch import switchable
from antipode.propagation import BAGGAGE, RESPONSE_HEADER

from ._http_call import HttpCall, began

try:
    import requests
    import requests.adapters
    import urllib3
    from requests import exceptions as errors
    from urllib3 import exceptions as pool_errors
except ImportError as error:
    raise ImportError('requests is missing: pip install "antipode-xcy[requests]"') from error

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["instrument", "instrument_client", "uninstrument", "uninstrument_client"]


def __dir__() -> list[str]:
    return __all__


SessionT = TypeVar("SessionT", bound="requests.Session")


#: Raised before anything is sent, by requests and by its pool.
_UNSENT = (
    errors.InvalidURL,
    errors.InvalidSchema,
    errors.InvalidHeader,
    pool_errors.InvalidHeader,
    pool_errors.LocationValueError,
    pool_errors.EmptyPoolError,
    pool_errors.ClosedPoolError,
    pool_errors.NewConnectionError,
    pool_errors.ConnectTimeoutError,
    pool_errors.ProxyError,
)
_UNVERIFIED = (ssl.SSLCertVerificationError, ssl.CertificateError)


class _Choice(NamedTuple):
    """What was said of one session."""

    on: bool
    service: str | None = None


class _Attempts:
    """The attempts of one call: its adapter's pool may repeat it, and shows the last one alone."""

    __slots__ = ("call", "judged")

    def __init__(self, call: HttpCall) -> None:
        self.call = call
        #: The responses and errors of attempts that were reported.
        self.judged: list[object] = []

    def ended(self, response: Any, error: BaseException | None) -> None:
        """An attempt is over: with *response*, or by *error*."""
        what = response if error is None else error
        if any(what is known for known in self.judged):
            return
        self.judged.append(what)
        if error is not None:
            if not _unsent(error):
                self.call.failed()
        elif response is not None:
            self.call.response(response.status, response.headers.get(RESPONSE_HEADER))

    def raised(self, error: BaseException) -> None:
        """The call is over by *error*, of which the attempt before may have reported already."""
        found: object = error
        if isinstance(error, errors.RequestException) and error.args:
            found = error.args[0]
        if isinstance(found, pool_errors.MaxRetryError):
            found = found.reason
        if not isinstance(found, pool_errors.ResponseError):
            self.ended(None, found if isinstance(found, BaseException) else error)


_lock = threading.Lock()
_everywhere = False
#: Sessions that are instrumented one by one.
_chosen: WeakSet[requests.Session] = WeakSet()
_choice: ContextVar[_Choice | None] = ContextVar("antipode-requests-choice", default=None)
_attempts: ContextVar[_Attempts | None] = ContextVar("antipode-requests-attempts", default=None)
#: What is patched, as it was; None while nothing is.
_original: tuple[Callable[..., Any], Callable[..., Any]] | None = None


@switchable
def instrument() -> None:
    """Let all sessions, and ``requests.get()`` and its like, carry lineages. Idempotent."""
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
        session: threads may share it.
        service: whom it calls, for the marks of calls whose outcome is not known; default the
            host of each URL.

    Returns:
        The same session.
    """
    with _lock:
        _choose(session, _Choice(on=True, service=service))
        _chosen.add(session)
        _patch()
    return session


def uninstrument_client(session: requests.Session) -> None:
    """Let *session* carry no lineages, after :func:`instrument` either. Idempotent."""
    with _lock:
        if _everywhere:
            _choose(session, _Choice(on=False))
        else:
            session.__dict__.pop("send", None)
        _chosen.discard(session)
        _unpatch()


def _choose(session: requests.Session, choice: _Choice) -> None:
    """Let the calls of *session*, each hop of a redirect too, go by *choice*."""

    def send(*args: Any, **kwargs: Any) -> requests.Response:
        token = _choice.set(choice)
        try:
            return type(session).send(session, *args, **kwargs)
        finally:
            _choice.reset(token)

    session.__dict__["send"] = send


def _patch() -> None:
    """Stand in the two places that every attempt passes, inside of other instrumentations."""
    global _original  # noqa: PLW0603 - as above
    if _original is not None:
        return
    adapter: Any = requests.adapters.HTTPAdapter
    retry: Any = urllib3.Retry
    send, increment = _original = adapter.send, retry.increment

    @functools.wraps(send)
    def carrying(*args: Any, **kwargs: Any) -> requests.Response:
        return _send(send, args, kwargs)

    @functools.wraps(increment)
    def telling(*args: Any, **kwargs: Any) -> Any:
        if (attempts := _attempts.get()) is not None:
            attempts.ended(kwargs.get("response"), kwargs.get("error"))
        return increment(*args, **kwargs)

    adapter.send, retry.increment = carrying, telling


def _unpatch() -> None:
    """Leave both places, once nothing is instrumented and nobody stands in front."""
    global _original
    adapter: Any = requests.adapters.HTTPAdapter
    retry: Any = urllib3.Retry
    ours = (adapter.send, retry.increment)
    if _everywhere or _chosen or _original is None:
        return
    if tuple(getattr(one, "__wrapped__", None) for one in ours) == _original:
        (adapter.send, retry.increment), _original = _original, None


def _send(
    send: Callable[..., requests.Response], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> requests.Response:
    """One hop of a request, by one adapter."""
    choice = _choice.get()
    request = kwargs["request"] if "request" in kwargs else args[1]
    if not (_everywhere if choice is None else choice.on):
        return send(*args, **kwargs)
    if (call := _begin(request, choice)) is None:
        return send(*args, **kwargs)
    attempts = _Attempts(call)
    token = _attempts.set(attempts)
    try:
        response = send(*args, **kwargs)
    except BaseException as error:
        attempts.raised(error)
        raise
    finally:
        _attempts.reset(token)
    attempts.ended(response.raw, None)
    return response


def _begin(request: requests.PreparedRequest, choice: _Choice | None) -> HttpCall | None:
    """The call that *request* is, with its headers set; None where its URL names no host."""
    try:
        url = urlsplit(request.url or "")
        host, port = url.hostname or "", url.port
    except ValueError:  # Which requests will report to the caller.
        return None
    call = began(url.scheme, host, port, url.path, None if choice is None else choice.service)
    if call is not None:
        headers = request.headers
        call.outfit(headers, [headers[BAGGAGE]] if BAGGAGE in headers else ())
    return call


def _unsent(error: BaseException) -> bool:
    """Whether *error* proves that the service got no request."""
    if isinstance(error, pool_errors.SSLError) and error.args:
        return isinstance(error.args[0], _UNVERIFIED)
    return isinstance(error, _UNSENT)
