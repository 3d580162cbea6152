"""Lineages between services: OpenTelemetry baggage for requests, a header for responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from opentelemetry import baggage
from opentelemetry import context as otel_context
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.propagators.textmap import (
    CarrierT,
    Getter,
    Setter,
    TextMapPropagator,
    default_getter,
    default_setter,
)

from antipode._lineage.errors import ConfigurationError
from antipode._lineage.grammar import MEMBER
from antipode._request.context import BAGGAGE_KEY, KEY, LiveText, context_with, is_bare, scope_in
from antipode._runtime import observers, switch
from antipode._runtime.config import config
from antipode._runtime.metrics import count, log_once
from antipode._runtime.switch import switchable

from .extraction import (
    are_ours_alone,
    arrived,
    baggage_of,
    incoming,
    is_ours_alone,
    is_silent,
    members,
)
from .headers import (
    BAGGAGE,
    MAX_HEADER_BYTES,
    MAX_MEMBERS,
    SENT_HEADER,
    has_member,
    same_request,
    with_member,
    without_member,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opentelemetry.context import Context

    from antipode._request.scope import Scope


class AntipodePropagator(TextMapPropagator):
    """Wraps the propagator that is set: it injects and extracts baggage, this one opens scopes.

    Extraction is this propagator's own job: a scope exists at ingress before anything forks.
    Injection is the wrapped propagator's, which renders the live handle; this one only checks
    that the member was not dropped for the SDK's size limits. It never raises.
    """

    def __init__(
        self, inner: TextMapPropagator, *, replaced: TextMapPropagator | None = None
    ) -> None:
        """Wrap *inner*.

        Args:
            inner: what injects and extracts baggage.
            replaced: what :func:`uninstrument` brings back; None: *inner*.
        """
        self.inner = inner
        self.replaced = inner if replaced is None else replaced
        self._rest, self._baggage_first = _without_baggage(inner)

    @property
    def fields(self) -> set[str]:
        """The wrapped propagator's."""
        return self.inner.fields

    @observers.own_time
    def extract(
        self,
        carrier: CarrierT,
        context: Context | None = None,
        getter: Getter[CarrierT] = default_getter,
    ) -> Context:
        """The context of an incoming request, with a scope.

        A second extraction in the same request joins the first one's scope while it is open.
        """
        if switch.disabled:
            return self.inner.extract(carrier, context, getter)
        if getter is default_getter and isinstance(carrier, dict):
            silent = BAGGAGE not in carrier and SENT_HEADER not in carrier
        else:
            silent = is_silent(carrier)
        current = otel_context.get_current() if context is None else context
        held = None if current.get(KEY) is None else scope_in(current)
        if held is None and context is not None:
            held = _current_of(carrier)
        if held is not None and not held.open:
            held = None
        headers = () if silent else baggage_of(carrier, getter)
        known = None if held is None else held.carrier
        if silent or (known is not None and (known is carrier or same_request(known, carrier))):
            texts: tuple[str, ...] = ()  # Or who opened it has read these headers.
        else:
            texts = incoming(headers, carrier, getter)
        rest = self._rest
        if rest is None or (headers and not are_ours_alone(headers)):
            # In vain, the wrapped propagator would decode our members as well.
            ours = headers is None or any(MEMBER in header for header in headers)
            found = self.inner.extract(carrier, context, _Others(getter) if ours else getter)
        else:
            # Where a request has just begun, the current context is as good as an empty one.
            begun = context is None and held is not None and is_bare(current)
            start = current if begun or self._baggage_first else context
            found = rest.extract(carrier, start, getter)
        if held is not None:
            if texts:
                held.receive(texts)
            return context_with(held, found, current=current)
        config()  # Asked for first here, perhaps: a dry run begins with it.
        return arrived(carrier, texts, found)

    @observers.own_time
    def inject(
        self,
        carrier: CarrierT,
        context: Context | None = None,
        setter: Setter[CarrierT] = default_setter,
    ) -> None:
        """Let the wrapped propagator inject; if that loses our member, inject with ours first.

        Newer SDKs drop the members that come last in a header over 8,192 bytes; older ones send
        it, and the next service's SDK loses all of it.
        """
        if context is None:
            context = otel_context.get_current()
        if context.get(KEY) is None or scope_in(context) is None:
            # Where there is no baggage, nothing that injects some is asked: it takes its time.
            rest = None if context.get(BAGGAGE_KEY) else self._rest
            (self.inner if rest is None else rest).inject(carrier, context, setter)
            return
        entries = baggage.get_all(context)
        found = entries.get(MEMBER)
        handle = found if isinstance(found, LiveText) else None
        if handle is not None and self._rest is not None and len(entries) == 1:
            self._rest.inject(carrier, context, setter)
            _inject_alone(carrier, setter, handle)
            return
        if handle is not None and (there := members([_given(carrier)])):
            together = handle.scope.text_with(str(handle), there)
            context = baggage.set_baggage(MEMBER, together, context)
        checking = _Checking(setter, alone=len(entries) == 1)
        self.inner.inject(carrier, context, checking)
        if checking.lost and handle is not None:
            count("baggage_over_limit")
            message = (
                "the baggage header exceeds %d bytes or %d members: the lineage goes first, others "
                "are lost"
            )
            log_once("baggage_over_limit", "", "", message, MAX_HEADER_BYTES, MAX_MEMBERS)
            self.inner.inject(carrier, _ours_first(context), _Trimming(setter))


