"""What a response carries, what comes after it, and headers without lineages."""

from __future__ import annotations

import pytest
from hypothesis import given
from opentelemetry import context as otel_context
from opentelemetry.baggage.propagation import W3CBaggagePropagator

import antipode
from antipode import Lineage, WriteId
from antipode.propagation import AntipodePropagator

from ._lineages import lineages

POST = WriteId("posts", "post:1", 1, written_hour=490_000)
USER = WriteId("users", "user:1", 7, written_hour=490_000)
PROPAGATOR = AntipodePropagator(W3CBaggagePropagator())


def sent(lineage: Lineage) -> dict[str, str]:
    """The headers of a request that carries *lineage*."""
    headers: dict[str, str] = {}
    with antipode.scope(lineage):
        PROPAGATOR.inject(headers)
    return headers


@pytest.mark.slow
@given(lineages(), lineages())
def test_what_is_beyond_adds_up(held: Lineage, other: Lineage) -> None:
    """Who has the one lineage and gets what is beyond it has both, in every field."""
    assert other.merge(held.merge(other).beyond(other)) == other.merge(held)


def test_an_answer_holds_what_was_added() -> None:
    """The caller has what it sent; sending it back could push other entries over the bound."""
    token = otel_context.attach(PROPAGATOR.extract(sent(Lineage([POST]))))
    try:
        antipode.append(USER)
        headers: dict[str, str] = {}
        antipode.propagation.inject_response(headers)
    finally:
        otel_context.detach(token)
    assert antipode.deserialize(headers["antipode-lineage"]) == Lineage([USER])


def test_an_answer_that_adds_nothing_says_so() -> None:
    """One byte tells a service that added nothing from one whose answer lost its header."""
    token = otel_context.attach(PROPAGATOR.extract(sent(Lineage([POST]))))
    try:
        headers: dict[str, str] = {}
        antipode.propagation.inject_response(headers)
    finally:
        otel_context.detach(token)
    assert headers == {"antipode-lineage": "1"}


def test_writes_after_the_response_are_counted() -> None:
    """Whoever got the response does not depend on them, so they never pass unseen."""
    with antipode.scope():
        antipode.append(POST)
        antipode.propagation.inject_response({})
        before = antipode.telemetry.metrics().get(
            antipode.telemetry.Metric("after_response_write", "users"), 0
        )
        antipode.append(USER)
    assert (
        antipode.telemetry.metrics()[antipode.telemetry.Metric("after_response_write", "users")]
        == before + 1
    )


def test_running_branches_travel() -> None:
    """A lineage that leaves while branches of its request still write says how many."""
    with antipode.scope() as scope:
        scope.began()
        scope.began()
        assert antipode.deserialize(scope.text()).open_branches == 2
        assert antipode.deserialize(scope.answer()).open_branches == 2
        scope.finished()
        scope.finished()
        assert antipode.deserialize(scope.text()).open_branches == 0


@pytest.mark.parametrize(
    ("headers", "left"),
    [
        ({"baggage": "antipode=1"}, {}),
        (
            {"Baggage": "a=1, antipode=1~x;p=1,b=2", "Host": "h"},
            {"Baggage": "a=1,b=2", "Host": "h"},
        ),
        ({"Antipode-Lineage": "1", "antipode-sent": "1"}, {}),
        (
            {"baggage": "antipodes=1", "x-antipode": "1"},
            {"baggage": "antipodes=1", "x-antipode": "1"},
        ),
    ],
)
def test_strip_takes_lineages_alone(headers: dict[str, str], left: dict[str, str]) -> None:
    """A gateway takes lineages out of headers in any case; everybody else's members stay."""
    antipode.propagation.strip(headers)
    assert headers == left


def test_a_request_whose_lineage_was_taken_out_is_incomplete() -> None:
    """A proxy that removes baggage must not turn a lineage into an empty one."""
    held = PROPAGATOR.extract({"antipode-sent": "1", "baggage": "tenant=a"})
    assert antipode.current(context=held).incomplete == {("baggage", "stripped")}


def test_what_is_serialised_says_which_branches_run() -> None:
    """A lineage that is sent by hand is a prefix as well, and says so."""
    with antipode.scope() as scope:
        scope.began()
        assert antipode.deserialize(antipode.serialize()).open_branches == 1
        assert antipode.current().open_branches == 0
