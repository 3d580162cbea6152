"""Lineages between services, through the real OpenTelemetry propagators."""

from __future__ import annotations

import contextvars
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import baggage, propagate
from opentelemetry import context as otel_context
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.propagators.textmap import Getter
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

import antipode
from antipode import Lineage, WriteId
from antipode._request.context import LiveText
from antipode.propagation import AntipodeBaggagePropagator, AntipodePropagator
from antipode.shim import Incomplete, scope_in

if TYPE_CHECKING:
    from collections.abc import Callable

POST = WriteId("posts", "log", 7, written_hour=490_000)
USER = WriteId("users", "log", 3, written_hour=490_000)
UNREADABLE = Incomplete("baggage", "unreadable")


@pytest.fixture(autouse=True)
def _instrumented() -> None:
    """A service with the stock propagators and Antipode."""
    stock = CompositePropagator([TraceContextTextMapPropagator(), W3CBaggagePropagator()])
    propagate.set_global_textmap(stock)
    antipode.instrument()


def sent(lineage: Lineage) -> dict[str, str]:
    """The headers of a request with *lineage*."""
    carrier: dict[str, str] = {}
    with antipode.scope(lineage):
        propagate.inject(carrier)
    return carrier


def received(carrier: object, context: Context | None = None) -> Lineage:
    """The lineage that a service takes from *carrier*."""
    return antipode.current(context=propagate.extract(carrier, context=context))


@pytest.mark.parametrize("tenant", ["", "acme"], ids=["alone", "with a user's baggage"])
@pytest.mark.parametrize("wraps", ["composite", "unknown"])
def test_a_lineage_that_a_header_has_already_is_sent_too(tenant: str, wraps: str) -> None:
    """Headers that are handed on keep their lineage, whoever injects, and whatever else."""
    known = propagate.get_global_textmap()
    propagator = known if wraps == "composite" else AntipodePropagator(_Unknown())
    with antipode.scope(Lineage([POST])):
        carrier = {"baggage": f"antipode={antipode.serialize(Lineage([USER]))}"}
        context = baggage.set_baggage("tenant", tenant) if tenant else None
        propagator.inject(carrier, context)
        propagator.inject(carrier, context)
    members = [f"antipode={antipode.serialize(Lineage([POST, USER]))}"]
    assert carrier["baggage"].split(",") == members + ["tenant=acme"] * bool(tenant)


class _Unknown(W3CBaggagePropagator):
    """One of which the library does not know what it does with baggage."""


def test_a_lineage_travels_in_one_baggage_member() -> None:
    """What one service injects, the next one extracts."""
    carrier = sent(Lineage([POST]))
    assert carrier["baggage"] == f"antipode={antipode.serialize(Lineage([POST]))}"
    assert received(carrier) == Lineage([POST])


def test_every_incoming_request_gets_a_scope() -> None:
    """A scope exists at ingress before anything forks, with and without a lineage."""
    context = propagate.extract({})
    held = scope_in(context)
    assert held is not None
    assert held.open
    token = otel_context.attach(context)
    branch = contextvars.copy_context()
    branch.run(antipode.append, POST)
    assert antipode.current() == Lineage([POST])
    otel_context.detach(token)


def test_injection_sends_the_current_lineage_whatever_was_copied_before() -> None:
    """A context copied before a write still sends that write."""
    with antipode.scope():
        old = otel_context.get_current()
        antipode.append(POST)
        carrier: dict[str, str] = {}
        propagate.inject(carrier, context=old)
    assert received(carrier) == Lineage([POST])


def test_a_stock_service_in_the_middle_passes_it_on() -> None:
    """A service that never heard of Antipode forwards the member unchanged."""
    stock = W3CBaggagePropagator()
    forwarded: dict[str, str] = {}
    stock.inject(forwarded, context=stock.extract(sent(Lineage([POST, USER]))))
    assert received(forwarded) == Lineage([POST, USER])


def test_the_stock_propagator_alone_sends_the_live_handle() -> None:
    """Even without ``instrument()`` a scope's lineage goes out, current to the injection."""
    antipode.propagation.uninstrument()
    with antipode.scope():
        antipode.append(POST)
        carrier: dict[str, str] = {}
        W3CBaggagePropagator().inject(carrier)
    assert carrier["baggage"] == f"antipode={antipode.serialize(Lineage([POST]))}"


def test_a_second_extraction_joins_the_open_scope() -> None:
    """Two instrumentations of one request make one scope with the lineages of both."""
    first = propagate.extract(sent(Lineage([POST])))
    second = propagate.extract(sent(Lineage([USER])), context=first)
    assert scope_in(second) is scope_in(first)
    assert antipode.current(context=first) == Lineage([POST, USER])


