"""Deferral without a broker: what is kept of a message, how long it waits, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antipode import BarrierResult, ConfigurationError, Status, WriteId
from antipode.shim import Outcome
from antipode_shims.rabbitmq._consumers import delays as _delays
from antipode_shims.rabbitmq._consumers.consumer_options import (
    BY_REJECTION,
    ConsumerOptions,
    hopeless,
)
from antipode_shims.rabbitmq._consumers.delays import SPARE_S, Delays, Leases, within
from antipode_shims.rabbitmq._consumers.envelope import DEAD, DEFERRED, Envelope, why, why_failed

NAMES = st.sampled_from(
    ["mine", "baggage", "antipode-write", "CC", "BCC", "x-death", "x-first-death-queue", "x-mine"]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.integers() | st.text(max_size=5) | st.booleans() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
HEADERS = st.none() | st.dictionaries(NAMES, VALUES, min_size=1)
TEXTS = st.text(max_size=10)
ENVELOPES = st.builds(Envelope, HEADERS, TEXTS, TEXTS, st.none() | TEXTS, st.none() | TEXTS)
#: What a broker adds when a message expires in a delay queue.
DEATH = {"x-death": [{"count": 1}], "x-first-death-queue": "q", "x-last-death-reason": "expired"}
LOST = Outcome(WriteId("posts", "log", 7, 498_669), Status.LOST)


def delivered(headers: dict[str, Any], message_id: str | None) -> Envelope:
    """What a consumer gets of a message that was published with these headers to a queue."""
    return Envelope({**headers, **DEATH}, "", "work", None, message_id or "made up")


@given(ENVELOPES, st.integers(1, 5))
def test_a_message_is_the_same_after_any_number_of_deferrals(
    original: Envelope, times: int
) -> None:
    """Whatever its headers, the brokers' ones included, only the attempts are counted."""
    held = original.opened()
    assert held == original
    for _ in range(times):
        headers = held.deferred()
        assert not {"CC", "BCC", "x-death", "x-first-death-queue"} & headers.keys()
        held = delivered(headers, held.message_id).opened()
    assert held == Envelope(
        original.headers,
        original.exchange,
        original.routing_key,
        original.expiration,
        original.message_id,
        attempts=times,
        until_ms=headers[DEFERRED].get("until"),
    )


@given(ENVELOPES)
def test_a_dead_letter_that_is_moved_back_is_the_message(original: Envelope) -> None:
    """Without attempts, and without what it died of."""
    headers = original.dead({"reason": "dependency_lost"}, "work")
    assert headers[DEAD]["attempts"] == 1
    assert delivered(headers, original.message_id).opened() == original


@given(st.dictionaries(NAMES | st.sampled_from([DEFERRED, DEAD]), VALUES))
def test_whatever_our_headers_hold_they_are_read(headers: dict[str, Any]) -> None:
    """Anybody may forge them: no error, and no negative number of attempts."""
    opened = Envelope(headers, "e", "k").opened()
    assert opened.attempts >= 0
    assert isinstance(opened.exchange, str)
    assert opened.deferred()[DEFERRED]["attempts"] == opened.attempts + 1


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "headers": VALUES,
            "attempts": VALUES,
            "exchange": VALUES,
            "expiration": VALUES,
            "message_id": VALUES,
            "until": VALUES,
        },
    )
)
def test_whatever_the_table_holds_it_is_read(table: dict[str, Any]) -> None:
    """A table of the right type with anything in it."""
    opened = Envelope({DEFERRED: table}, "e", "k").opened()
    assert opened.attempts >= 0
    assert opened.expiration is None or isinstance(opened.expiration, str)
    assert DEFERRED not in (opened.headers or {}) or "headers" in table


def test_a_time_to_live_goes_on_through_deferrals() -> None:
    """It is counted from the first delivery, by the worker's clock."""
    held = Envelope(None, "e", "k", "600", at_ms=1_000)
    assert not held.expired
    for at_ms, over in ((1_100, False), (1_599, False), (1_600, True)):
        held = Envelope({**held.deferred(), **DEATH}, "", "work", at_ms=at_ms).opened()
        assert (held.until_ms, held.expired, held.expiration) == (1_600, over, "600")


@pytest.mark.parametrize("text", ["", "-1", "soon", "9" * 400])
def test_a_time_to_live_that_is_none_does_not_expire(text: str) -> None:
    """Such as brokers refuse, in a header that is forged."""
    held = Envelope({DEFERRED: {"expiration": text}}, "", "work").opened()
    assert held.expiration == text
    assert "until" not in held.deferred()[DEFERRED]


def test_what_was_rejected_begins_anew() -> None:
    """Moved back into its queue, whatever it had of attempts and of time is as at first."""
    headers = Envelope(None, "e", "k", "600", attempts=4).deferred()
    rejected = {"x-death": [{"reason": "rejected", "queue": "work"}]}
    held = Envelope({**headers, **rejected}, "", "work", at_ms=9_000).opened()
    assert (held.attempts, held.expired, held.exchange) == (0, False, "e")
    assert held.deferred()[DEFERRED]["until"] == 9_600


def test_counts_of_one_queue_are_not_taken_to_another() -> None:
    """``x-delivery-count`` is of the queue that delivered; a quorum queue would go on from it."""
    envelope = Envelope({"x-delivery-count": 3, "a": 1}, "e", "k")
    assert set(envelope.deferred()) == {"a", DEFERRED}


