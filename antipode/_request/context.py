"""Where a context has its scope, and the live baggage member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry import baggage
from opentelemetry import context as otel_context

from antipode._lineage.grammar import MEMBER
from antipode._runtime import switch
from antipode._runtime.call_site import call_site
from antipode._runtime.metrics import count, log_once

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.context import Context

    from .scope import Scope

#: Where a context has its scope, for who cannot spare the call of :func:`scope_in`.
KEY = otel_context.create_key("antipode-scope")
#: Where OpenTelemetry keeps baggage in a context.
(BAGGAGE_KEY,) = baggage.set_baggage(MEMBER, "", context=otel_context.Context())


def scope_in(context: Context | None = None) -> Scope | None:
    """The scope of *context*, default the current one; None without one or after ``stop()``."""
    # Asked for every call of every client: nothing is called here that can be spared.
    held: Any = (otel_context.get_current() if context is None else context).get(KEY)
    return None if held is None or held.stopped else held


def enter(held: Scope) -> Token[Context]:
    """A block begins whose scope is *held*; what :func:`leave` needs."""
    held.around = otel_context.get_current()
    held.entered = True
    return otel_context.attach(context_with(held, held.around))


def leave(held: Scope, token: Token[Context]) -> None:
    """The block of *held* ends: what was current before is so again.

    Blocks of generators may end in another order than they began. Then the block that is current
    stays so; once it ends, those that have ended before it are passed over.
    """
    held.entered = False
    current: Any = otel_context.get_value(KEY)
    if current is not held and current is not None and current.entered:
        count("scope_out_of_order")
        site = call_site()
        message = "%s: a scope ends before one that was opened within it, or in its place"
        log_once("scope_out_of_order", "", site, message, site)
        return
    otel_context.detach(token)
    found: Any = otel_context.get_current()
    context = found
    while (last := context.get(KEY)) is not None and _is_over(last):
        context = last.around
    if context is not found:
        otel_context.attach(context)
    held.around = None


def _is_over(held: Scope) -> bool:
    """Whether the block of *held* ended while another one was current."""
    return held.around is not None and not held.entered


def is_stopped() -> bool:
    """Whether the current context has a scope whose lineage was discarded by ``stop()``."""
    held: Any = otel_context.get_value(KEY)
    return held is not None and bool(held.stopped)


def context_with(
    held: Scope, context: Context | None = None, *, current: Context | None = None
) -> Context:
    """*context*, default the current one, with *held* as its scope, and a handle on it.

    Args:
        held: the scope.
        context: what else is in it. It is returned itself where it has both.
        current: a context that may have a handle on *held* already; None for none.

    Returns:
        It; *context* as it is where the library is disabled, so that there is no scope anywhere.
    """
    found = otel_context.get_current() if context is None else context
    if switch.disabled:
        return found
    entries = found.get(BAGGAGE_KEY)
    others: dict[str, object] = entries if isinstance(entries, dict) else {}
    handle = _handle_among(others, held) if others else None
    if handle is not None and found.get(KEY) is held:
        return found
    if handle is None and current is not None:
        handle = _handle_among(current.get(BAGGAGE_KEY), held)
    if handle is None:
        handle = LiveText(held.snapshot())
        handle.scope = held
    # A context does not change; nobody has this one yet, and each request would pay for copies.
    made = otel_context.Context(found)
    dict.__setitem__(made, BAGGAGE_KEY, {**others, MEMBER: handle})
    dict.__setitem__(made, KEY, held)
    return made


def has_member(context: Context) -> bool:
    """Whether the baggage in *context* has a member of ours."""
    entries = context.get(BAGGAGE_KEY)
    return isinstance(entries, dict) and MEMBER in entries


def is_bare(context: Context) -> bool:
    """Whether there is nothing in *context* but a scope, and no baggage but the handle on it."""
    entries = context.get(BAGGAGE_KEY)
    return (
        len(context) == len((KEY, BAGGAGE_KEY)) and isinstance(entries, dict) and len(entries) == 1
    )


def _handle_among(entries: object, held: Scope) -> LiveText | None:
    """The handle on *held* among the baggage *entries*: other propagators may replace it."""
    handle = entries.get(MEMBER) if isinstance(entries, dict) else None
    return handle if isinstance(handle, LiveText) and handle.scope is held else None


class LiveText(str):
    """The baggage member's value: a ``str`` whose text is rendered when it is injected.

    ``str()`` and ``format()``, which propagators use, give the lineage of that moment. Code that
    takes the characters themselves (``json``, ``pickle``, ``encode``, ``join``) gets a text which
    says that a lineage is missing, never an empty one: nothing is encoded for a handle that is
    not used.
    """

    __slots__ = ("scope",)
    #: Whose lineage it is. To be set by who makes one.
    scope: Scope

    def __str__(self) -> str:
        """The lineage of this moment, as it leaves the process."""
        return self.scope.text()

    def __format__(self, format_spec: str, /) -> str:
        """As :meth:`__str__`."""
        return format(self.scope.text(), format_spec)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as the snapshot: another process cannot share the scope."""
        return str, (str.__str__(self),)
