"""The page of costs: made of what the benchmarks wrote, and it names what is over its bound."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.costs._cli import FOLDER, PAGE, RESULTS, main, rendered
from benchmarks.costs._page import SECTIONS
from benchmarks.costs._reports import BENCHMARKS, read

if TYPE_CHECKING:
    from pathlib import Path


def spread(median: float) -> dict[str, float]:
    """What `asdict` makes of a summary with this median."""
    low, high = median - 0.01, median + 0.01
    quartiles = {"lower_quartile": low, "upper_quartile": high}
    return {"median": median, "least": low, "greatest": high, **quartiles}


def micro(ratio: float, entries: int = 5) -> dict[str, Any]:
    """A case of micro with this ratio."""
    return {
        "case": {"operation": "append", "entries": entries, "inputs": "warm"},
        "text_bytes": 1870,
        "ratios": spread(ratio),
        "ours_us": spread(2.5),
        "floor_us": spread(1.25),
        "floor": "inject",
    }


def overhead(ratio: float, call: str = "write") -> dict[str, Any]:
    """A case of overhead with this ratio, and a bound of 1.5."""
    return {
        "client": "redis-py",
        "link": "loopback",
        "call": call,
        "ratio": ratio,
        "rounds": spread(ratio),
        "plain_us": spread(1000.0),
        "instrumented_us": spread(99.94),
        "bound": 1.5,
    }


def request(ratio: float, failed: int = 0, *, least: bool = False) -> dict[str, Any]:
    """A case of requests with this ratio, and a bound of 1.05 unless it is the least."""
    return {
        "case": "grpc, least" if least else "grpc",
        "ratio": ratio,
        "rounds": spread(ratio),
        "otel_us": spread(500.0),
        "antipode_us": spread(520.0),
        "failed": failed,
        "bound": None if least else 1.05,
    }


def report(benchmark: str, *cases: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What a benchmark writes."""
    return {
        "benchmark": benchmark,
        "format": 4,
        "command": f"python -m benchmarks.costs.{benchmark} --rounds 60",
        "short": False,
        "began": "2026-01-02T03:04:05+00:00",
        "took_s": 61.2,
        "commit": "abc",
        "machine": {
            "processors": 2,
            "model": "some",
            "memory_gib": 8.0,
            "system": "Linux",
            "python": "CPython 3.11",
            "in_use": 0.1,
            "load": [0.5, 0, 0],
            "load_after": [1.5, 0, 0],
        },
        "versions": {"redis": "8.0"},
        "bound": {"entries": 5, "ratio": 3.0},
        "cases": list(cases),
        **more,
    }


def put(folder: Path, *reports: dict[str, Any]) -> list[str]:
    """Files with these reports; their paths, as they are typed."""
    paths = [folder / f"{each['benchmark']}-{number}.json" for number, each in enumerate(reports)]
    for path, each in zip(paths, reports, strict=True):
        path.write_text(json.dumps(each))
    return [str(path) for path in paths]


def page_of(folder: Path, *reports: dict[str, Any]) -> str:
    """The page that collecting these reports makes."""
    results = folder / "results"
    folder.mkdir(exist_ok=True)
    assert main(["collect", *put(folder, *reports), "--results", str(results)]) == 0
    return (results / PAGE).read_text()


def section(page: str, benchmark: str) -> str:
    """The part of a page that is of one benchmark."""
    return page.split(f"## {SECTIONS[benchmark].title}\n", 1)[1].split("\n## ", 1)[0]


def test_a_section_has_every_figure_and_how_it_was_measured(tmp_path: Path) -> None:
    """Both medians, ratio, spread, bound and whether it is kept; machine, date, command, load."""
    page = page_of(tmp_path, report("micro", micro(2.0)), report("overhead", overhead(1.2)))
    row = "| append | warm | 5 entries of 1,870 bytes | 1.25 | 2.50 | 2.000 | 1.990 to 2.010 |"
    assert f"{row} 3 | yes |" in section(page, "micro")
    row = "| redis-py | loopback | write | 1,000 | 99.9 | 1.200 | 1.190 to 1.210 | 1.5 | yes |"
    assert row in section(page, "overhead")
    for fact in (
        "| command | `python -m benchmarks.costs.overhead --rounds 60` |",
        "| began, UTC | 2026-01-02 03:04:05 |",
        "| machine | 2 processors (some), 8.0 GiB, Linux |",
        "| load before and after | 0.5 to 1.5 |",
        "| commit | abc |",
        "| redis | 8.0 |",
    ):
        assert fact in section(page, "overhead")


def test_what_is_over_its_bound_is_named_first(tmp_path: Path) -> None:
    """A sentence counts and names it before the table; at its bound a case is not over it."""
    cases = overhead(1.5, "read"), overhead(1.501), overhead(1.0, "read after a barrier")
    found = section(page_of(tmp_path, report("overhead", *cases)), "overhead")
    said = "**1 of 3 cases with a bound is over it:** redis-py, loopback, write (1.501, at most"
    assert found.strip().startswith(said)
    assert found.count("**no**") == 1
    assert "| 1.501 | 1.491 to 1.511 | 1.5 | **no** |" in found


def test_what_is_kept_is_said_too(tmp_path: Path) -> None:
    """A section without a miss says of how many cases, not counting those without a bound."""
    cases = micro(2.9), micro(30.0, entries=100)
    assert "None of 1 case with a bound is over it." in page_of(tmp_path, report("micro", *cases))
    assert "No case has a bound." in page_of(tmp_path, report("micro", micro(9.0, entries=1)))


