"""Metadata at scale: requests as published, and lineages that go through them as they are sent."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from antipode import Lineage, WriteId
from benchmarks.metadata._assumptions import WORST, Assumptions
from benchmarks.metadata._cli import PAGE, REPORT, RESULTS, main
from benchmarks.metadata._figures import Figures, quantiles
from benchmarks.metadata._page import page, read
from benchmarks.metadata._run import BLOCK, run
from benchmarks.metadata._travel import travel
from benchmarks.metadata._trees import Service, draw

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.metadata._travel import Sizes


class Texts:
    """Keeps the texts."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.answers: list[str] = []

    def sent(self, text: str, *, entries: int, arrived: int, answer: bool) -> None:
        """Keep one."""
        assert arrived <= entries
        (self.answers if answer else self.calls).append(text)


def write(number: int) -> WriteId:
    """A write of a datastore of its own."""
    return WriteId(f"store-{number}", "log", number)


def texts() -> Texts:
    """What counts texts; typed as the benchmark's."""
    kept = Texts()
    counts: Sizes = kept
    assert counts is kept
    return kept


@pytest.mark.parametrize("assumed", [Assumptions(), Assumptions(tail="log-logistic")])
def test_requests_are_as_published(assumed: Assumptions) -> None:
    """Calls, unique services, depth and fan-out are those of the paper's sections 2.1 and 4.1."""
    chance, figures = random.Random(3), Figures()
    for _ in range(8_000):
        figures.drawn(draw(assumed, chance))
    drawn = figures.summary()
    assert drawn["from_5_stores"] > 0.5
    assert drawn["over_20_stores"] == pytest.approx(0.10, abs=0.015)
    assert drawn["from_20_calls"] == pytest.approx(0.20, abs=0.03)
    assert drawn["stores"]["mean"] > 5
    assert drawn["depth"]["mean"] > 4
    assert drawn["fanning"] > 0.1


def test_requests_have_the_calls_that_were_drawn() -> None:
    """Every call of a stateful service is made by one service, and every service is called once."""
    request = draw(WORST, random.Random(5))
    writes = [step for service in request.services for step in service.writes]
    called = [step for service in request.services for step in service.steps]
    services = [step for step in called if isinstance(step, Service)]
    assert len(writes) == request.calls
    assert len({each.datastore for each in writes}) == request.stores
    assert sorted(map(id, services)) == sorted(map(id, request.services[1:]))
    assert sum(service.fan_out for service in request.services) == len(called)


def test_a_lineage_goes_down_and_what_was_added_comes_back() -> None:
    """A callee is sent what was written before, its caller gets what it added, and no more."""
    root = Service(steps=[write(1), Service(steps=[write(2)]), write(3)])
    kept = texts()
    end = travel(root, kept, answers=True)
    assert end == Lineage([write(1), write(2), write(3)])
    assert ["store-1" in text for text in kept.calls] == [True]
    assert [("store-1" in text, "store-2" in text) for text in kept.answers] == [(False, True)]


def test_concurrent_calls_do_not_see_each_other() -> None:
    """Branches begin with the lineage before them, and join in the end."""
    branches = [Service(steps=[write(1)]), Service(steps=[write(2)])]
    kept = texts()
    end = travel(Service(steps=[*branches], parallel=True), kept, answers=True)
    assert end == Lineage([write(1), write(2)])
    assert kept.calls == ["1", "1"]


def test_answers_may_bring_nothing_back() -> None:
    """Without answers a caller depends on what it wrote itself."""
    kept = texts()
    end = travel(Service(steps=[Service(steps=[write(1)]), write(2)]), kept, answers=False)
    assert end == Lineage([write(2)])
    assert kept.answers == []


def test_what_does_not_fit_is_counted() -> None:
    """A text that holds less than its lineage is counted, with the entries that it lacks."""
    keyed = Assumptions(writes=1.0, keyed=1.0, name_chars=16, parallel=0.0)
    figures = run(keyed, 300, seed=2, processes=1, advance=lambda _: None)
    assert figures.dropped >= figures.shortened >= figures.shortened_requests > 0
    assert max(figures.call_bytes) <= 1024 - len("antipode=")
    assert max(figures.whole_bytes) > 1024


@pytest.mark.slow
def test_figures_do_not_depend_on_who_draws() -> None:
    """The same seed gives the same figures in one process and in two."""
    alone, shared = (
        run(Assumptions(), BLOCK + 50, seed=4, processes=processes, advance=lambda _: None)
        for processes in (1, 2)
    )
    alone.processor_s = shared.processor_s = 0
    assert alone == shared
    assert alone.requests == BLOCK + 50


def test_quantiles_are_values_that_occur() -> None:
    """A quantile is the least value that the share does not exceed."""
    from collections import Counter

    assert quantiles(Counter({1: 5, 7: 4, 9: 1}), (0.5, 0.9, 1.0)) == [1, 7, 9]


@pytest.mark.parametrize(
    "wrong", [("--writes", "1.5"), ("--tail", "normal"), ("--depth", "1"), ("--requests", "0")]
)
def test_impossible_assumptions_are_refused(wrong: tuple[str, str]) -> None:
    """An option that makes no sense ends the program with 2, before anything is drawn."""
    with pytest.raises(SystemExit) as ended:
        main(["run", *wrong])
    assert ended.value.code == 2


@pytest.mark.slow
def test_a_short_run_makes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is run with --json can be rendered; a short run says so."""
    report = tmp_path / REPORT
    options = ["--requests", "60", "--sweep", "20", "--processes", "1", "--json", str(report)]
    assert main(["run", *options]) == 0
    assert "worst case" in capsys.readouterr().out
    assert main(["render", "--results", str(tmp_path)]) == 0
    assert "**A short run:**" in (tmp_path / PAGE).read_text(encoding="utf-8")
    assert len(list(tmp_path.glob("*.png"))) == 2


@pytest.mark.parametrize("text", [None, "{", "[]", '{"benchmark": "micro", "format": 4}'])
def test_other_files_are_refused(text: str | None, tmp_path: Path) -> None:
    """What is no report of this benchmark ends with 2."""
    if text is not None:
        (tmp_path / REPORT).write_text(text, encoding="utf-8")
    assert main(["render", "--results", str(tmp_path)]) == 2


def test_what_is_committed_is_what_render_makes() -> None:
    """The page in docs/results is made of the report that lies with it, and that of a full run."""
    report = read(RESULTS / REPORT)
    assert not report["short"]
    assert (RESULTS / PAGE).read_text(encoding="utf-8") == page(report)