def test_an_ended_scope_is_not_joined() -> None:
    """A request that comes in where another one ended starts its own scope."""
    with antipode.scope(Lineage([POST])):
        ended = otel_context.get_current()
    assert received(sent(Lineage([USER])), context=ended) == Lineage([USER])


def test_the_users_baggage_travels_beside_ours() -> None:
    """Members of the application arrive, in both directions, as without Antipode."""
    carrier: dict[str, str] = {}
    outer = otel_context.attach(baggage.set_baggage("tenant", "a b"))
    with antipode.scope(Lineage([POST])):
        inner = otel_context.attach(baggage.set_baggage("user", "é"))
        propagate.inject(carrier)
        otel_context.detach(inner)
    otel_context.detach(outer)
    context = propagate.extract(carrier)
    assert baggage.get_baggage("tenant", context) == "a b"
    assert baggage.get_baggage("user", context) == "é"
    assert antipode.current(context=context) == Lineage([POST])


@pytest.mark.parametrize("text", ["", "x", "1~", "1~k", "1~ka.b.c d", "%", "1aa~ubad.p.1"])
def test_an_unreadable_lineage_is_never_taken_for_an_empty_one(text: str) -> None:
    """Damage on the way makes the lineage incomplete, so that barriers tell."""
    lineage = received({"baggage": f"antipode={text}"})
    assert lineage == Lineage(incomplete=[UNREADABLE])
    with antipode.scope(lineage), pytest.raises(antipode.IncompleteLineage):
        antipode.barrier(timeout=1)


def test_no_member_means_an_empty_lineage() -> None:
    """A request from a service without Antipode is no damaged one."""
    assert received({"baggage": "tenant=a,not-antipode=1"}) == Lineage()


def test_several_baggage_headers_are_read() -> None:
    """SDKs read the first header only; our member is found in any, and several are merged."""

    class Headers(Getter[list[tuple[str, str]]]):
        def get(self, carrier: list[tuple[str, str]], key: str) -> list[str] | None:
            return [value for name, value in carrier if name == key] or None

        def keys(self, carrier: list[tuple[str, str]]) -> list[str]:
            return [name for name, _ in carrier]

    headers = [("baggage", "tenant=a")]
    headers += [("baggage", sent(Lineage([write]))["baggage"]) for write in (POST, USER)]
    context = propagate.extract(headers, getter=Headers())
    assert antipode.current(context=context) == Lineage([POST, USER])


def test_our_member_survives_a_header_that_the_sdk_gives_up() -> None:
    """Beyond 8,192 bytes SDKs lose the whole header on extraction; the lineage still arrives."""
    header = f"{'x' * 9000}=1,{sent(Lineage([POST]))['baggage']}"
    assert received({"baggage": header}) == Lineage([POST])


def test_our_member_is_sent_when_the_users_baggage_fills_the_header() -> None:
    """SDKs drop what comes last without a sign; ours is then put first."""
    tokens = [
        otel_context.attach(baggage.set_baggage(f"key{number}", "v" * 3000)) for number in range(4)
    ]
    carrier = sent(Lineage([POST]))
    for token in reversed(tokens):
        otel_context.detach(token)
    assert carrier["baggage"].startswith("antipode=")
    assert len(carrier["baggage"]) <= 8192
    stock, forwarded = W3CBaggagePropagator(), dict[str, str]()
    stock.inject(forwarded, context=stock.extract(carrier))
    assert received(forwarded) == Lineage([POST])


def test_properties_and_spaces_around_the_member_are_tolerated() -> None:
    """W3C allows white space and properties; other senders may add them."""
    text = antipode.serialize(Lineage([POST]))
    assert received({"baggage": f"a=1 , antipode = {text} ;ttl=5, b=2"}) == Lineage([POST])


def test_a_huge_lineage_is_sent_shortened_and_says_so() -> None:
    """The member keeps its bound, and the receiver knows which datastore lost entries."""
    lineage = Lineage([WriteId("posts", f"key-{i}", i, written_hour=490_000) for i in range(500)])
    carrier = sent(lineage)
    assert len(carrier["baggage"]) <= 1024
    assert Incomplete("posts", "size") in received(carrier).incomplete


def test_only_allowed_datastores_leave() -> None:
    """``egress`` keeps the others' entries and names in, and the receiver knows it misses some."""
    antipode.configure(egress=["users"])
    carrier = sent(Lineage([POST, USER]))
    assert "posts" not in carrier["baggage"]
    assert received(carrier) == Lineage([USER], incomplete=[("", "egress")])