def _inject_alone(carrier: CarrierT, setter: Setter[CarrierT], handle: LiveText) -> None:
    """Inject *handle* as the only member of the baggage, as the stock propagator would.

    To quote what needs no quoting and to search for limits that it cannot reach takes the stock
    one longer than all of ours.
    """
    text, given = str(handle), _given(carrier)
    if given:
        header = with_member(given, handle.scope.text_with(text, members([given])))
    else:
        header = f"{MEMBER}={text}"
    setter.set(carrier, BAGGAGE, header)


def _given(carrier: object) -> str:
    """The baggage header that the application has set; empty where there is none to be seen."""
    given = carrier.get(BAGGAGE) if isinstance(carrier, Mapping) else None
    return given if isinstance(given, str) else ""


def _without_baggage(inner: TextMapPropagator) -> tuple[TextMapPropagator | None, bool]:
    """*inner* without OpenTelemetry's own baggage, and whether it begins with that.

    None where it has none, or another's, which may filter or limit it.
    """
    composite = type(inner) is CompositePropagator
    parts = [*getattr(inner, "_propagators", ())] if composite else [inner]
    carrying = [part for part in parts if BAGGAGE in part.fields]
    if not carrying or any(type(part) is not W3CBaggagePropagator for part in carrying):
        return None, False
    rest = [part for part in parts if part not in carrying]
    return rest[0] if len(rest) == 1 else CompositePropagator(rest), parts[0] in carrying


class _Others(Getter[CarrierT]):
    """Reads headers without our members."""

    def __init__(self, getter: Getter[CarrierT]) -> None:
        self._getter = getter

    def get(self, carrier: CarrierT, key: str) -> list[str] | None:
        found = self._getter.get(carrier, key)
        if key != BAGGAGE or not found:
            return found
        if len(found) == 1 and is_ours_alone(found[0]):
            return None
        kept = [each if (rest := without_member(each)) is None else rest for each in found]
        return [each for each in kept if each] or None

    def keys(self, carrier: CarrierT) -> list[str]:
        return self._getter.keys(carrier)


def _current_of(carrier: object) -> Scope | None:
    """The current scope if it is of the request that *carrier* is from, else None.

    Before us in a composite, a propagator of others may have made a context out of nothing.
    """
    held = scope_in()
    return held if held is not None and same_request(held.carrier, carrier) else None