@given(st.floats(0.001, 10), st.floats(1, 1000), st.integers(0, 100), st.none() | st.floats(0, 1e9))
def test_a_delay_grows_within_bounds(
    least_s: float, factor: float, attempts: int, eta_s: float | None
) -> None:
    """Not below what the store estimates, nor below the delay before; few delays in all."""
    most_s = min(least_s * factor, 86_400.0)
    delays = Delays("q", least_s, most_s)
    picked = delays.pick_ms(eta_s, attempts)
    assert round(least_s * 1000) <= picked <= round(most_s * 1000)
    assert picked >= round(min(eta_s or 0, most_s) * 1000)
    assert delays.pick_ms(eta_s, attempts + 1) >= picked
    possible = {delays.pick_ms(e, a) for e in (None, eta_s) for a in range(40)}
    assert len(possible) <= 12


@pytest.mark.parametrize("eta_s", [float("nan"), float("inf"), -1.0])
def test_an_estimate_that_is_none_is_not_used(eta_s: float) -> None:
    """A store's odd answer neither fails nor puts a message off for a day."""
    assert Delays("q", 0.1, 30).pick_ms(eta_s, 0) == 100


@pytest.mark.parametrize(
    "bounds", [(0, 1), (1, 0.5), (-1, 1), (1, 1e6), (float("nan"), 1), (1, float("nan"))]
)
def test_delays_that_are_none_are_refused(bounds: tuple[float, float]) -> None:
    """Not positive, the wrong way round, or longer than a day."""
    with pytest.raises(ConfigurationError, match="delay_s"):
        Delays("q", *bounds)


def test_a_delay_queue_is_named_after_what_it_is_declared_with() -> None:
    """Queue, delay and further arguments; names fit into what a broker takes."""
    plain, quorum = Delays("q", 0.1, 1), Delays("q", 0.1, 1, {"x-queue-type": "quorum"})
    assert plain.name(100) == "antipode.delay.100.q"
    names = {d.name(ms) for d in (plain, quorum, Delays("r", 0.1, 1)) for ms in (100, 200)}
    assert len(names) == 6
    long = [Delays("ä" * 120 + end, 0.1, 1).name(100) for end in "ab"]
    assert all(len(name.encode()) <= 255 for name in long)
    assert len(set(long)) == 2
    assert within("short") == "short"
    assert quorum.declared(100) == {
        "x-queue-type": "quorum",
        "x-message-ttl": 100,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "q",
        "x-expires": 600_100,
    }


def test_a_delay_queue_is_declared_again_before_it_could_expire() -> None:
    """After half of the spare time it is; a confirm that came in the last tenth is not trusted."""
    now_s = [100.0]
    leases = Leases(monotonic=lambda: now_s[0])
    assert not leases.fresh("q")
    assert not leases.sure("q")
    leases.begin("q", 100.0)
    for share, fresh, sure in ((0.4, True, True), (0.6, False, True), (0.95, False, False)):
        now_s[0] = 100 + SPARE_S * share
        assert (leases.fresh("q"), leases.sure("q")) == (fresh, sure)
    leases.begin("q", now_s[0])
    assert leases.fresh("q")
    leases.end("q")
    assert not leases.fresh("q")
    assert _delays.SPARE_S > 60


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"queue": ""}, "queue"),
        ({"datastore": ""}, "datastore"),
        ({"on_unmet": "block"}, "on_unmet"),
        ({"on_error": "ignore"}, "on_error"),
        ({"on_unmet": "wait"}, "timeout="),
        ({"timeout": 1.0}, "timeout="),
        ({"max_attempts": 0}, "max_attempts"),
        ({"prefetch": 70_000}, "prefetch"),
        ({"delay_s": (2, 1)}, "delay_s"),
    ],
)
def test_terms_that_cannot_be_kept_are_refused(wrong: dict[str, Any], said: str) -> None:
    """Each mistake is named where it is made."""
    with pytest.raises(ConfigurationError, match=said):
        ConsumerOptions(**{"queue": "q", "datastore": "news", **wrong})


def test_where_dead_letters_go() -> None:
    """To the queue that is named, to one after the work queue, or to nobody knows where."""
    assert ConsumerOptions("q", "news").grave == "antipode.dead.q"
    assert ConsumerOptions("q", "news", dead_letter="mine").grave == "mine"
    assert ConsumerOptions("q", "news", dead_letter=BY_REJECTION).grave is None
    assert repr(BY_REJECTION) == "rabbitmq.BY_REJECTION"


def test_how_many_messages_may_wait() -> None:
    """One of those that are sent ahead is always being looked at; by default none waits."""
    assert ConsumerOptions("q", "news", prefetch=5).waiting == 0
    waits = ConsumerOptions("q", "news", on_unmet="wait", timeout=1, prefetch=5)
    assert waits.waiting == 4
    assert not waits.spent(18)
    assert waits.spent(19)


def test_why_a_message_died_fits_into_its_headers() -> None:
    """What is unmet comes first; of thousands of outcomes as many as there is room for."""
    visible = [
        Outcome(WriteId("posts", "k" * 2_000, number, 498_669), Status.VISIBLE)
        for number in range(1_000)
    ]
    found = why(BarrierResult((*visible, LOST), incomplete=frozenset()))
    assert found["reason"] == "dependency_lost"
    assert found["outcomes"][0] == str(LOST)
    assert sum(map(len, found["outcomes"])) < 20_000
    assert found["outcomes"][-1] == f"and {1_001 - len(found['outcomes']) + 1} more"
    assert len(why_failed(LookupError("x" * 5_000))["message"]) == 500


def test_what_is_hopeless() -> None:
    """All that waiting cannot change; what is not visible yet is not."""
    assert hopeless(BarrierResult((LOST,)))
    assert not hopeless(BarrierResult((Outcome(LOST.write, Status.NOT_YET),)))
    assert not hopeless(BarrierResult((Outcome(LOST.write, Status.UNREACHABLE),)))
    assert hopeless(BarrierResult((Outcome(LOST.write, Status.UNKNOWN_LOG),)))
