"""One HTTP request that a handler makes: its name, and whether it was answered. No client here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._current import current, has_name
from ._errors import CallError
from ._names import digest_of

if TYPE_CHECKING:
    from ._current import Nested

#: Methods that change nothing: a repetition of them needs no name.
SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
#: Errors of a client by which its request may still be executed later.
_NO_REPLIES = frozenset({408, 409, 425, 429})
_FIRST_REPLY = 200
_FIRST_ERROR_OF_SERVERS = 500
_PORTS = {"http": 80, "https": 443}


def is_reply(status: int) -> bool:
    """Whether a response of *status* is the reply: a repetition is another call afterwards."""
    return _FIRST_REPLY <= status < _FIRST_ERROR_OF_SERVERS and status not in _NO_REPLIES


def callee_of(scheme: str, host: str, port: int | None) -> str:
    """Whom a URL names: its host, and its port where that is not the scheme's."""
    name = host.lower()
    if ":" in name and not name.startswith("["):
        name = f"[{name}]"
    return name if port is None or port == _PORTS.get(scheme) else f"{name}:{port}"


def begin(callee: str, method: str, target: str, body: bytes | None) -> Nested | None:
    """A request is about to be sent; None where it needs no name.

    Args:
        callee: the service.
        method: of HTTP.
        target: path and query, as they are sent.
        body: as it is sent; None where it is not known before, or differs in each repetition.

    Raises:
        CallError: *body* is None, and the caller gave no name.
        EqualCalls: an equal request is under way.
    """
    method = method.upper()
    call = current()
    if call is None or method in SAFE:
        return None
    path = target.partition("?")[0]
    if body is None and not has_name():
        msg = (
            f"the body of {method} {path} to {callee} is a stream or has several parts: its name "
            'cannot be made of it. Name the call: `with calls.named("..."):`'
        )
        raise CallError(msg)
    parts = (method, target) if body is None else (method, target, body)
    return call.begin(callee, f"{method} {path}", digest_of(*parts))