class _Checking(Setter[CarrierT]):
    """Passes on what is set, and notices when our member will not arrive."""

    def __init__(self, setter: Setter[CarrierT], *, alone: bool) -> None:
        self._setter = setter
        #: Whether there is no other member, so that without ours no header would be set.
        self._alone = alone
        self.lost = False

    def set(self, carrier: CarrierT, key: str, value: str) -> None:
        if key == BAGGAGE:
            # Some SDKs pass the first members on alone.
            among = value if value.count(",") < MAX_MEMBERS else _first(value)
            self.lost = not has_member(among) or len(value) > MAX_HEADER_BYTES
            if self._alone and (given := _given(carrier)):
                # Where our member is all baggage there is, it would replace the user's own header.
                (text,) = members([value])
                value = with_member(given, text)
        self._setter.set(carrier, key, value)


def _first(header: str) -> str:
    """The members of *header* that every SDK passes on."""
    return ",".join(header.split(",", MAX_MEMBERS)[:MAX_MEMBERS])


class _Trimming(Setter[CarrierT]):
    """Passes on what is set, the baggage header without the members that exceed the limit."""

    def __init__(self, setter: Setter[CarrierT]) -> None:
        self._setter = setter

    def set(self, carrier: CarrierT, key: str, value: str) -> None:
        if key == BAGGAGE and len(value) > MAX_HEADER_BYTES:
            value = value[: MAX_HEADER_BYTES + 1].rpartition(",")[0]
        self._setter.set(carrier, key, value)


def _ours_first(context: Context | None) -> Context:
    """*context* with our member before the user's: SDKs drop what comes last."""
    entries = dict(baggage.get_all(context))
    ours = entries.pop(MEMBER)
    ordered = baggage.set_baggage(MEMBER, ours, context=baggage.clear(context))
    for name, value in entries.items():
        ordered = baggage.set_baggage(name, value, context=ordered)
    return ordered


class AntipodeBaggagePropagator(AntipodePropagator):
    """W3C baggage with scopes: ``OTEL_PROPAGATORS=tracecontext,antipode``, without ``baggage``."""

    def __init__(self) -> None:
        """Wrap the stock W3C baggage propagator."""
        super().__init__(W3CBaggagePropagator())


@switchable
def instrument() -> None:
    """Wrap the global propagator, so that every incoming request gets a scope. Idempotent.

    Call it after the propagator is set.

    Raises:
        ConfigurationError: the global propagator carries no baggage, or a setting in the
            environment is not what it takes.
    """
    config()  # A dry run begins here, before the first request: it would miss where that came from.
    # Not above: it loads the propagators of OTEL_PROPAGATORS, of which this module may be one.
    from opentelemetry import propagate

    found = propagate.get_global_textmap()
    if isinstance(found, AntipodePropagator):
        return
    if BAGGAGE not in found.fields:
        msg = (
            "the global propagator carries no baggage, so no lineage can travel: set "
            "OTEL_PROPAGATORS=tracecontext,baggage or call set_global_textmap() before "
            "antipode.instrument()"
        )
        raise ConfigurationError(msg)
    propagate.set_global_textmap(AntipodePropagator(_without_ours(found), replaced=found))


def _without_ours(found: TextMapPropagator) -> TextMapPropagator:
    """*found* with plain baggage where it holds our propagator, by the entry point.

    Among others ours depends on their order: the one of traces begins with an empty context, in
    which no scope is, and the one of baggage puts the text that came in place of the live handle.
    """
    parts: Iterable[TextMapPropagator] = getattr(found, "_propagators", ())
    if not any(isinstance(part, AntipodePropagator) for part in parts):
        return found
    others = [part for part in parts if not isinstance(part, AntipodePropagator)]
    if not any(BAGGAGE in part.fields for part in others):
        others.append(W3CBaggagePropagator())
    return CompositePropagator(others)


def uninstrument() -> None:
    """Undo :func:`instrument`. Idempotent."""
    from opentelemetry import propagate

    wrapped = propagate.get_global_textmap()
    if isinstance(wrapped, AntipodePropagator) and not isinstance(
        wrapped, AntipodeBaggagePropagator
    ):
        propagate.set_global_textmap(wrapped.replaced)
