"""The plan of the evaluation has every pair, enough observations, and commands that make sense."""

from __future__ import annotations

import itertools

import pytest

from benchmarks.evaluation._plan import (
    APPLICATION,
    DELAYED,
    DELAYS_MS,
    FULL,
    LAG_MS,
    LONG_SECTIONS,
    PAPER_NOTIFIERS,
    PROFILES,
    QUICK,
    SECTIONS,
    SLOW,
    SLOW_RATE,
    SWEEP_STORES,
    Run,
    Size,
    paired,
    plan,
)
from benchmarks.judge import LEAST_BLOCKS
from benchmarks.post_notification import _cli
from benchmarks.post_notification._options import (
    NOTIFIERS,
    OF_DRY_RUNS,
    OURS,
    POST_STORAGES,
    STRATEGIES,
    Options,
)

PAIRS = [pair for pair in itertools.product(POST_STORAGES, NOTIFIERS) if paired(*pair)]
#: The paper's post storages, S3 on real servers.
PAPER_STORAGES = ("mysql", "dynamodb", "redis", "seaweedfs", "mongodb")


def options_of(run: Run) -> Options:
    """What the benchmark makes of a run's arguments."""
    return _cli.parse(run.arguments)


def applications(size: Size, section: str) -> list[Run]:
    """The runs of the benchmark itself for a section."""
    return [run for run in plan(size, (section,)) if run.module == APPLICATION]


def test_every_pair_has_every_profile() -> None:
    """Table 1 leaves no cell empty: a profile has a run of its own, or all of its delays in one."""
    found = {(run.post_storage, run.notifier, run.profile) for run in applications(FULL, "table1")}
    named = {profile.name for profile in PROFILES if not profile.delays_ms} | {DELAYED}
    assert found == {(*pair, profile) for pair in PAIRS for profile in named}
    delays = [delay for profile in PROFILES for delay in profile.delays_ms]
    assert len(delays) == len(set(delays))  # a request is of one profile
    for run in applications(FULL, "table1"):
        told = options_of(run)
        assert run.profile != DELAYED or told.notify_delays_ms == tuple(delays)
        assert set(told.strategies) == {"none", "barrier"}


def test_every_post_storage_has_3000_reads_behind_a_barrier() -> None:
    """None of them wrong excludes more than about 0.1 %; each pair has a thousand."""
    runs = [run for run in plan(FULL) if run.module == APPLICATION]
    for post_storage in POST_STORAGES:
        told = [options_of(run) for run in runs if run.post_storage == post_storage]
        rounds = [
            (each, len(each.kinds) * len(each.lags_ms) * len(set(each.strategies) & set(OURS)))
            for each in told
        ]
        assert sum(each.requests * count for each, count in rounds) >= 3000
    for pair in PAIRS:
        of_pair = [options_of(r) for r in runs if (r.post_storage, r.notifier) == pair]
        assert sum(each.requests * len(each.kinds) for each in of_pair) >= 1000


def test_profiles_spread_from_all_to_nothing() -> None:
    """By what they ask for, 100 %, 90 %, 10 % and 0 % of notifications come before the post."""
    told = {run.profile: options_of(run) for run in applications(FULL, "table1")}
    expected = []
    for profile in PROFILES:
        options = told.get(profile.name, told[DELAYED])
        waits = [each + options.notifier_lag_ms for each in profile.delays_ms or (0,)]
        expected.append(100 * sum(each < options.lags_ms[0] for each in waits) / len(waits))
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
    names = [run.name for run in plan(size, (*SECTIONS, *LONG_SECTIONS))]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("section", [*SECTIONS, *LONG_SECTIONS])
def test_each_section_can_be_had_alone(section: str) -> None:
    """Some runs are for it, and all that are run for it say so."""
    chosen = plan(QUICK, (section,))
    assert chosen
    assert all(section in run.sections for run in chosen)


def test_the_paper_has_its_table_1() -> None:
    """Its five post storages with each of its four notifiers, slow ones at a rate of their own."""
    runs = applications(FULL, "table1")
    papers = itertools.product(PAPER_STORAGES, PAPER_NOTIFIERS)
    assert set(papers) <= {(run.post_storage, run.notifier) for run in runs}
    slow = [run for run in runs if SLOW & {run.post_storage, run.notifier}]
    assert all(options_of(run).rate <= SLOW_RATE for run in slow)


def test_each_pair_of_the_paper_has_3000_requests_under_a_lag_that_wanders() -> None:
    """With the barrier, and some without; PostgreSQL's pairs, too. Nobody else waits for them."""
    runs = applications(FULL, "wandering")
    assert not {run.name for run in runs} & {run.name for run in plan(FULL)}
    for pair in itertools.product((*PAPER_STORAGES, "postgresql"), PAPER_NOTIFIERS):
        told = [options_of(run) for run in runs if (run.post_storage, run.notifier) == pair]
        made = {each.strategies: each.requests * len(each.kinds) for each in told}
        assert made[("barrier",)] >= 3000
        assert made[("none",)] >= 300
        assert all(each.lag_spread > 0 for each in told)


def test_the_full_size_takes_no_more_than_an_hour_and_a_quarter() -> None:
    """On two processors, with what starting servers takes; six minutes for a quick store."""
    runs = plan(FULL)
    assert sum(run.expected_s for run in runs) < 75 * 60
    real = [run for run in runs if not SLOW & {run.post_storage, run.notifier}]
    quick = [run for run in real if run.notifier != "activemq"]
    assert sum(run.expected_s for run in quick) < 6 * 60 * len({r.post_storage for r in quick})


def test_what_is_compared_is_interleaved() -> None:
    """Strategies take turns in as many blocks as anything is claimed of them for."""
    for section in ("figure7", "strategies", "sweep", "nothing"):
        assert all(options_of(run).blocks >= LEAST_BLOCKS for run in applications(FULL, section))


def test_no_strategy_is_compared_under_a_lag_that_a_sleep_could_know() -> None:
    """It wanders wherever strategies stand beside each other, and each of them is there."""
    runs = [*applications(FULL, "strategies"), *applications(FULL, "sweep")]
    assert all(options_of(run).lag_spread == 0.5 for run in runs)
    compared = {name for run in runs for name in options_of(run).strategies}
    assert compared == set(STRATEGIES) - set(OF_DRY_RUNS)


def test_automatic_barriers_are_compared_over_every_store() -> None:
    """Beside the barrier, and where there is nothing to wait for, over MySQL itself, too."""
    for section, stores in (("strategies", POST_STORAGES), ("nothing", SWEEP_STORES)):
        found = {r.post_storage: options_of(r).strategies for r in applications(FULL, section)}
        assert set(found) == set(stores)
        assert all({"none", "barrier", "auto"} <= set(named) for named in found.values())


def test_the_sweep_goes_from_25_to_400_ms() -> None:
    """The lag wanders, and is on both sides of a round trip between the regions."""
    for run in applications(FULL, "sweep"):
        told = options_of(run)
        assert (min(told.lags_ms), max(told.lags_ms)) == (25, 400)
        assert told.lag_spread > 0
        assert min(told.lags_ms) < 2 * told.link_ms < max(told.lags_ms)
