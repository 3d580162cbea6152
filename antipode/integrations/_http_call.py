"""One HTTP request on its way out, of whatever client: what it carries, and what its end says."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

from antipode._runtime.metrics import logger
from antipode.propagation import BAGGAGE, SENT_HEADER, has_member

from ._outgoing import Outgoing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, MutableMapping
    from contextlib import AbstractContextManager
    from typing import Concatenate, ParamSpec

    _P = ParamSpec("_P")

_Call = TypeVar("_Call", bound="HttpCall")
#: What says that nothing was executed: the request goes elsewhere, or was refused before any of
#: the service's code ran. Gateways, servers and routers answer so on their own.
_NOT_EXECUTED = frozenset(
    {
        *(300, 301, 304, 305, 307, 308),
        *(400, 401, 403, 404, 405, 406, 407, 410, 411, 413, 414, 415, 416, 417),
        *(421, 425, 426, 428, 429, 431, 451, 501, 505),
    }
)
#: What a server or a proxy answers in place of a service that may have executed the request.
_TIMEOUT = 408
_FIRST_ERROR_OF_SERVERS = 500
_SUCCESS = range(200, 300)
_PORTS = {"http": 80, "https": 443}


def _harmless(
    method: Callable[Concatenate[_Call, _P], None],
) -> Callable[Concatenate[_Call, _P], None]:
    """*method*, whose failures are logged: a request of the application never fails by us."""

    @functools.wraps(method)
    def wrapper(self: _Call, /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception:  # noqa: BLE001 - as said above
            logger.warning("the lineage of a call is lost", exc_info=True)

    return wrapper


class HttpCall:
    """A request of a client, sent once or by several attempts, in the scope that it began in."""

    __slots__ = ("_call",)

    def __init__(
        self, scheme: str, host: str, port: int | None, path: str, service: str | None
    ) -> None:
        """Begin.

        Args:
            scheme: of the URL.
            host: of the URL, without port, as it is looked up.
            port: of the URL; None for the scheme's.
            path: of the URL, as it is sent, without a query.
            service: the name of whom is called; None: the host, and the port where it is stated.
        """
        usual = _PORTS.get(scheme)
        name = host.lower()
        if ":" in name and not name.startswith("["):
            name = f"[{name}]"
        named = name if port is None or port == usual else f"{name}:{port}"
        known = usual if port is None else port
        origin = f"{scheme}://{named}"
        self._call = Outgoing(service or named, host, known, peer=origin, path=path)

    def sending(self) -> AbstractContextManager[None]:
        """See :meth:`Outgoing.sending`."""
        return self._call.sending()

    @_harmless
    def outfit(self, headers: MutableMapping[str, Any], given: Iterable[str | bytes]) -> None:
        """Let *headers* carry the lineage, or nothing of ours where the host may not get it.

        Args:
            headers: of the request, with names in any case.
            given: the values of all baggage headers among them.
        """
        texts = [text.decode("latin-1") if isinstance(text, bytes) else text for text in given]
        header = ",".join(texts)
        changed = self._call.baggage(header or None)
        if changed:
            header = headers[BAGGAGE] = changed
        elif changed is not None:
            del headers[BAGGAGE]
        if not self._call.allowed:
            if SENT_HEADER in headers:
                del headers[SENT_HEADER]
        elif has_member(header):
            headers[SENT_HEADER] = "1"

    @_harmless
    def response(self, status: int, lineage: str | None) -> None:
        """An attempt was answered, by the service or by a proxy before it.

        Args:
            status: of the response.
            lineage: its header ``antipode-lineage``; None without one.
        """
        if lineage is not None:
            for text in lineage.split(","):  # Where somebody repeated the header.
                self._call.answered(text.strip())
        elif status in _SUCCESS:
            self._call.answered(None)
        elif status in _NOT_EXECUTED:
            return
        elif status == _TIMEOUT or status >= _FIRST_ERROR_OF_SERVERS:
            self._call.failed()
        else:
            self._call.answered(None, success=False)

    @_harmless
    def failed(self) -> None:
        """An attempt was sent, or may have been, and its answer was not learned."""
        self._call.failed()


def began(
    scheme: str, host: str, port: int | None, path: str, service: str | None
) -> HttpCall | None:
    """A call; None where it cannot begin, which is logged."""
    try:
        return HttpCall(scheme, host, port, path, service)
    except Exception:  # noqa: BLE001 - a request of the application never fails by us
        logger.warning("a call goes without a lineage", exc_info=True)
        return None
