"""The judge of benchmarks: what it calls shown could have failed."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from benchmarks._machine import in_use
from benchmarks.judge import (
    FAILED,
    INCONCLUSIVE,
    LEAST_BLOCKS,
    SHOWN,
    Trial,
    Verdict,
    busy,
    differ,
    judge,
    over_blocks,
    rotated,
    shares,
)

EXPOSED: dict[str, Any] = {"exposed": True, "told": True, "answered": True, "early": False}


def trial(strategy: str = "guard", **known: Any) -> Trial:
    """One that was exposed and right, changed by *known*."""
    return Trial(strategy, **{"case": "new", "right": True, **EXPOSED, **known})


BARE = [trial("none", right=False)]


def judged(*found: Trial) -> Verdict:
    """What the judge makes of trials, with a bare one that was wrong."""
    return judge([*BARE, *found], guarded=["guard"], unguarded="none", guard="the guard")


def test_right_reads_that_would_have_been_wrong_are_shown() -> None:
    """They alone are counted: what came late enough would have been right anyway."""
    verdict = judged(trial(), trial(), trial(exposed=False))
    assert verdict.status == SHOWN
    assert "0 of 2 reads" in verdict.said


@pytest.mark.parametrize("wrong", [{"right": False}, {"early": True}])
def test_one_wrong_read_fails(wrong: dict[str, Any]) -> None:
    """Whatever else is in doubt: also one that was answered before there was anything to read."""
    assert judged(trial(**wrong), trial(answered=False), trial(told=False)).status == FAILED


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ([trial(exposed=False)], "nothing had to wait (new, guard)"),
        ([trial(), trial(told=False)], "cannot tell of 1 of 2"),
        ([trial(), trial(answered=False, right=False)], "no answer to 1 of 2"),
        ([trial(), trial(case="update")], "nothing was wrong without it (update, guard)"),
    ],
)
def test_what_proves_nothing_is_inconclusive(found: list[Trial], says: str) -> None:
    """A run that could not fail does not pass."""
    verdict = judged(*found)
    assert verdict.status == INCONCLUSIVE
    assert says in verdict.said


def test_without_bare_reads_nothing_is_shown() -> None:
    """Nor where all of them were right."""
    for bare in ([], [trial("none")]):
        verdict = judge([*bare, trial()], guarded=["guard"], unguarded="none", guard="it")
        assert verdict.status == INCONCLUSIVE


def test_one_in_a_hundred_is_tolerated() -> None:
    """Without an answer, and without knowledge."""
    few = [trial(told=False), trial(answered=False, right=False)]
    assert judged(*few, *[trial()] * 98).status == SHOWN


def test_nothing_to_judge_is_no_failure() -> None:
    """Who compares other strategies has a result, too."""
    verdict = judge(BARE, guarded=["guard"], unguarded="none", guard="the guard")
    assert verdict == Verdict(SHOWN, "done; the guard was not among the strategies")


def test_who_is_compared_takes_turns() -> None:
    """Each is first once in as many blocks as there are strategies, and trials are dealt evenly."""
    orders = [rotated("abc", block) for block in range(4)]
    assert ["".join(order) for order in orders] == ["abc", "bca", "cab", "abc"]
    assert shares(23, 5) == (5, 5, 5, 4, 4)


def test_an_interval_is_of_blocks() -> None:
    """As many values as one likes in fewer than five blocks have none."""
    assert over_blocks([1.0] * (LEAST_BLOCKS - 1)) is None
    found = over_blocks([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((3.0, 1.037, 4.963), abs=0.001)


def test_a_difference_is_taken_within_blocks() -> None:
    """What makes all of a block slow makes no difference."""
    slow = {0: 10.0, 1: 20.0, 2: 30.0, 3: 40.0, 4: 50.0}
    slower = {block: value + 1 + block % 2 / 10 for block, value in slow.items()}
    found = differ(slower, slow)
    assert found is not None
    assert 0 < found.low < 1.04 < found.high < 1.2
    assert differ(slower, {0: 1.0}) is None


def test_a_loaded_machine_is_named() -> None:
    """By what ran before the run began."""
    assert busy(0.4, 2) == ""
    assert "LOADED MACHINE" in busy(0.6, 2)
    assert 0 <= in_use() <= (os.cpu_count() or 1)


def test_the_judge_knows_no_application() -> None:
    """Nor the library."""
    program = (
        "import sys, benchmarks.judge\n"
        "print([n for n in sys.modules if n.startswith(('antipode', 'benchmarks.post'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
