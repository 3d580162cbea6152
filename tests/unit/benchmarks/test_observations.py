"""What the post-notification benchmark makes of the services' records."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.post_notification._observations import Observation, Observations
from benchmarks.post_notification._result import OUTCOMES, RoundSummary, verdict
from benchmarks.post_notification._run import Round

MS = 1_000_000


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


def test_a_violation_stays_one_whatever_fails_after_it() -> None:
    """An error that comes later never turns a wrong read into a failed request."""
    gathered = Observations()
    gathered.expect(Observation("a", "new", "none", warmup=False))
    gathered.take({"event": "read", "id": "a", "outcome": "violation", "version": 0})
    gathered.take({"event": "sent", "id": "a", "error": "post-upload: reset"})
    (found,) = gathered.of("none", "new")
    assert found.outcome == "violation"
    assert found.error == "post-upload: reset"


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
    summary = RoundSummary.of(Round("barrier", "new", gathered.of("barrier", "new")))
    assert summary.requests == 1
    assert summary.outcomes[outcome] == 1
    assert summary.lost == 1


def test_what_was_never_heard_of_is_missing_not_dropped() -> None:
    """A notification that never arrives is one request without an answer."""
    found = [Observation("a", "new", "barrier", warmup=False)]
    assert RoundSummary.of(Round("barrier", "new", found)).outcomes["missing"] == 1


def test_warmup_is_counted_apart() -> None:
    """A violation of the warm-up is reported, and in no figure of the measured requests."""
    early = observation(warmup=True, outcome="violation")
    summary = RoundSummary.of(Round("barrier", "new", [early, observation()]))
    assert summary.requests == 1
    assert summary.violations == 0
    assert summary.warmup["violation"] == 1


def summary_of(strategy: str, **counts: int) -> RoundSummary:
    """A summary with these outcomes."""
    found = [
        observation(strategy=strategy, outcome=outcome)
        for outcome in OUTCOMES
        for _ in range(counts.get(outcome, 0))
    ]
    return RoundSummary.of(Round(strategy, "new", found))  # type: ignore[arg-type]


def test_the_share_of_violations_has_its_interval() -> None:
    """Requests without an answer are in neither number of it."""
    share = summary_of("none", violation=10, consistent=30, failed=60).violation_share
    assert share is not None
    assert share["share"] == pytest.approx(0.25)
    assert (share["low"], share["high"]) == pytest.approx((0.142, 0.402), abs=0.001)
    assert summary_of("none", failed=3).violation_share is None


def test_a_violation_with_the_barrier_fails_the_run() -> None:
    """One is enough, and without the barrier any number is none."""
    assert verdict([summary_of("barrier", consistent=2999, violation=1)])[0] == 1
    assert verdict([summary_of("none", violation=9)])[0] == 0
    assert verdict([summary_of("none", violation=9), summary_of("barrier", consistent=9)])[0] == 0


def test_an_early_return_fails_the_run() -> None:
    """Even if the read that followed happened to be consistent."""
    early = observation(passed_ns=1099 * MS)
    assert verdict([RoundSummary.of(Round("barrier", "new", [early]))])[0] == 1


def test_a_run_without_answers_does_not_pass() -> None:
    """Timed-out barriers are no violations, and no proof of anything."""
    status, said = verdict([summary_of("barrier", consistent=90, timed_out=10)])
    assert status == 3
    assert "10 of 100" in said


def test_requests_without_an_answer_exclude_nothing() -> None:
    """The confidence comes from the reads that were made."""
    assert summary_of("barrier", timed_out=3000).not_excluded == 1.0
    assert summary_of("barrier", consistent=3000).not_excluded == pytest.approx(0.001)
