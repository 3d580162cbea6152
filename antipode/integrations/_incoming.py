"""One incoming request while a server handles it, whatever its protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry import context as otel_context

from antipode import _seam
from antipode._propagation import members, stripped
from antipode._scope import Scope, context_with, scope_in

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextvars import Token

    from opentelemetry.context import Context


class Incoming:
    """A request with a scope of its own, from its headers to its answer.

    Where an instrumentation of OpenTelemetry has extracted the request already, its scope is
    taken over; a scope that was open before, around the server or around an in-process call, is
    not this request's.
    """

    __slots__ = ("_token", "scope")

    def __init__(self, baggage: Iterable[str], *, sent: bool = False) -> None:
        """Begin.

        Args:
            baggage: the values of all baggage headers.
            sent: whether the request says that it was sent with a lineage.
        """
        held = scope_in()
        self._token: Token[Context] | None = None
        if held is None or not held.arrived:
            texts = members(baggage)
            held = Scope(incoming=texts if texts or not sent else stripped())
            self._token = otel_context.attach(context_with(held))
            if (observer := _seam.observer) is not None:
                observer.opened(held, incoming=True)
        held.arrived = False  # Taken over: a request within this one gets its own.
        self.scope = held

    def answer(self) -> str:
        """What the response carries; what is written later is counted as after it."""
        return self.scope.answer()

    def suspend(self) -> None:
        """Leave the context for a while; :meth:`resume` enters it again."""
        if self._token is not None:
            otel_context.detach(self._token)
            self._token = None

    def resume(self) -> None:
        """Be in the context of this request again, in whatever thread goes on with it."""
        if scope_in() is not self.scope:
            self._token = otel_context.attach(context_with(self.scope))

    def end(self) -> None:
        """The request is over. Call it in the context in which it began."""
        self.scope.end()
        if (observer := _seam.observer) is not None:
            observer.ended()
        self.suspend()