def test_a_lineage_of_a_later_format_is_passed_on_and_not_passed_over() -> None:
    """A text of another major version survives verbatim, and a barrier does not ignore it."""
    with antipode.scope(received({"baggage": "antipode=2new~things"})):
        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        with pytest.raises(antipode.IncompleteLineage, match="unknown_item"):
            antipode.barrier(timeout=1)
    assert received(carrier) == received({"baggage": "antipode=2new~things"})


def test_a_broken_carrier_does_not_break_the_request() -> None:
    """Propagation never throws: a getter that fails makes the lineage incomplete."""

    class Broken(Getter[object]):
        calls = 0

        def get(self, carrier: object, key: str) -> list[str] | None:
            self.calls += 1
            if self.calls == 1:  # The wrapped propagators' own reads succeed.
                raise OSError(key)
            return None

        def keys(self, carrier: object) -> list[str]:
            return []

    context = propagate.extract(object(), getter=Broken())
    assert antipode.current(context=context) == Lineage(incomplete=[UNREADABLE])


def test_the_lineage_is_among_the_members_that_every_sdk_passes_on() -> None:
    """Some keep the first 64: with more before ours it goes first, and all others with it."""
    with antipode.scope(Lineage([POST])):
        context = baggage.clear()
        for number in range(64):
            context = baggage.set_baggage(f"m{number}", "x", context)
        ours = baggage.get_baggage("antipode")
        assert ours is not None
        carrier: dict[str, str] = {}
        propagate.inject(carrier, baggage.set_baggage("antipode", ours, context))
    names = [member.partition("=")[0] for member in carrier["baggage"].split(",")]
    assert names == ["antipode", *(f"m{number}" for number in range(64))]


def test_instrument_is_idempotent_and_undoable() -> None:
    """Twice is once, and ``uninstrument()`` gives the user's propagator back."""
    wrapped = propagate.get_global_textmap()
    antipode.instrument()
    assert propagate.get_global_textmap() is wrapped
    antipode.propagation.uninstrument()
    antipode.propagation.uninstrument()
    assert isinstance(propagate.get_global_textmap(), CompositePropagator)


def test_instrument_refuses_a_propagator_without_baggage() -> None:
    """Set-up mistakes fail early, with what to do."""
    propagate.set_global_textmap(TraceContextTextMapPropagator())
    with pytest.raises(antipode.ConfigurationError, match="OTEL_PROPAGATORS"):
        antipode.instrument()


def test_the_entry_point_is_a_superset_of_baggage() -> None:
    """With ``OTEL_PROPAGATORS=tracecontext,antipode`` everything works, instrumented or not."""
    ours = CompositePropagator([TraceContextTextMapPropagator(), AntipodeBaggagePropagator()])
    propagate.set_global_textmap(ours)
    for _ in range(2):
        token = otel_context.attach(baggage.set_baggage("tenant", "a"))
        context = propagate.extract(sent(Lineage([POST])))
        otel_context.detach(token)
        assert antipode.current(context=context) == Lineage([POST])
        assert baggage.get_baggage("tenant", context) == "a"
        antipode.instrument()
    antipode.propagation.uninstrument()
    assert propagate.get_global_textmap() is ours


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 2), (1, 2, 0), (2, 0, 1)])
def test_the_order_of_propagators_is_nothing(order: tuple[int, ...]) -> None:
    """A second extraction joins the scope, and what is sent is the lineage of that moment.

    The propagator of traces begins with an empty context, and the one of baggage would put the
    text that came in place of the live handle.
    """
    kinds = (TraceContextTextMapPropagator, AntipodeBaggagePropagator, W3CBaggagePropagator)
    propagate.set_global_textmap(CompositePropagator([kinds[kind]() for kind in order]))
    antipode.instrument()
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    headers = {"traceparent": trace, **sent(Lineage([POST]))}
    token = otel_context.attach(propagate.extract(headers))
    again = otel_context.attach(propagate.extract(dict(headers)))
    try:
        antipode.append(USER)
        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        assert received(carrier, Context()) == Lineage([POST, USER])
    finally:
        otel_context.detach(again)
        assert antipode.current() == Lineage([POST, USER])
        otel_context.detach(token)


def test_a_response_carries_the_callees_writes_back() -> None:
    """The paper's step 3: what post-storage wrote enters the lineage of post-upload."""
    headers: dict[str, str] = {}
    with antipode.scope():
        antipode.append(POST)
        antipode.propagation.inject_response(headers)
    with antipode.scope():
        upper = {name.upper(): value for name, value in headers.items()}
        assert antipode.propagation.extract_response(upper) == Lineage([POST])
        assert antipode.current() == Lineage([POST])


