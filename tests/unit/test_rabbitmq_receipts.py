"""The rules of receipts, without a broker: what may be called visible, and what never is."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antipode import ConfigurationError, Promise, Status, WriteId
from antipode.shim import PROMISE_GRACE_S, Wake
from antipode_shims._messages import ledger as ledger_module
from antipode_shims._messages.ledger import MAX_AHEAD, SKEW_S, Ledger
from antipode_shims._messages.publisher import (
    MAX_OPEN,
    ROLL_S,
    Publications,
    birth_s,
    new_incarnation,
)
from antipode_shims._messages.receipts import ReceiptsEndpoint
from antipode_shims.rabbitmq import Receipts

GAP_S = 5.0
START_S = 1_800_000_000.0


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = START_S

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(clock: Clock) -> Ledger:
    return Ledger(gap_age_s=GAP_S, monotonic=clock, wall=clock)


def born(after_s: float) -> str:
    """A publisher that began so many seconds after the reader."""
    return new_incarnation(START_S + after_s)


YOUNG_S = 60.0


def write(key: str, sequence: int) -> WriteId:
    return WriteId("news", key, sequence)


def status(ledger: Ledger, one: WriteId) -> Status:
    return ledger.judge([one])[one][0]


def test_a_contiguous_prefix_is_visible(ledger: Ledger) -> None:
    """What was seen with everything before it is visible; the next is not yet."""
    key = born(YOUNG_S)
    for sequence in (1, 2, 3):
        ledger.see(write(key, sequence))
    assert status(ledger, write(key, 3)) is Status.VISIBLE
    assert status(ledger, write(key, 1)) is Status.VISIBLE
    assert status(ledger, write(key, 4)) is Status.NOT_YET


def test_a_publication_beyond_a_gap_is_not_visible(ledger: Ledger, clock: Clock) -> None:
    """Number 3 without number 2 is not yet, after a while undecidable, and mended by number 2."""
    key = born(YOUNG_S)
    ledger.see(write(key, 1))
    ledger.see(write(key, 3))
    assert status(ledger, write(key, 3)) is Status.NOT_YET
    assert status(ledger, write(key, 2)) is Status.NOT_YET
    clock.now_s += GAP_S
    for sequence in (2, 3, 4):
        found, cause = ledger.judge([write(key, sequence)])[write(key, sequence)]
        assert found is Status.UNDECIDABLE
        assert "never arrived" in cause
    assert status(ledger, write(key, 1)) is Status.VISIBLE
    ledger.see(write(key, 2))
    assert status(ledger, write(key, 3)) is Status.VISIBLE


@given(st.lists(st.integers(1, 12), max_size=40), st.integers(1, 12))
def test_visible_means_seen_with_all_before(arrivals: list[int], asked: int) -> None:
    """For every order, repetition and loss: visible if and only if 1 to n were all seen."""
    ledger = Ledger(gap_age_s=GAP_S)
    key = born(YOUNG_S)
    for sequence in arrivals:
        ledger.see(write(key, sequence))
    assert (status(ledger, write(key, asked)) is Status.VISIBLE) == (
        set(range(1, asked + 1)) <= set(arrivals)
    )


def test_publishers_are_judged_alone(ledger: Ledger) -> None:
    """What one publisher sent proves nothing about another's."""
    one, other = born(YOUNG_S), born(YOUNG_S)
    ledger.see(write(one, 1))
    assert status(ledger, write(one, 1)) is Status.VISIBLE
    assert status(ledger, write(other, 1)) is Status.NOT_YET


def test_a_publisher_from_before_is_an_unknown_log(ledger: Ledger, clock: Clock) -> None:
    """Nothing was heard of a publisher older than the reader: after a while, unknown log."""
    old = write(born(-YOUNG_S), 3)
    assert status(ledger, old) is Status.NOT_YET
    clock.now_s += GAP_S
    found, cause = ledger.judge([old])[old]
    assert found is Status.UNKNOWN_LOG
    assert "before this process listened" in cause


def test_a_publisher_from_before_leaves_a_gap(ledger: Ledger, clock: Clock) -> None:
    """Its first message that is heard has a number above 1: it never passes for visible."""
    key = born(-YOUNG_S)
    ledger.see(write(key, 8))
    assert status(ledger, write(key, 8)) is Status.NOT_YET
    clock.now_s += GAP_S
    assert status(ledger, write(key, 8)) is Status.UNDECIDABLE


