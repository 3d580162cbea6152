"""What waiting costs: polls and lateness of the pace that the library learns, simulated."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from antipode._barrier.expectation import LEAST_US, Expectation
from benchmarks.costs import waiting
from benchmarks.costs._many import cost_of
from benchmarks.costs._paces import (
    constant,
    log_normal,
    normal,
    one_after_the_other,
    overlapping,
    simulated,
    uniform,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.costs._paces import Lag

SPREADS = [constant, normal, log_normal]


def taught(lag_ms: float, count: int = 20) -> Expectation:
    """What so many waits of *lag_ms*, one after the other, have taught."""
    pace = Expectation()
    simulated(pace, one_after_the_other(constant(lag_ms), count))
    return pace


@pytest.mark.parametrize("lag_ms", [5, 20, 50, 100, 150, 200, 250])
@pytest.mark.parametrize("lag", SPREADS)
def test_polls_of_a_learned_lag(lag: Callable[[float], Lag], lag_ms: float) -> None:
    """90 % within 16 ms: at most 8 polls in the mean, and half of the waits at most 2 ms late."""
    found = simulated(Expectation(), one_after_the_other(lag(lag_ms), 1_000), unlearned=30)
    assert found.polls <= 8
    assert found.late_ms <= 2
    assert found.most_late_ms <= 50


@pytest.mark.parametrize("lag", SPREADS)
def test_polls_of_a_learned_lag_of_300_ms(lag: Callable[[float], Lag]) -> None:
    """Pauses of 50 ms alone make seven polls of it: no pace has eight and 2 ms there."""
    found = simulated(Expectation(), one_after_the_other(lag(300), 1_000), unlearned=30)
    assert found.polls <= 9
    assert found.late_ms <= 2.3


def test_polls_of_a_lag_that_falls() -> None:
    """From 500 to 5 ms: the first wait is at most 50 ms late, the third costs what it should."""
    pace = taught(500)
    found = [simulated(pace, [(10_000_000 * nth, 5_000)]) for nth in range(1, 7)]
    assert found[0].late_ms <= 50
    assert found[1].late_ms <= 2
    assert all(each.polls <= 8 and each.late_ms <= 2 for each in found[2:])
    assert simulated(Expectation(), waiting.steps(500, 5), unlearned=22).late_ms <= 2


@pytest.mark.parametrize(
    "lag", [constant(50), constant(500), constant(2000), uniform(50, 2000), log_normal(300, 0.5)]
)
def test_polls_of_twenty_barriers_a_second(lag: Lag) -> None:
    """They share polls, whether all wait for as long or for 50 ms to 2 s."""
    assert simulated(Expectation(), overlapping(lag, 20, 30)).polls_s <= 150


def test_polls_of_ten_thousand_that_wait() -> None:
    """The next poll is that of those expected first, not a sum over all."""
    pace = taught(100)
    numbers = random.Random(3)
    joined = sorted(numbers.randrange(900_000, 1_000_000) for _ in range(10_000))
    assert LEAST_US <= pace.next_us(1_000_000, joined) - 1_000_000 <= 3_000


@pytest.mark.parametrize(
    "many", [pytest.param(1_000), pytest.param(10_000, marks=pytest.mark.slow)]
)
def test_polls_cost_what_became_visible(many: int) -> None:
    """A poll that meets one calls as much where many wait as where ten do; one thread has all."""
    few, found = cost_of(10), cost_of(many)
    assert found.calls <= few.calls + 20
    assert found.bytes_each <= 8 * 1024
    assert found.threads == 1


def test_polls_are_printed_and_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`python -m benchmarks.costs waiting --json` has a row for each lag and pace."""
    monkeypatch.setattr(waiting, "COUNT", waiting.UNLEARNED + 2)
    monkeypatch.setattr(waiting, "SECONDS", 1)
    monkeypatch.setattr(waiting, "CROWDS", (10,))
    waiting.run(tmp_path / "out.json")
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert found["last 16 waits"]["unlearned"]["500 ms"]["polls"] == 53
    assert found["many"][0]["threads"] == 1
    out = capsys.readouterr().out
    assert "| 500 ms | 192; " in out
    assert "| waiting | Python calls |" in out
