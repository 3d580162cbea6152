"""What a call carries after the user took the member away, and by what its service is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from opentelemetry import baggage
from opentelemetry import context as otel_context

import antipode
from antipode.integrations._outgoing import Outgoing, forget_services
from antipode.shim import Incomplete

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _strangers() -> Iterator[None]:
    """No service has been heard of, before and after."""
    forget_services()
    yield
    forget_services()


def test_cleared_baggage_carries_nothing() -> None:
    """Who clears the baggage stops sending the lineage; the scope still takes the answer in."""
    with antipode.scope() as held:
        token = otel_context.attach(baggage.clear())
        try:
            call = Outgoing("users", "users.internal")
            assert (call.text, call.baggage("a=b")) == ("", None)
            call.failed()
        finally:
            otel_context.detach(token)
        assert held.lineage.incomplete == {Incomplete("users", "in_doubt")}


def test_a_service_is_remembered_by_its_peer() -> None:
    """Two fleets of one service answer for themselves: marks still name the service."""
    with antipode.scope() as held:
        Outgoing("users", "a", peer="a users").answered("1")
        Outgoing("users", "b", peer="b users").answered(None)
        Outgoing("users", "b", peer="b users").failed()
        assert not held.lineage.incomplete
        Outgoing("users", "a", peer="a users").answered(None)
        assert held.lineage.incomplete == {Incomplete("users", "in_doubt")}


def test_an_outcome_judged_later_is_in_what_is_read_next() -> None:
    """A finaliser leaves its judgement without a lock; whoever looks finds it in place."""
    with antipode.scope() as held:
        call = Outgoing("users", "users.internal")
        call.began()

        def judge() -> None:
            call.finished()
            call.failed()

        with held._lock:
            call.later(judge)
        assert antipode.deserialize(held.text()).incomplete == {Incomplete("users", "in_doubt")}
        assert not antipode.deserialize(held.text()).open_branches
