"""The plan of the evaluation has every pair, enough observations, and commands that make sense."""

from __future__ import annotations

import itertools

import pytest

from benchmarks.evaluation._plan import (
    APPLICATION,
    DELAYS_MS,
    FULL,
    LAG_MS,
    PROFILES,
    QUICK,
    SECTIONS,
    Run,
    Size,
    plan,
)
from benchmarks.judge import LEAST_BLOCKS
from benchmarks.post_notification import _cli
from benchmarks.post_notification._options import (
    NOTIFIERS,
    OF_DRY_RUNS,
    POST_STORAGES,
    STRATEGIES,
    Options,
)


def options_of(run: Run) -> Options:
    """What the benchmark makes of a run's arguments."""
    return _cli.parse(run.arguments)


def applications(size: Size, section: str) -> list[Run]:
    """The runs of the benchmark itself for a section."""
    return [run for run in plan(size, (section,)) if run.module == APPLICATION]


def test_every_pair_has_every_profile() -> None:
    """Table 1 leaves no cell empty."""
    found = {(run.post_storage, run.notifier, run.profile) for run in applications(FULL, "table1")}
    named = [profile.name for profile in PROFILES]
    assert found == set(itertools.product(POST_STORAGES, NOTIFIERS, named))


def test_every_pair_has_3000_reads_behind_the_barrier() -> None:
    """New posts, updates and deletes: none of them wrong excludes more than about 0.1 %."""
    for post_storage, notifier in itertools.product(POST_STORAGES, NOTIFIERS):
        chosen = [
            options_of(run)
            for run in applications(FULL, "table1")
            if (run.post_storage, run.notifier) == (post_storage, notifier)
        ]
        assert sum(each.requests for each in chosen if len(each.kinds) == 3) * 3 >= 3000
        assert all(set(each.strategies) == {"none", "barrier"} for each in chosen)


def test_profiles_spread_from_all_to_nothing() -> None:
    """By what they ask for, 100 %, 90 %, 10 % and 0 % of notifications come before the post."""
    expected = []
    for run in applications(FULL, "table1")[: len(PROFILES)]:
        told = options_of(run)
        waits = [each + told.notifier_lag_ms for each in told.notify_delays_ms or (0,)]
        expected.append(100 * sum(each < told.lags_ms[0] for each in waits) / len(waits))
    assert expected == [100, 90, 10, 0]


def test_delays_lie_on_both_sides_of_the_lag() -> None:
    """Figure 6 begins without a delay and goes well beyond the lag."""
    assert DELAYS_MS[0] == 0
    assert DELAYS_MS[-1] >= 2 * LAG_MS
    (run,) = (run for run in applications(FULL, "figure6") if run.post_storage == "redis")
    assert options_of(run).notify_delays_ms == DELAYS_MS


@pytest.mark.parametrize("size", [FULL, QUICK])
def test_names_are_of_one_run_each(size: Size) -> None:
    """No result is written over another."""
    names = [run.name for run in plan(size)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("section", SECTIONS)
def test_each_section_can_be_had_alone(section: str) -> None:
    """Some runs are for it, and all that are run for it say so."""
    chosen = plan(QUICK, (section,))
    assert chosen
    assert all(section in run.sections for run in chosen)


def test_the_full_size_takes_no_more_than_fifty_minutes() -> None:
    """On two processors, with what starting servers takes: the other benchmarks have ten."""
    assert sum(run.expected_s for run in plan(FULL)) < 50 * 60


def test_what_is_compared_is_interleaved() -> None:
    """Strategies take turns in as many blocks as anything is claimed of them for."""
    for section in ("figure6", "figure7", "strategies", "sweep"):
        assert all(options_of(run).blocks >= LEAST_BLOCKS for run in applications(FULL, section))


def test_no_strategy_is_compared_under_a_lag_that_a_sleep_could_know() -> None:
    """It wanders wherever strategies stand beside each other, and each of them is there."""
    runs = [*applications(FULL, "strategies"), *applications(FULL, "sweep")]
    assert all(options_of(run).lag_spread == 0.5 for run in runs)
    compared = {name for run in runs for name in options_of(run).strategies}
    assert compared == set(STRATEGIES) - set(OF_DRY_RUNS)


def test_the_sweep_goes_from_25_to_400_ms() -> None:
    """The lag wanders, and is on both sides of a round trip between the regions."""
    for run in applications(FULL, "sweep"):
        told = options_of(run)
        assert (min(told.lags_ms), max(told.lags_ms)) == (25, 400)
        assert told.lag_spread > 0
        assert min(told.lags_ms) < 2 * told.link_ms < max(told.lags_ms)
