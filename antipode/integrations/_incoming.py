"""One incoming request while a server handles it, whatever its protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry import context as otel_context

from antipode import ConfigurationError, instrument
from antipode._propagation.headers import same_request
from antipode._request.context import context_with, scope_in
from antipode._request.scope import NOTHING
from antipode._runtime import observers
from antipode._runtime.metrics import log_once
from antipode.propagation import members, stripped
from antipode.shim import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextvars import Token

    from opentelemetry.context import Context


class Incoming:
    """A request with a scope of its own, from its headers to its answer.

    Where an instrumentation of OpenTelemetry has extracted the request already, its scope is
    adopted; a scope that was open before, around the server or around an in-process call, is
    not this request's.
    """

    __slots__ = ("_asked", "_left", "_token", "scope")

    @observers.own_time
    def __init__(
        self,
        held: Scope | None,
        baggage: Sequence[str],
        *,
        sent: bool = False,
        carrier: object = None,
        context: Context | None = None,
    ) -> None:
        """Begin.

        Args:
            held: the current scope.
            baggage: the values of all baggage headers.
            sent: whether the request says that it was sent with a lineage.
            carrier: what an instrumentation of this request would extract from. One that was
                extracted from something else is another request, which makes this one. None
                where an extraction cannot be of another.
            context: the current context, for who has it at hand.
        """
        self._token: Token[Context] | None = None
        self._left: Context | None = None
        self._asked = sent or bool(baggage)
        if held is None or not (
            held.arrived and (carrier is None or same_request(held.carrier, carrier))
        ):
            texts = members(baggage) if baggage else ()
            held = Scope(incoming=texts if texts or not sent else stripped())
            held.carrier = carrier
            self._token = otel_context.attach(context_with(held, context))
            if (observer := observers.dry_run) is not None:
                observer.opened(held, incoming=True)
        held.arrived = False  # Adopted: a request within this one gets its own.
        self.scope = held

    @observers.own_time
    def answer(self) -> str:
        """What the response says; empty where nothing was added, and nobody asked.

        Who sends no lineage has none to merge the answer into.
        """
        text = self.scope.answer()
        return text if self._asked or text != NOTHING else ""

    def suspend(self) -> None:
        """Leave the context for a while; :meth:`resume` enters it again."""
        self._left = otel_context.get_current()
        self._leave()

    def resume(self) -> None:
        """Be in the context of this request again, in whatever thread goes on with it."""
        if scope_in() is not self.scope:
            left = self._left
            self._token = otel_context.attach(context_with(self.scope) if left is None else left)

    def end(self, *, leave: bool = True) -> None:
        """The request is over.

        Args:
            leave: whether the context is the one in which it began or was resumed; False where a
                request that was dropped is collected, in whatever context that happens.
        """
        self.scope.end()
        if (observer := observers.dry_run) is not None:
            observer.ended()
        if leave and self._token is not None:
            otel_context.detach(self._token)

    def _leave(self) -> None:
        if self._token is not None:
            otel_context.detach(self._token)
            self._token = None


def propagating() -> None:
    """Have extractions and injections of this process know scopes, as far as that can be.

    An integration asks for it at its first request. Without it a stock propagator that extracts
    inside the integration would send on the text that came, not what the request added.
    """
    try:
        instrument()
    except ConfigurationError as error:
        log_once("no_propagator", "", "", "%s", error)
