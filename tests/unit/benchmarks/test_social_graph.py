"""The social network's plan, page, lines and status, without a server."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks._machine import machine
from benchmarks.judge import FAILED, INCONCLUSIVE, SHOWN
from benchmarks.social_graph._bench import UNFINISHED, plans, status_of
from benchmarks.social_graph._cli import main
from benchmarks.social_graph._lines import added
from benchmarks.social_graph._measure import Turn
from benchmarks.social_graph._page import page

if TYPE_CHECKING:
    from benchmarks.social_graph._bench import Named

LATENCIES, WINDOWS, OVERSHOOTS = [10.0, 20.0, 30.0], [40.0, 50.0], [2.5, 0.5]


def turns(named: Named) -> list[dict[str, Any]]:
    """What a run might have measured: everything costs 1 % more with the library."""
    plan = named.plan
    found = []
    for block in range(plan.blocks):
        for variant in plan.variants:
            bare = variant == "baseline"
            turn = Turn(
                *(variant, block, 100, 100, 100, plan.rate * (1 if bare else 0.99), 0.1),
                *(LATENCIES, LATENCIES, WINDOWS, [] if bare else OVERSHOOTS),
                wrong=34 if bare else 0,
                cpu_us={"us text": 1000.0 + block if bare else (1000.0 + block) * 1.01},
            )
            found.append(asdict(turn))
    return found


def report(*, quick: bool, status: int = SHOWN) -> dict[str, Any]:
    """What `bench` returns."""
    runs = {
        it.name: {
            "turns": turns(it),
            "hops": {"/social_graph.PostStorage/StorePost": [90, 95, 100], "the message": [120]},
            "status": status,
            "late": it.late,
        }
        for it in plans(quick=quick)
    }
    about = {"short": quick, "commit": "c0ffee", "machine": machine(), "versions": {}}
    return {**about, "missing": [], "failures": [], "runs": runs}


def test_a_page_has_every_figure_with_its_interval() -> None:
    """Violations, costs, throughput, hops and lines; with one turn there is no interval."""
    text = page(report(quick=False))
    assert "| far | as DeathStarBench | baseline | 500 | 170 (34.0 %) |" in text
    assert "| far | as DeathStarBench | barrier | 500 | 0 (0.0 %) |" in text
    assert "| **over the baseline** |  | +1.0 (+1.0 to +1.0) % |" in text
    assert "| barrier | 792 | 0.990 (0.990 to 0.990) | 5 |" in text
    assert "| `PostStorage/StorePost` | 3 | 95 | 100 |" in text
    assert "| `stores.cc` |" in text
    assert "+1.0 (" not in page(report(quick=True))


def test_the_status_is_the_worst_of_the_runs_that_had_to_show_something() -> None:
    """A violation anywhere fails; only where posts are late is it a fault that none were."""
    assert status_of(report(quick=False)) == SHOWN
    assert status_of(report(quick=False, status=FAILED)) == FAILED
    assert status_of(report(quick=False, status=INCONCLUSIVE)) == INCONCLUSIVE
    near = report(quick=False)
    near["runs"]["variants-near-paper"]["status"] = INCONCLUSIVE
    assert status_of(near) == SHOWN
    assert status_of({**near, "missing": ["mix"]}) == UNFINISHED


def test_a_run_in_full_has_three_thousand_composes_of_each_variant() -> None:
    """For each pair and workload; names are unique, and all of it takes under two hours."""
    full = plans(quick=False)
    compared = [it.plan for it in full if it.name.startswith("variants-")]
    assert {(it.pair, it.workload) for it in compared} == {
        (pair, workload) for pair in ("near", "far") for workload in ("deathstarbench", "paper")
    }
    assert all(it.rate * it.seconds * it.blocks >= 3000 for it in compared)
    # Nobody reads timelines there: what protects readers cannot be judged.
    assert not any(it.workload == "paper" and "barrier-at-read" in it.variants for it in compared)
    assert len({it.name for it in full}) == len(full)
    assert sum(it.call("dev").expected_s for it in full) < 2 * 3600
    assert sum(it.call("dev").expected_s for it in plans(quick=True)) < 600


def test_lines_of_the_library_are_counted() -> None:
    """Three languages; fewer than the paper's 250 lines, and none of what measures."""
    lines = added()
    assert {"stores.cc", "write_home_timeline.cc", "Lineages.java", "_process.py"} <= lines.keys()
    assert "hops.cc" not in lines
    assert 0 < sum(lines.values()) < 250


def test_a_variant_is_not_judged_where_nobody_reads(capsys: pytest.CaptureFixture[str]) -> None:
    """It says why, before anything is built."""
    arguments = ["run", "--workload", "paper", "--variants", "baseline,barrier-at-read"]
    assert main(arguments) == 2
    assert "readers" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["walk"], ["measure", "--pair", "middle"]])
def test_wrong_arguments_end_it(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is started, and the status is that of wrong arguments."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "error" in capsys.readouterr().err
