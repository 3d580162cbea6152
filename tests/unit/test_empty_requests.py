"""Requests without a lineage, as most are: extracted and injected as by the stock propagators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import baggage, propagate, trace
from opentelemetry import context as otel_context
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.propagators.textmap import (
    Getter,
    TextMapPropagator,
    default_getter,
    default_setter,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

import antipode
from antipode._request.context import KEY
from antipode.propagation import AntipodePropagator
from antipode.shim import scope_in

if TYPE_CHECKING:
    from collections.abc import Iterator

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
THEIRS = "somebody's"


class FromASGI(Getter[Any]):
    """Reads the headers of ASGI, as OpenTelemetry's instrumentation of it does."""

    def get(self, carrier: Any, key: str) -> list[str] | None:
        name = key.lower().encode()
        return [value.decode() for each, value in carrier["headers"] if each == name] or None

    def keys(self, carrier: Any) -> list[str]:
        return [name.decode() for name, _ in carrier["headers"]]


class Forgetful(TextMapPropagator):
    """Of somebody else: it makes a context out of nothing."""

    @property
    def fields(self) -> set[str]:
        return {"their-header"}

    def extract(self, carrier: Any, context: Any = None, getter: Any = default_getter) -> Context:
        return Context({THEIRS: getter.get(carrier, "their-header")})

    def inject(self, carrier: Any, context: Any = None, setter: Any = default_setter) -> None:
        setter.set(carrier, "their-header", "1")


PROPAGATORS: dict[str, list[TextMapPropagator]] = {
    "usual": [TraceContextTextMapPropagator(), W3CBaggagePropagator()],
    "reversed": [W3CBaggagePropagator(), TraceContextTextMapPropagator()],
    "baggage": [W3CBaggagePropagator()],
    "others first": [Forgetful(), TraceContextTextMapPropagator(), W3CBaggagePropagator()],
    "others": [Forgetful(), W3CBaggagePropagator()],
    "others behind": [W3CBaggagePropagator(), TraceContextTextMapPropagator(), Forgetful()],
}
REQUESTS: dict[str, tuple[Any, Any]] = {
    "nothing": ({}, default_getter),
    "traced": ({"traceparent": TRACE, "their-header": "x"}, default_getter),
    "wrongly traced": ({"traceparent": "00-1-2-3"}, default_getter),
    "asgi": ({"asgi": {}, "headers": [(b"traceparent", TRACE.encode())]}, FromASGI()),
}


@pytest.fixture(params=[False, True], ids=["begun", "within"], autouse=True)
def _around(request: pytest.FixtureRequest) -> Iterator[None]:
    """A server that is called in a context of its own, or in one that holds something."""
    if not request.param:
        yield
        return
    held = baggage.set_baggage("theirs", "1", Context({"around": "held"}))
    token = otel_context.attach(held)
    yield
    otel_context.detach(token)


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
@pytest.mark.parametrize("parts", PROPAGATORS.values(), ids=PROPAGATORS)
def test_the_second_request_is_extracted_as_the_first(
    parts: list[TextMapPropagator], request_: tuple[Any, Any]
) -> None:
    """Whatever the propagator keeps of the first request changes nothing for later ones."""
    propagate.set_global_textmap(CompositePropagator(parts))
    antipode.instrument()
    carrier, getter = request_
    first, second, third = (propagate.extract(carrier, getter=getter) for _ in range(3))
    assert told(first) == told(second) == told(third)
    assert len({id(scope_in(each)) for each in (first, second, third)}) == 3


def told(context: Context) -> dict[str, Any]:
    """What *context* says of its request: spans by their ids, baggage by what is sent of it."""
    held = scope_in(context)
    assert held is not None
    assert held.open
    span = trace.get_current_span(context).get_span_context()
    sent = {name: str(value) for name, value in baggage.get_all(context).items()}
    known = {KEY, *baggage.set_baggage("", "", Context()), *trace.set_span_in_context(SPAN)}
    rest = {name: value for name, value in context.items() if name not in known}
    return {"span": span, "baggage": sent, "rest": rest, "lineage": held.lineage}


SPAN = trace.NonRecordingSpan(trace.INVALID_SPAN_CONTEXT)


@pytest.mark.parametrize("parts", PROPAGATORS.values(), ids=PROPAGATORS)
@pytest.mark.parametrize("theirs", [None, {}, {"k": "v"}], ids=["none", "empty", "some"])
def test_outside_of_scopes_what_is_injected_is_the_stock_propagators(
    parts: list[TextMapPropagator], theirs: dict[str, str] | None
) -> None:
    """Whatever baggage there is, and where there is none."""
    stock = CompositePropagator(parts)
    span = trace.SpanContext(1, 2, is_remote=False, trace_flags=trace.TraceFlags(1))
    context = trace.set_span_in_context(trace.NonRecordingSpan(span))
    if theirs is not None:
        context = baggage.clear(context)
        for name, value in theirs.items():
            context = baggage.set_baggage(name, value, context)
    expected: dict[str, str] = {}
    stock.inject(expected, context)
    found: dict[str, str] = {}
    AntipodePropagator(stock).inject(found, context)
    assert found == expected
