"""What the checker says of histories whose verdict is known, by their names or by brute force."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from antipode.checker import History, Operation, Reading, Result, Verdict, check, load
from tests.checker import generator, oracle

if TYPE_CHECKING:
    from collections.abc import Iterable

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.jsonl"))
#: Of these a read or a version says what the definition knows nothing of.
BEYOND = {"thin-air.memory", "written-twice.unknown", "initial.ok", "initial.memory"}
#: How many random histories one test tries in the quick tier.
SOME = 250
#: Seeds whose smallest cycle has more operations than are needed.
LARGER = (347, 745, 876, 2808, 6943, 7041)


def said(result: Result) -> str:
    """The verdict, of a violation the weakest reading, as names of files have it."""
    found = result.reading.value if result.reading else result.verdict.value
    return found.replace(" ", "-")


def agree(seeds: Iterable[int]) -> Counter[str]:
    """Compare verdicts and explanations with brute force; how many of each were found."""
    found: Counter[str] = Counter()
    for seed in seeds:
        history = generator.history(Random(seed))
        wanted = {reading: oracle.verdict(history.operations, reading.value) for reading in Reading}
        result = check(history)
        assert result.reading is next((r for r in Reading if wanted[r] == "violation"), None), seed
        if result.reading is None:
            assert result.verdict.value == wanted[Reading.WHOLE_LINEAGE], seed
        if result.explanation:
            alone = oracle.weakest(result.explanation.operations)
            assert alone.replace(" ", "-") == said(result), seed
        found += Counter(f"{reading.value}: {verdict}" for reading, verdict in wanted.items())
        found[said(result)] += 1
    return found


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_histories_have_the_verdict_of_their_name(path: Path) -> None:
    """Each file under `histories` has the verdict, or violates the reading, that its name says."""
    assert said(check(load([path]))) == path.stem.partition(".")[2]


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_brute_force_agrees_on_them(path: Path) -> None:
    """The oracle gives these histories the verdicts that a person gave them."""
    if path.stem not in BEYOND:
        found = oracle.weakest(load([path]).operations)
        assert found.replace(" ", "-") == path.stem.partition(".")[2]


@pytest.mark.parametrize("part", range(4))
def test_brute_force_agrees_on_random_histories(part: int) -> None:
    """Each reading's verdict is the one of a search through all serializations."""
    found = agree(range(part * SOME, (part + 1) * SOME))
    for reading in Reading:
        assert found[f"{reading.value}: ok"] > SOME / 10
        assert found[f"{reading.value}: violation"] > SOME / 10
    # And each is the weakest that fails of some.
    assert min(found[name] for name in ("memory", "prefix", "whole-lineage", "unknown", "ok")) > 0


@pytest.mark.parametrize("seed", [*range(40), *LARGER])
def test_nothing_can_be_left_out_of_an_explanation(seed: int) -> None:
    """Without any one operation, and reads of it, what explains a violation is none."""
    found = check(generator.history(Random(seed)))
    if found.verdict is not Verdict.VIOLATION or not found.explanation:
        return
    operations = found.explanation.operations
    for gone in operations:
        left = [one for one in operations if not needs(one, gone)]
        assert check(History(tuple(left))).reading is not found.reading


def needs(one: Operation, gone: Operation) -> bool:
    """Whether *one* is, reads or receives what is *gone*."""
    read = one.kind == "read" and gone.kind == "write"
    if read and (one.subject, one.version) == (gone.subject, gone.version):
        return True
    received = one.kind == "receive" and gone.kind == "send" and one.message == gone.message
    return received or one is gone


def test_a_cycle_is_closed() -> None:
    """Each edge of an explanation begins where the one before it ends, those of reasons too."""
    for seed in range(100):
        found = check(generator.history(Random(seed))).explanation
        if found:
            edges = found.cycle
            assert [e.later for e in edges] == [e.earlier for e in (*edges[1:], edges[0])]


def test_parts_that_nothing_connects_are_judged_apart() -> None:
    """One violation among many requests that share nothing is found, and alone explained."""
    fine = [
        Operation(kind, f"{kind} {n}", f"L{n}", "d", f"k{n}", "1")
        for n in range(2000)
        for kind in ("write", "read")
    ]
    bad = load([path for path in HISTORIES if path.stem == "overtaking.memory"]).operations
    result = check(History((*fine[:900], *bad, *fine[900:])))
    assert result.explanation
    assert result.explanation.operations == bad


def test_a_spent_budget_is_unknown() -> None:
    """Where the search for a serialization may not go on, the answer is no ``ok``."""
    path = next(path for path in HISTORIES if path.stem == "seen-sooner.ok")
    result = check(load([path]), budget_steps=1)
    assert result.verdict is Verdict.UNKNOWN
    assert "budget of 1 steps is spent" in result.reason


def test_plain_causality_needs_no_budget() -> None:
    """What an overwritten read alone shows is a violation, whatever the budget is."""
    path = next(path for path in HISTORIES if path.stem == "overwritten.memory")
    assert check(load([path]), budget_steps=1).verdict is Verdict.VIOLATION


def test_a_memory_limit_is_unknown() -> None:
    """A check that needs more memory than it may have says so."""
    result = check(load(HISTORIES[:1]), memory_limit_mib=1)
    assert result.verdict is Verdict.UNKNOWN
    assert "memory limit of 1 MiB" in result.reason
