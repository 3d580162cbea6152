"""Lineages in the messages of a stream: server-sent events, websockets, what a call streams.

A stream's headers are sent once, before what its messages are about has happened. So each message
takes the lineage along itself.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from opentelemetry import context as otel_context

from antipode._request.context import has_member, scope_in
from antipode._request.recording import record_unlabelled
from antipode._request.scope import Scope
from antipode._request.table2 import begin_scope, end_scope

from .extraction import members
from .headers import BAGGAGE, with_member

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.context import Context


def event_headers() -> dict[str, str]:
    """What one message of a stream takes along: the lineage of the current scope, of now.

    To be put into the message where its format has room: a member of a JSON object, a field of a
    server-sent event, a map of a Protobuf message. Make them for each message, where what it tells
    was done, and once that is committed. Between services: for users' browsers there is
    :meth:`antipode.integrations.session.Session.token`, which is signed.

    Returns:
        ``{"baggage": "antipode=..."}``; empty without a scope.
    """
    held = scope_in()
    if held is None or not has_member(otel_context.get_current()):
        return {}
    return {BAGGAGE: with_member(None, held.text())}


class event_scope(AbstractContextManager[Scope]):  # noqa: N801 - called as a function
    """Handle one message of a stream as a request of its own, with what it depends on.

    It never joins a scope that is open already, and adds nothing to it: what a stream is read in
    may live for days.

    Args:
        headers: what the message has of :func:`event_headers`, its names in any case. None or no
            lineage in it, as of a sender without this library: the scope is empty. What cannot be
            read makes it ``incomplete`` (``baggage``, ``unreadable``).
    """

    __slots__ = ("_headers", "_held", "_token")

    _held: Scope
    _token: Token[Context]

    def __init__(self, headers: Mapping[str, str] | None) -> None:
        """Begin nothing yet."""
        self._headers: object = headers

    def __enter__(self) -> Scope:
        """The block begins."""
        texts = _texts_in(self._headers)
        held = self._held = Scope(incoming=texts, answers=False)
        self._token = begin_scope(held, sys._getframe(1))  # noqa: SLF001 - who enters the block
        if not texts:
            record_unlabelled("")
        return held

    def __exit__(self, *_: object) -> None:
        """The block ends, and with it the request."""
        end_scope(self._held, self._token)


def _texts_in(headers: object) -> tuple[str, ...]:
    """The lineages in *headers*, which somebody else made: they may be anything."""
    if headers is None:
        return ()
    if not isinstance(headers, Mapping):
        return ("",)
    values = [value for name, value in headers.items() if str(name).lower() == BAGGAGE]
    if not all(isinstance(value, str) for value in values):
        return ("",)
    return members(values)
