"""One incoming request: whose scope it is, and what is in the context meanwhile."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import baggage
from opentelemetry import context as otel_context
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.propagators.textmap import Getter

import antipode
from antipode import Lineage, WriteId
from antipode._propagation.headers import same_request
from antipode.integrations import asgi
from antipode.integrations._incoming import Incoming
from antipode.propagation import AntipodePropagator
from antipode.shim import scope_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode.shim import Scope

POST = WriteId("posts", "post:1", 1, written_hour=490_000)
USER = WriteId("users", "user:1", 7, written_hour=490_000)
PROPAGATOR = AntipodePropagator(W3CBaggagePropagator())
HEADER = f"antipode={antipode.serialize(Lineage([POST]))}"


@contextmanager
def extracted(carrier: dict[str, Any]) -> Iterator[Scope]:
    """A block in the context that an instrumentation makes of *carrier*."""
    token = otel_context.attach(PROPAGATOR.extract(carrier))
    try:
        held = scope_in()
        assert held is not None
        yield held
    finally:
        otel_context.detach(token)


def test_the_scope_of_an_extraction_is_taken_over_once() -> None:
    """The request goes on in it; one within the request gets a scope of its own."""
    carrier = {"baggage": HEADER}
    with extracted(carrier) as held:
        request = Incoming(scope_in(), [HEADER], carrier=carrier)
        inner = Incoming(scope_in(), [], carrier=carrier)
        assert request.scope is held is not inner.scope
        inner.end()
        assert held.open
        request.end()
        assert not held.open


def test_the_scope_of_another_request_is_left_to_it() -> None:
    """An in-process call has headers of its own."""
    with extracted({"baggage": HEADER}) as held:
        request = Incoming(scope_in(), [], carrier={})
        assert request.scope is not held
        request.end()
        assert held.open
        assert held.arrived


def test_an_extraction_within_joins_even_in_a_context_made_of_nothing() -> None:
    """Stock propagators before ours in a composite begin with an empty context."""
    carrier = {"baggage": HEADER}
    request = Incoming(scope_in(), [HEADER], carrier=carrier)
    found = PROPAGATOR.extract(carrier, otel_context.Context())
    assert scope_in(found) is request.scope
    assert str(baggage.get_baggage("antipode", found)) == request.scope.text()
    other = PROPAGATOR.extract(dict(carrier), otel_context.Context())
    assert scope_in(other) is not request.scope
    request.end()


def test_an_extraction_by_a_stock_propagator_does_not_put_the_text_over_the_handle() -> None:
    """What is sent on after that extraction has what the request adds later."""
    carrier = {"baggage": f"{HEADER},tenant=a"}
    request = Incoming(scope_in(), [carrier["baggage"]], carrier=carrier)
    token = otel_context.attach(PROPAGATOR.extract(carrier))
    request.scope.append(USER)
    headers: dict[str, str] = {}
    PROPAGATOR.inject(headers)
    otel_context.detach(token)
    request.end()
    sent = dict(member.split("=") for member in headers["baggage"].split(","))
    assert antipode.deserialize(sent["antipode"]) == Lineage([POST, USER])
    assert sent["tenant"] == "a"


def test_a_suspended_request_is_not_in_the_context() -> None:
    """It comes back with all that the context held, whoever goes on with it."""
    outside = otel_context.get_current()
    request = Incoming(scope_in(), [])
    inner = otel_context.attach(otel_context.set_value("key", "value"))
    request.suspend()
    assert otel_context.get_current() is outside
    request.resume()
    assert scope_in() is request.scope
    assert otel_context.get_value("key") == "value"
    request.end()
    assert otel_context.get_current() is outside
    del inner


def test_texts_that_nobody_looks_at_do_not_pile_up() -> None:
    """Many requests may join a scope that was open around their server."""
    with antipode.scope() as around:
        for number in range(100):
            write = WriteId("posts", "post:1", number, written_hour=490_000)
            text = antipode.serialize(Lineage([write]))
            PROPAGATOR.extract({"baggage": f"antipode={text}"})
        assert len(around._incoming) < 10
    assert around.lineage == Lineage([write])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({}, {}, False),
        ({"headers": []}, {"headers": []}, False),
        (PROPAGATOR, PROPAGATOR, True),
        ({"headers": [POST]}, {"headers": (POST, USER)}, True),
        ({"headers": [(b"a", b"b")]}, {"headers": [(b"a", bytes([98]))]}, False),
        (None, {"headers": [POST]}, False),
    ],
)
def test_requests_are_known_by_the_objects_of_their_headers(
    one: object, other: object, *, same: bool
) -> None:
    """Equal headers may be those of two requests."""
    assert same_request(one, other) is same


@pytest.mark.parametrize("name", [b"baggage", b"Baggage"])
@pytest.mark.parametrize("value", [b"tenant=a", b"antipode=1~isize.-", b"tenant=a,antipode=1"])
def test_the_headers_of_an_asgi_request_are_looked_at_as_a_getter_would(
    name: bytes, value: bytes
) -> None:
    """It is the same context as from a dict, whatever case a server leaves names in."""
    raw = {"asgi": {"version": "3.0"}, "headers": [(b"host", b"h"), (name, value)]}
    ours = PROPAGATOR.extract(raw, context=otel_context.Context(), getter=_Raw())
    plain = PROPAGATOR.extract({"baggage": value.decode()}, context=otel_context.Context())
    assert antipode.current(context=ours) == antipode.current(context=plain)
    assert {**baggage.get_all(ours)}.keys() == {**baggage.get_all(plain)}.keys()


def test_headers_rewritten_behind_the_middleware_are_read() -> None:
    """A middleware between ours and the instrumentation may add baggage to the same request."""
    scope: dict[str, Any] = {"asgi": {}, "headers": [(b"host", b"h")]}
    request = asgi.begin(scope)
    scope["headers"].append((b"baggage", b"tenant=a"))
    found = PROPAGATOR.extract(scope, getter=_Raw())
    request.end()
    assert baggage.get_baggage("tenant", found) == "a"
    assert scope_in(found) is request.scope


class _Raw(Getter[Any]):
    """Reads an ASGI scope as OpenTelemetry's instrumentation does."""

    def get(self, carrier: Any, key: str) -> list[str] | None:
        found = [v.decode() for k, v in carrier["headers"] if k.decode().lower() == key]
        return found or None

    def keys(self, carrier: Any) -> list[str]:
        return [k.decode().lower() for k, _ in carrier["headers"]]
