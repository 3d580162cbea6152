"""TrainTicket as a benchmark: what its run makes of what users saw, without its services."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from benchmarks._machine import ROOT
from benchmarks._maven import digest
from benchmarks.judge import FAILED, INCONCLUSIVE, SHOWN
from benchmarks.train_ticket._cli import main
from benchmarks.train_ticket._customers import Seen
from benchmarks.train_ticket._lines import added
from benchmarks.train_ticket._money import Money
from benchmarks.train_ticket._observer import Sight
from benchmarks.train_ticket._report import verdict
from benchmarks.train_ticket._run import Outcome
from benchmarks.train_ticket._stores import Order

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.train_ticket._variants import VariantName

ORDER = Order("order-1", "user-1", 5_000)
#: The refund is visible at 3 s; a user looks at 1 s and is answered at once, or at 4 s.
SIGHT = Sight(absent_s=2.9, seen_s=3.0)
AT_ONCE = Seen(ORDER, cancelled=True, answered=True, looked_at_s=1.0, shown_at_s=1.1)
WAITED = replace(AT_ONCE, refunded=True, shown_at_s=4.0)
RIGHT = Money(cancelled=1, paid=5_000, refunded=4_000, kept=1_000, lost=0, doubled=0, undue=0)


def outcome(variant: VariantName, seen: Seen, money: Money = RIGHT) -> Outcome:
    """One user's."""
    return Outcome(variant, [seen], [SIGHT], money)


BASELINE = outcome("baseline", AT_ONCE)


def test_a_barrier_that_waited_is_shown() -> None:
    """The baseline lacked the refund and the look-up after the barrier had to wait for it."""
    assert verdict([BASELINE, outcome("look-up", WAITED)]).status == SHOWN


def test_a_missing_refund_fails() -> None:
    """A look-up after a barrier without its refund fails the run."""
    assert verdict([BASELINE, outcome("look-up", AT_ONCE)]).status == FAILED


def test_a_refund_that_nobody_could_see_fails() -> None:
    """An answer with a refund that was not visible yet is no proof of a wait."""
    early = replace(WAITED, shown_at_s=2.0)
    assert verdict([BASELINE, outcome("look-up", early)]).status == FAILED


def test_a_baseline_that_is_right_proves_nothing() -> None:
    """Where nothing was wrong without the library, the run is inconclusive."""
    right = outcome("baseline", WAITED)
    assert verdict([right, outcome("look-up", WAITED)]).status == INCONCLUSIVE


@pytest.mark.parametrize(
    "wrong",
    [
        replace(RIGHT, lost=1),
        replace(RIGHT, doubled=1),
        replace(RIGHT, undue=1),
        replace(RIGHT, kept=999),
    ],
)
def test_money_that_does_not_add_up_fails(wrong: Money) -> None:
    """A refund that is lost, doubled or undue, and a cent that is missing, fail the run."""
    assert verdict([BASELINE, outcome("look-up", WAITED, wrong)]).status == FAILED


def test_a_barrier_before_the_answer_counts_as_a_wait() -> None:
    """A cancellation that was sent before the refund was visible, and answered after it, waited."""
    later = replace(WAITED, looked_at_s=3.1, cancel_s=1.0)
    assert [it.waited for it in outcome("answer", later).trials()] == [True]
    assert [it.waited for it in outcome("look-up", later).trials()] == [False]


def test_lateness_is_of_look_ups_that_waited() -> None:
    """It is the time from the refund's visibility to the answer, of those that came before it."""
    assert outcome("look-up", WAITED).late_ms() == [1000.0]
    assert outcome("look-up", replace(WAITED, looked_at_s=3.5)).late_ms() == []


def test_a_build_knows_its_sources(tmp_path: Path) -> None:
    """A source or a POM that changed is built anew; tests and what was built change nothing."""
    for name in ("a/pom.xml", "a/src/main/A.java", "a/src/test/T.java", "a/target/src/B.java"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("before")
    before = digest(tmp_path)
    for name in ("a/src/test/T.java", "a/target/src/B.java"):
        (tmp_path / name).write_text("after")
    assert digest(tmp_path) == before
    (tmp_path / "a/src/main/A.java").write_text("after")
    assert digest(tmp_path) != before


def test_lines_of_the_library_are_counted() -> None:
    """Each service has its settings or its code, and those without a barrier have no code."""
    lines = added()
    assert set(lines) == {
        *("auth", "cancel", "inside-payment", "notification", "order", "payment", "user")
    }
    assert all(sum(it) > 0 for it in lines.values())
    assert {name for name, (code, _) in lines.items() if code} == {
        *("cancel", "inside-payment", "notification")
    }
    guide = (ROOT / "docs/guides/java/several-services.md").read_text(encoding="utf-8")
    for name, (code, settings) in lines.items():
        assert f"\n| {name} | {code} | {settings} |\n" in guide, "a line of the guide's table"


@pytest.mark.parametrize(
    "arguments", [["run", "--variants", "nothing"], ["run", "--rate", "0"], ["walk"]]
)
def test_wrong_arguments_end_it(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is started, and the status is that of wrong arguments."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "error" in capsys.readouterr().err