def test_a_younger_publisher_is_waited_for(ledger: Ledger, clock: Clock) -> None:
    """A publisher that began after the reader cannot have been missed: not yet, however long."""
    key = born(SKEW_S + 1)
    assert status(ledger, write(key, 1)) is Status.NOT_YET
    clock.now_s += 1000 * GAP_S
    assert status(ledger, write(key, 1)) is Status.NOT_YET


def test_a_publisher_that_ended_long_before_is_told_at_once(ledger: Ledger) -> None:
    """It can have nothing on its way any more: an unknown log without waiting."""
    old = born(-ROLL_S - SKEW_S - GAP_S - 1)
    assert status(ledger, write(old, 1)) is Status.UNKNOWN_LOG
    assert status(ledger, write(born(-ROLL_S), 1)) is Status.NOT_YET


def test_a_key_that_states_no_birth_is_an_unknown_log(ledger: Ledger) -> None:
    """Keys of others, forged ones included, never become visible by default."""
    for key in (str(uuid.uuid4()), "not-a-uuid", ""):
        assert status(ledger, write(key, 1)) is Status.UNKNOWN_LOG
    assert status(ledger, WriteId("news", born(YOUNG_S), "text")) is Status.UNDECIDABLE


def test_listening_anew_admits_what_may_have_passed(ledger: Ledger, clock: Clock) -> None:
    """After a lost connection: seen stays seen, the next in line is fine, the rest undecidable."""
    key = born(YOUNG_S)
    ledger.see(write(key, 1))
    ledger.listening()
    assert status(ledger, write(key, 1)) is Status.VISIBLE
    assert status(ledger, write(key, 2)) is Status.NOT_YET
    clock.now_s += GAP_S
    found, cause = ledger.judge([write(key, 2)])[write(key, 2)]
    assert found is Status.UNDECIDABLE
    assert "connection" in cause
    ledger.see(write(key, 2))
    assert status(ledger, write(key, 2)) is Status.VISIBLE


def test_a_received_message_is_visible_and_implies_nothing(ledger: Ledger) -> None:
    """The message itself is visible here; an earlier one on which it depends is not thereby."""
    key = born(YOUNG_S)
    ledger.deliver(write(key, 7), after=0)
    assert status(ledger, write(key, 7)) is Status.VISIBLE
    assert status(ledger, write(key, 6)) is Status.NOT_YET
    other = born(YOUNG_S)
    ledger.deliver(write(other, 7), after=5)
    assert status(ledger, write(other, 7)) is Status.NOT_YET
    for sequence in range(1, 6):
        ledger.see(write(other, sequence))
    assert status(ledger, write(other, 7)) is Status.VISIBLE
    assert status(ledger, write(other, 6)) is Status.NOT_YET


