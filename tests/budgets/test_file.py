"""The files of budgets: what differs is named, and no count rises without a reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.budgets._file import HERE, BudgetFile, Counted, NotApplicableError, OutOfBudgetError

if TYPE_CHECKING:
    from pathlib import Path

DRIVERS = {"redis": "8.1.0"}
HOOK = "antipode_shims/redis/_clients/hooks.py:send"


def counted(calls: int = 72, *, release: str = "8.1.0") -> Counted:
    """A SET of so many calls, all of one function."""
    return Counted(
        "redis-py SET", {"calls": calls, "exchanges": 0}, {"redis": release}, {HOOK: calls}
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose budget of a SET is 72 calls."""
    BudgetFile("python-3.11", tmp_path).move(counted())
    return tmp_path


def line(folder: Path) -> dict[str, object]:
    """The line of a SET as the file has it."""
    text = (folder / "counts" / "python-3.11.json").read_text(encoding="utf-8")
    content: dict[str, dict[str, object]] = json.loads(text)
    return content["redis-py SET"]


def test_what_was_counted_is_within_its_budget(folder: Path) -> None:
    """A line that was written is met by the same count."""
    BudgetFile("python-3.11", folder).compare(counted())


@pytest.mark.parametrize("calls", [71, 73])
def test_one_call_more_or_less_names_line_count_and_function(folder: Path, calls: int) -> None:
    """Client, call, both counts and the function that was called are in the message."""
    with pytest.raises(OutOfBudgetError) as raised:
        BudgetFile("python-3.11", folder).compare(counted(calls))
    assert f"redis-py SET: calls 72 -> {calls}" in str(raised.value)
    assert f"  {calls - 72:+d} {HOOK} (72 -> {calls})" in str(raised.value)


def test_a_line_that_nobody_wrote_is_red(folder: Path) -> None:
    """A call without a budget fails."""
    with pytest.raises(OutOfBudgetError, match="redis-py GET: no budget yet"):
        BudgetFile("python-3.11", folder).compare(Counted("redis-py GET", {"calls": 1}, DRIVERS))


def test_another_release_of_a_driver_is_not_compared(folder: Path) -> None:
    """The message names the line, and both releases."""
    with pytest.raises(NotApplicableError, match=r"redis-py SET: .*redis 8\.1\.0.*redis 8\.2\.0"):
        BudgetFile("python-3.11", folder).compare(counted(release="8.2.0"))


def test_another_version_of_python_is_not_compared(folder: Path) -> None:
    """Nothing was counted there, so nothing is within a budget or over it."""
    with pytest.raises(NotApplicableError, match=r"python-3\.13"):
        BudgetFile("python-3.13", folder).compare(counted())


def test_drivers_are_locked_at_what_was_counted() -> None:
    """What `make` installs is what every line of Python was counted with."""
    text = (HERE.parents[1] / "tools" / "drivers.txt").read_text(encoding="utf-8")
    locked = dict(line.split("==") for line in text.splitlines() if not line.startswith("#"))
    for path in sorted((HERE / "counts").glob("python-*.json")):
        lines = json.loads(path.read_text(encoding="utf-8")).values()
        counted = {name: release for line in lines for name, release in line["drivers"].items()}
        assert counted == locked, path.name


def test_a_fall_is_written_without_a_reason(folder: Path) -> None:
    """Who makes a call cheaper moves its budget down and owes no words."""
    BudgetFile("python-3.11", folder).move(counted(60))
    assert line(folder) == {"counts": {"calls": 60, "exchanges": 0}, "drivers": DRIVERS}


def test_a_rise_without_a_reason_is_refused(folder: Path) -> None:
    """The file stays as it is, and the message says what to do."""
    with pytest.raises(OutOfBudgetError, match="REASON="):
        BudgetFile("python-3.11", folder).move(counted(73))
    BudgetFile("python-3.11", folder).compare(counted(72))


def test_a_rise_with_a_reason_keeps_it_beside_the_number(folder: Path) -> None:
    """It stays while the number does, and goes with it."""
    BudgetFile("python-3.11", folder).move(counted(73), "INFO is parsed for its age")
    assert line(folder)["reasons"] == {"calls 73": "INFO is parsed for its age"}
    BudgetFile("python-3.11", folder).move(counted(73))
    assert line(folder)["reasons"] == {"calls 73": "INFO is parsed for its age"}
    BudgetFile("python-3.11", folder).move(counted(72))
    assert "reasons" not in line(folder)


def test_a_reason_of_another_number_counts_for_nothing(folder: Path) -> None:
    """Each rise has a reason of its own."""
    BudgetFile("python-3.11", folder).move(counted(73), "INFO is parsed for its age")
    with pytest.raises(OutOfBudgetError, match="REASON="):
        BudgetFile("python-3.11", folder).move(counted(74))


def test_a_reason_may_be_written_into_the_file_first(folder: Path) -> None:
    """Under the number to come."""
    path = folder / "counts" / "python-3.11.json"
    text = path.read_text(encoding="utf-8")
    said = text.replace('"drivers"', '"reasons": {"calls 73": "it is needed"}, "drivers"')
    path.write_text(said, encoding="utf-8")
    BudgetFile("python-3.11", folder).move(counted(73))
    assert line(folder)["reasons"] == {"calls 73": "it is needed"}
