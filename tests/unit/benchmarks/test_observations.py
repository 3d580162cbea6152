"""What the post-notification benchmark makes of the services' records."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import pytest

from benchmarks.post_notification._observations import Observation, Observations
from benchmarks.post_notification._result import OUTCOMES, RoundSummary, verdict
from benchmarks.post_notification._run import Round

MS = 1_000_000


def round_of(strategy: str, *found: Observation) -> Round:
    """A round of these."""
    return Round(strategy, "new", 100, list(found))  # type: ignore[arg-type]


def observation(**known: Any) -> Observation:
    """An observation of a barrier that waited for 100 ms, changed by *known*."""
    fields: dict[str, Any] = {
        "id": "1-new-0",
        "kind": "new",
        "strategy": "barrier",
        "warmup": False,
        "outcome": "consistent",
        "begun_ns": 998 * MS,
        "acknowledged_ns": 1000 * MS,
        "received_ns": 1004 * MS,
        "barrier_ns": 1005 * MS,
        "unseen_ns": 1100 * MS,
        "seen_ns": 1101 * MS,
        "passed_ns": 1102 * MS,
        "read_ns": 1103 * MS,
        "done_ns": 1105 * MS,
    }
    return Observation(**{**fields, **known})


def test_overshoot_counts_from_the_last_look_that_did_not_show_the_write() -> None:
    """It became visible no earlier, so the overshoot is never flattered."""
    assert observation().overshoot_ms == pytest.approx(2.0)
    assert observation().granularity_ms == pytest.approx(1.0)


def test_a_barrier_that_had_nothing_to_wait_for_has_no_overshoot() -> None:
    """Called after the write was seen, it says nothing about waiting."""
    assert observation(barrier_ns=1101 * MS).overshoot_ms is None


def test_a_barrier_is_early_when_a_later_look_does_not_show_the_write() -> None:
    """A look that began after the barrier returned and found nothing proves it wrong."""
    assert observation(passed_ns=1099 * MS).early
    assert not observation().early


def test_a_read_at_the_barrier_is_early_when_a_later_look_does_not_show_the_write() -> None:
    """Where the barrier is part of the read: it was no read of the replica that is looked at."""
    whole: dict[str, Any] = {"strategy": "at-read", "barrier_ns": None, "passed_ns": None}
    assert observation(**whole, done_ns=1099 * MS).early
    assert not observation(**whole).early
    for at_primary in ("primary", "routed"):
        assert not observation(**{**whole, "strategy": at_primary}, done_ns=1050 * MS).early


def test_who_came_early_would_have_read_wrong() -> None:
    """As a look that began later proves; between two looks nobody knows."""
    assert observation().exposed
    assert observation().trial.waited
    assert observation(strategy="none", barrier_ns=None).exposed
    assert not observation(barrier_ns=1100 * MS).exposed
    assert observation().wait_ms == pytest.approx(97.0)
    assert observation(barrier_ns=1100 * MS).wait_ms is None


def test_the_window_lasts_until_the_reader_has_an_answer_that_is_not_wrong() -> None:
    """One definition for all strategies: a wrong answer counts until the write was visible."""
    assert observation().window_ms == pytest.approx(107.0)
    hasty = observation(strategy="none", read_ns=1004 * MS, done_ns=1006 * MS, outcome="violation")
    assert hasty.window_ms == pytest.approx(103.0)
    assert hasty.attempt_ms == pytest.approx(6.0)


def test_the_window_of_a_primary_read_does_not_wait_for_the_replica() -> None:
    """Its reader has the post as soon as the answer has crossed the link."""
    far = observation(strategy="primary", done_ns=1050 * MS)
    assert far.window_ms == pytest.approx(52.0)


def test_the_window_of_a_synchronous_write_begins_before_its_acknowledgement() -> None:
    """Who waits for the replica before the notification is sent has not made the window short."""
    slow = observation(strategy="synchronous", acknowledged_ns=1102 * MS)
    assert slow.window_ms == pytest.approx(107.0)
    assert slow.lag_ms == pytest.approx(-1.0)


def test_the_parts_of_a_read_are_told_apart() -> None:
    """The call, a barrier with nothing to wait for, and the read; one that waited is not idle."""
    idle = observation(seen_ns=1005 * MS, unseen_ns=1000 * MS, passed_ns=1006 * MS)
    assert (idle.arrive_ms, idle.idle_ms, idle.fetch_ms) == pytest.approx((1.0, 1.0, 2.0))
    assert observation().idle_ms is None


def test_a_violation_stays_one_whatever_fails_after_it() -> None:
    """An error that comes later never turns a wrong read into a failed request."""
    gathered = Observations()
    gathered.expect(Observation("a", "new", "none", warmup=False))
    gathered.take({"event": "read", "id": "a", "outcome": "violation", "version": 0})
    gathered.take({"event": "sent", "id": "a", "error": "post-upload: reset"})
    (only,) = gathered.of("new", 0)
    assert only.outcome == "violation"
    assert only.error == "post-upload: reset"


@pytest.mark.parametrize(
    ("record", "outcome"),
    [
        ({"event": "sent", "error": "refused"}, "failed"),
        ({"event": "read", "outcome": "timed_out", "error": "BarrierTimeout"}, "timed_out"),
        ({"event": "undelivered", "error": "refused"}, "failed"),
    ],
)
def test_requests_that_fail_are_counted(record: dict[str, Any], outcome: str) -> None:
    """Whatever goes wrong, the request stays in the denominator under a name of its own."""
    gathered = Observations()
    gathered.expect(Observation("a", "new", "barrier", warmup=False))
    gathered.take({**record, "id": "a"})
    summary = RoundSummary.of(round_of("barrier", *gathered.of("new", 0)))
    assert summary.requests == 1
    assert summary.outcomes[outcome] == 1
    assert summary.lost == 1


def test_what_was_never_heard_of_is_missing_not_dropped() -> None:
    """A notification that never arrives is one request without an answer."""
    missing = Observation("a", "new", "barrier", warmup=False)
    assert RoundSummary.of(round_of("barrier", missing)).outcomes["missing"] == 1


def test_warmup_is_counted_apart() -> None:
    """A violation of the warm-up is reported, and in no figure of the measured requests."""
    early = observation(warmup=True, outcome="violation")
    summary = RoundSummary.of(round_of("barrier", early, observation()))
    assert summary.requests == 1
    assert summary.violations == 0
    assert summary.warmup["violation"] == 1


def found(strategy: str, **counts: int) -> Round:
    """A round with these outcomes."""
    return round_of(
        strategy,
        *(
            observation(strategy=strategy, outcome=outcome)
            for outcome in OUTCOMES
            for _ in range(counts.get(outcome, 0))
        ),
    )


def test_the_share_of_violations_is_of_answers() -> None:
    """Requests without one are in neither number of it; what the lags dictate has no interval."""
    summary = RoundSummary.of(found("none", violation=10, consistent=30, failed=60))
    assert summary.violation_share == pytest.approx(0.25)
    assert RoundSummary.of(found("none", failed=3)).violation_share is None


BARE = found("none", violation=9)


def test_a_violation_with_the_barrier_fails_the_run() -> None:
    """One is enough, and without the barrier any number is none."""
    assert verdict([BARE, found("barrier", consistent=2999, violation=1)]).status == 1
    assert verdict([BARE]).status == 0
    assert verdict([BARE, found("barrier", consistent=9)]).status == 0


def test_an_early_return_fails_the_run() -> None:
    """Even if the read that followed happened to be consistent."""
    early = observation(passed_ns=1099 * MS)
    assert verdict([BARE, round_of("barrier", early)]).status == 1


def test_the_warmup_is_not_judged() -> None:
    """What a service does with its first request is no figure."""
    early = observation(passed_ns=1099 * MS, warmup=True)
    assert verdict([BARE, round_of("barrier", early, observation())]).status == 0


def test_a_run_without_answers_does_not_pass() -> None:
    """Timed-out barriers are no violations, and no proof of anything."""
    status, said = astuple(verdict([BARE, found("barrier", consistent=90, timed_out=10)]))
    assert status == 3
    assert "10 of 100" in said


def test_requests_without_an_answer_exclude_nothing() -> None:
    """The confidence comes from the reads that were made."""
    assert RoundSummary.of(found("barrier", timed_out=3000)).not_excluded == 1.0
    assert RoundSummary.of(found("barrier", consistent=3000)).not_excluded == pytest.approx(0.001)


def test_medians_are_of_blocks() -> None:
    """As sure as the blocks make them, however many requests each has."""
    slow = [
        observation(block=block, done_ns=(1105 + block) * MS) for block in range(5) for _ in "many"
    ]
    window = RoundSummary.of(round_of("barrier", *slow)).medians["window_ms"]
    assert window is not None
    assert (window.value, window.low, window.high) == pytest.approx((109, 107.04, 110.96), abs=0.01)
    assert RoundSummary.of(round_of("barrier", *slow[:16])).medians["window_ms"] is None


def test_means_are_of_all_blocks() -> None:
    """Each block counts by its requests; what one does not tell nobody knows."""
    whole = Round("none", "new", 100)
    whole.add([observation()] * 3, {"calls": 1.0}, {"commands": 2.0, "bytes": 1.0}, {"commands": 0})
    whole.add([observation()], {"calls": 5.0}, {"commands": 6.0, "bytes": None}, {"commands": 8})
    assert whole.sizes == {"calls": 2.0}
    assert whole.replica == {"commands": 2.0}
    assert whole.primary == {"commands": 3.0, "bytes": None}