def test_memory_is_bounded_and_forgetting_is_admitted(
    ledger: Ledger, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over the bound the publisher heard first is forgotten: an unknown log, not a pass."""
    monkeypatch.setattr(ledger_module, "MAX_PUBLISHERS", 3)
    keys = [born(YOUNG_S + n) for n in range(4)]
    clock.now_s += 2 * YOUNG_S
    for key in keys:
        ledger.see(write(key, 1))
    assert len(ledger._publishers) == 3
    assert [status(ledger, write(key, 1)) for key in keys[1:]] == [Status.VISIBLE] * 3
    clock.now_s += GAP_S
    status(ledger, write(keys[0], 1))
    clock.now_s += GAP_S
    assert status(ledger, write(keys[0], 1)) is Status.UNKNOWN_LOG


def test_endless_holes_are_bounded(ledger: Ledger) -> None:
    """A flood of numbers with holes keeps a bounded set, and is undecidable at once."""
    key = born(YOUNG_S)
    ledger.see(write(key, 1))
    for sequence in range(3, 3 + 4 * MAX_AHEAD, 2):
        ledger.see(write(key, sequence))
    assert len(ledger._publishers[key].ahead) <= MAX_AHEAD
    assert status(ledger, write(key, 2)) is Status.UNDECIDABLE
    assert status(ledger, write(key, 1)) is Status.VISIBLE


def test_what_was_asked_and_delivered_is_bounded(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions and deliveries are remembered up to a bound."""
    monkeypatch.setattr(ledger_module, "MAX_ASKED", 10)
    key = born(YOUNG_S)
    for sequence in range(2, 200, 2):
        ledger.deliver(write(key, sequence), after=0)
        ledger.judge([write(born(YOUNG_S), 1)])
    assert len(ledger._asked) <= 10
    assert len(ledger._delivered) <= 10


def test_what_is_seen_wakes_whoever_pauses(ledger: Ledger) -> None:
    """Seen between a look and its pause, or during it: the pause ends at once."""
    endpoint = ReceiptsEndpoint(ledger, None)
    wake = Wake()
    key = born(YOUNG_S)
    endpoint.observe([write(key, 1)], timeout_s=1)
    ledger.see(write(key, 1))
    endpoint.pause(60, wake)
    endpoint.observe([write(key, 2)], timeout_s=1)
    ledger.subscribe(wake)
    ledger.see(write(key, 2))
    assert wake.is_set()
    endpoint.pause(60, wake)
    wake.close()


def test_an_incarnation_states_its_birth() -> None:
    """The key is a UUID of version 7 with the publisher's clock in it, and never the same."""
    key = new_incarnation(START_S)
    assert uuid.UUID(key).version == 7
    assert birth_s(key) == START_S
    assert new_incarnation(START_S) != key
    assert birth_s(str(uuid.uuid4())) is None


def test_publications_are_numbered_for_each_exchange() -> None:
    """One sequence for an exchange, one for each queue of the default exchange."""
    publications = Publications("news")
    first, second = publications.next("x", "a"), publications.next("x", "b")
    assert (first.version, second.version) == (1, 2)
    assert first.key == second.key
    assert publications.next("y", "a").key != first.key
    assert publications.next("", "a").key != publications.next("", "b").key
    assert publications.next("", "a").version == 2


def test_publications_can_be_numbered_for_each_routing_key() -> None:
    """With ``sequence_by="routing_key"`` a reader of one key sees no gaps."""
    publications = Publications("news", "routing_key")
    assert publications.next("x", "a").version == 1
    assert publications.next("x", "b").version == 1
    assert publications.next("x", "a").version == 2
    with pytest.raises(ConfigurationError, match="sequence_by"):
        Publications("news", "queue")  # type: ignore[arg-type]


def test_a_doubtful_publication_ends_its_incarnation() -> None:
    """What follows a refused or doubtful one has another key, beginning with 1: no hole."""
    publications = Publications("news")
    first, lost = publications.next("x", ""), publications.next("x", "")
    publications.void(lost)
    after = publications.next("x", "")
    assert after.key != first.key
    assert after.version == 1
    publications.void(lost)
    assert publications.next("x", "").key == after.key


def test_an_incarnation_lasts_a_minute(clock: Clock) -> None:
    """So long a new reader may be unable to judge a publisher, and no longer."""
    publications = Publications("news", monotonic=clock, wall=clock)
    first = publications.next("x", "")
    clock.now_s += ROLL_S
    assert publications.next("x", "").key == first.key
    clock.now_s += 1
    after = publications.next("x", "")
    assert (after.key != first.key, after.version) == (True, 1)
    assert birth_s(after.key) == clock.now_s


def test_open_incarnations_are_bounded() -> None:
    """Reply queues with names of their own do not pile up; what is dropped begins anew."""
    publications = Publications("news")
    first = publications.next("", "reply-0")
    for number in range(1, MAX_OPEN + 1):
        publications.next("", f"reply-{number}")
    assert len(publications._open) == MAX_OPEN
    assert publications.next("", "reply-0").key != first.key


@pytest.mark.parametrize(
    "options", [{"bindings": "#"}, {"bindings": ()}, {"gap_age_s": 0}, {"gap_age_s": float("inf")}]
)
def test_receipts_that_cannot_work_are_refused(options: dict[str, object]) -> None:
    """A mistake is an error where it is made."""
    with pytest.raises(ConfigurationError):
        Receipts(**options)  # type: ignore[arg-type]


def test_a_promise_that_was_not_seen_is_not_abandoned(ledger: Ledger, clock: Clock) -> None:
    """That nothing was seen is no proof: past its expiry nobody here can tell."""
    promise = Promise("news", "0" * 32, int(START_S) + 60)
    assert ledger.judge_promises([promise])[promise][0] is Status.NOT_YET
    clock.now_s += 60 + PROMISE_GRACE_S + 1
    assert ledger.judge_promises([promise])[promise][0] is Status.UNDECIDABLE
    ledger.fulfil(promise)
    assert ledger.judge_promises([promise])[promise][0] is Status.VISIBLE


def test_a_publisher_of_the_time_before_listening_anew_is_a_stranger(
    ledger: Ledger, clock: Clock
) -> None:
    """While nobody listened it may have published all that it ever did."""
    clock.now_s += 10 * ROLL_S
    ledger.listening()
    clock.now_s += 1
    assert status(ledger, write(born(5 * ROLL_S), 1)) is Status.UNKNOWN_LOG