def test_failures_are_counted_at_the_top(tmp_path: Path) -> None:
    """Who reads the ratio of calls that went well learns how many did not."""
    page = page_of(tmp_path, report("requests", request(1.01, 3), request(1.01, 1004, least=True)))
    assert "**Calls that failed: 1,007**" in section(page, "requests")
    assert "| 1,004 |  |  |" in section(page, "requests")
    assert "No call failed." in page_of(tmp_path, report("requests", request(1.01)))


def test_the_least_case_is_explained(tmp_path: Path) -> None:
    """It is there to be compared with, in the words of its module; and only where it is there."""
    page = page_of(tmp_path, report("requests", request(1.04, least=True)))
    assert "`grpc, least` has no bound, and runs nothing of ours: the least that an" in page
    assert "grpc, least" not in page_of(tmp_path, report("requests", request(1.01)))


def test_what_is_missing_is_not_measured_yet(tmp_path: Path) -> None:
    """A section without a report says so, and has neither a figure nor a verdict."""
    page = page_of(tmp_path, report("micro", micro(2.0)))
    assert "Not measured yet" not in section(page, "micro")
    for benchmark in ("overhead", "requests"):
        found = section(page, benchmark)
        assert found.strip().startswith("**Not measured yet.**")
        assert f"`python -m benchmarks.costs.{benchmark}`" in found
        assert "|" not in found


def test_a_page_of_nothing_is_a_page(tmp_path: Path) -> None:
    """Before anything is measured every section says that it is not."""
    assert main(["render", "--results", str(tmp_path)]) == 0
    assert (tmp_path / PAGE).read_text().count("**Not measured yet.**") == len(BENCHMARKS)


def test_a_short_run_says_so(tmp_path: Path) -> None:
    """Rough figures never look like those of a full run."""
    page = page_of(tmp_path, report("micro", micro(2.0), short=True))
    assert section(page, "micro").strip().startswith("**A short run:**")


def test_a_loaded_machine_is_said_before_the_verdict(tmp_path: Path) -> None:
    """Whoever reads whether a bound is kept has read that times do not hold."""
    loaded = report("micro", micro(2.0))
    loaded["machine"]["in_use"] = 1.2
    found = section(page_of(tmp_path, loaded), "micro").strip()
    assert found.startswith("**LOADED MACHINE: others used 1.2 of 2 processors")


def test_files_are_kept_as_they_are_and_others_stay(tmp_path: Path) -> None:
    """A benchmark that is measured anew takes the place of its own earlier report alone."""
    page_of(tmp_path, report("micro", micro(2.0)), report("requests", request(1.01)))
    page = page_of(tmp_path, report("micro", micro(3.5)))
    assert "(3.500, at most 3)" in page
    assert "No call failed." in page
    kept = tmp_path / "results" / FOLDER / "micro.json"
    assert kept.read_text() == (tmp_path / "micro-0.json").read_text()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "No such file"),
        ("# Notes", "is not JSON"),
        ("[1]", "is of none of the benchmarks micro, overhead, requests"),
        ('{"evaluation": "post-notification", "format": 1}', "is of none of the benchmarks"),
        (
            '{"benchmark": "micro", "format": 1}',
            "format: run benchmarks.costs.micro again",
        ),
        ('{"benchmark": "micro", "format": 4}', "is damaged"),
    ],
)
def test_a_file_of_something_else_is_one_line(
    text: str | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the file and what is wrong with it, with status 2; nothing is written."""
    path, results = tmp_path / "given.json", tmp_path / "results"
    if text is not None:
        path.write_text(text)
    assert main(["collect", str(path), "--results", str(results)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"costs: {path}")
    assert says in said
    assert said.strip().count("\n") == 0
    assert not results.exists()


def test_no_benchmark_is_given_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which of two reports is meant is not guessed."""
    files = put(tmp_path, report("micro", micro(2.0)), report("micro", micro(1.0)))
    assert main(["collect", *files, "--results", str(tmp_path / "results")]) == 2
    assert "the second of micro" in capsys.readouterr().err


def test_a_report_under_another_name_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file copied by hand to the wrong name is not shown in the wrong section."""
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "micro.json").write_text(json.dumps(report("requests", request(1.0))))
    assert main(["render", "--results", str(tmp_path)]) == 2
    assert "micro.json is of requests" in capsys.readouterr().err


def test_what_the_system_makes_of_it_stands_beside(tmp_path: Path) -> None:
    """A run with --as-is is a column of its own, is judged by no bound, and says how it was run."""
    held = report("overhead", overhead(1.2), overhead(1.3, "read"), processors="apart")
    left = report("overhead", overhead(1.7), processors="as they are", as_is=True)
    found = section(page_of(tmp_path, held, left), "overhead")
    assert found.strip().startswith("None of 2 cases with a bound is over it.")
    assert "| 1.200 | 1.190 to 1.210 | 1.700 | 1.5 | yes |" in found
    assert "| 1.300 | 1.290 to 1.310 |  | 1.5 | yes |" in found
    assert "| processors | apart |" in found
    assert "| processors | as they are |" in found
    alone = section(page_of(tmp_path / "alone", held), "overhead")
    assert "| as is |" not in alone


def test_the_committed_page_is_what_render_makes() -> None:
    """No figure in docs/results/costs.md was typed by hand, measured or not yet."""
    assert (RESULTS / PAGE).read_text(encoding="utf-8") == rendered(RESULTS)


def test_what_is_committed_is_of_full_runs() -> None:
    """Rough figures are not published."""
    reports = [read(path) for path in (RESULTS / FOLDER).glob("*.json")]
    assert not [each.benchmark for each in reports if each.short]
