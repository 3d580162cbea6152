"""What a call carries after the user took the member away, and by what its service is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import baggage
from opentelemetry import context as otel_context

import antipode
from antipode import Lineage, WriteId
from antipode._runtime import observers
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


class Observer:
    """Notes who answered without a lineage, and nothing else.

    Attributes:
        silent: these services.
    """

    def __init__(self) -> None:
        self.silent: list[str] = []

    def called(self, _: object, service: str) -> None:
        """One did."""
        self.silent.append(service)

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


@pytest.mark.parametrize(
    ("host", "settings", "told"),
    [
        ("users", {}, True),
        ("users.internal", {}, True),
        ("api.example.com", {}, False),
        ("api.example.com", {"egress_hosts": ["api.example.com"]}, True),
        ("api.example.com", {"peers": {"api.example.com": "always"}}, True),
        ("users.internal", {"peers": {"users.internal": "never"}}, False),
    ],
)
def test_whose_silence_a_dry_run_reports(
    host: str, settings: Any, monkeypatch: pytest.MonkeyPatch, *, told: bool
) -> None:
    """That of services of one's own: of somebody else's no lineage is expected."""
    antipode.configure(**settings)
    with antipode.scope(Lineage([WriteId("posts", "log", 1)])):
        observer = Observer()
        monkeypatch.setattr(observers, "dry_run", observer)
        Outgoing("users", host).answered(None)
    assert observer.silent == (["users"] if told else [])