def test_a_late_response_does_not_enter_another_request() -> None:
    """A response merges into its own open scope alone."""
    headers: dict[str, str] = {}
    with antipode.scope(Lineage([POST])):
        antipode.propagation.inject_response(headers)
    with antipode.scope():
        ended = otel_context.get_current()
    with antipode.scope():
        antipode.propagation.extract_response(headers, context=ended)
        assert antipode.current() == Lineage()
    assert antipode.current(context=ended) == Lineage()


def test_an_unreadable_response_marks_its_service() -> None:
    """The caller knows whose writes it misses."""
    with antipode.scope():
        antipode.propagation.extract_response({"antipode-lineage": "?"}, service="post-storage")
        assert antipode.current().incomplete == {Incomplete("post-storage", "unreadable")}


def test_nothing_is_injected_without_a_scope() -> None:
    """A service outside any request sends no member and no response header."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    antipode.propagation.inject_response(carrier)
    assert carrier == {}


@pytest.mark.parametrize(
    "leave",
    [
        baggage.clear,
        lambda: baggage.remove_baggage("antipode"),
        otel_context.Context,
    ],
)
def test_the_user_may_keep_the_lineage_from_leaving(leave: Callable[[], Context]) -> None:
    """clear, remove_baggage and an empty context mean for ours what they mean for the others."""
    with antipode.scope(Lineage([POST])):
        token = otel_context.attach(leave())
        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        otel_context.detach(token)
        assert "baggage" not in carrier
        assert antipode.current() == Lineage([POST])


@pytest.mark.parametrize(
    "first", ["instrument()", "propagation.inject_response({})", "propagation.extract_response({})"]
)
def test_a_process_named_by_its_environment_may_begin_with_any_call(first: str) -> None:
    """The propagators of OTEL_PROPAGATORS, ours among them, load whatever is used first."""
    subprocess.run(
        [sys.executable, "-c", f"import antipode; antipode.{first}; antipode.instrument()"],
        env={**os.environ, "OTEL_PROPAGATORS": "tracecontext,antipode"},
        timeout=60,
        check=True,
    )


def test_alone_the_member_is_injected_as_the_stock_propagator_would() -> None:
    """The short way for a request without other baggage gives the same header as the long one."""
    with antipode.scope(Lineage([WriteId("a store", "k~.-_/", 1, written_hour=490_000)])):
        ours: dict[str, str] = {}
        stock: dict[str, str] = {}
        AntipodePropagator(W3CBaggagePropagator()).inject(ours)
        W3CBaggagePropagator().inject(stock)
    assert ours == stock


def test_a_propagator_that_filters_baggage_is_asked() -> None:
    """Who sends no lineages to some hosts by a propagator of their own goes on to do so."""

    class Filtering(W3CBaggagePropagator):
        def inject(self, *args: Any, **kwargs: Any) -> None:
            """Send nothing."""

    headers: dict[str, str] = {}
    with antipode.scope(Lineage([WriteId("posts", "p1", 1)])):
        AntipodePropagator(Filtering()).inject(headers)
    assert not headers


def test_the_wrapped_propagator_sees_the_members_of_others() -> None:
    """Ours is taken out before it reads: it would decode it in vain, or find it too long."""
    header = "a=1,antipode=1~isize.-,b=2"
    extracted = AntipodePropagator(W3CBaggagePropagator()).extract({"baggage": header})
    entries = dict(baggage.get_all(extracted))
    assert isinstance(entries.pop("antipode"), LiveText)
    assert entries == {"a": "1", "b": "2"}


def test_a_header_that_is_no_text_does_not_break_the_request() -> None:
    """Some carriers hold bytes: what cannot be read is incomplete, and the request goes on."""
    context = propagate.extract({"baggage": [b"antipode=1"]})
    assert antipode.current(context=context) == Lineage(incomplete=[UNREADABLE])


@pytest.mark.parametrize("first", ["baggage", "traces", "alone"])
def test_what_the_stock_propagators_begin_with_stays_as_it_is(first: str) -> None:
    """Baggage begins with the current context, traces with an empty one; ours changes neither."""
    parts = [W3CBaggagePropagator(), TraceContextTextMapPropagator()][
        : 1 if first == "alone" else 2
    ]
    stock = CompositePropagator(parts[::-1] if first == "traces" else parts)
    token = otel_context.attach(otel_context.set_value("kept", "value"))
    expected = otel_context.get_value("kept", stock.extract({}))
    found = AntipodePropagator(stock).extract({})
    otel_context.detach(token)
    assert otel_context.get_value("kept", found) == expected
    assert expected == (None if first == "traces" else "value")
