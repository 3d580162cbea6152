"""Whether a history is consistent: the weakest reading that it violates, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ._decide import Judge, Judgement, Verdict
from ._draw import shown, text
from ._explain import Explanation, explain
from ._limits import BUDGET_STEPS, ExhaustedError, Meter
from ._order import NOTHING, THIN_AIR, Component, Index, Reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._history import History, Progress

_NAMES = {
    Reading.MEMORY: "violation",
    Reading.PREFIX: "violation (XCY, carried)",
    Reading.WHOLE_LINEAGE: "violation (XCY, whole lineage)",
}
#: Most lineages that a reason names.
_FEW = 5


@dataclass(frozen=True, slots=True)
class Result:
    """What is known of a history.

    Attributes:
        verdict: ``ok`` under every reading, a ``violation``, or ``unknown``.
        reading: of a violation the weakest reading that is violated; None otherwise.
        reason: of ``unknown`` why, in a sentence; of a violation what is not known besides,
            mostly nothing.
        explanation: of a violation why; of mutual lineages how they read each other.
        operations: how many the history has.
        processes: how many processes.
    """

    verdict: Verdict
    reading: Reading | None = None
    reason: str = ""
    explanation: Explanation | None = None
    operations: int = 0
    processes: int = 0

    def __str__(self) -> str:
        """The verdict as the program prints it."""
        return self.verdict.value if self.reading is None else _NAMES[self.reading]

    def text(self) -> str:
        """The verdict and its explanation, for a terminal."""
        return text(f"{self}: {self._headline()}", self.explanation)

    def _headline(self) -> str:
        found = self.explanation
        if self.reading is None:
            return self.reason or f"{self.operations:,} operations of {self.processes:,} processes"
        if found is None or not found.cycle:
            said = "a read returned a version that nobody wrote"
        elif found.process:
            said = f"no order of all writes and of what {shown(found.process)} read is possible"
        else:
            said = "operations come before themselves"
        return f"{said}; {self.reason}" if self.reason else said


def check(
    history: History,
    *,
    budget_steps: int = BUDGET_STEPS,
    memory_limit_mib: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Check *history* by the readings of docs/spec/history.md (paper, section 4.2).

    Args:
        history: what happened.
        budget_steps: how many comparisons the search for serializations may take.
        memory_limit_mib: how much memory this process may have, in MiB; None for any.
        progress: hears what is done, and of how much.

    Raises:
        HistoryError: a message was sent twice, never, or after it was received.
    """
    index = Index(history)
    meter = Meter(budget_steps, memory_limit_mib, progress)
    try:
        found = _unfit(index) or _Check(index, meter).result()
    except ExhaustedError as error:
        found = Result(Verdict.UNKNOWN, reason=str(error))
    if found.verdict is Verdict.OK and history.left_out:
        reason = f"of {history.left_out:,} operations nobody knows what they read or received"
        found = Result(Verdict.UNKNOWN, reason=reason)
    return replace(found, operations=index.total, processes=len(index.column))


def _unfit(index: Index) -> Result | None:
    """The result where versions are not what the readings need."""
    operations = index.operations
    for first, second in index.duplicates:
        one, other = operations[second], "as the initial version"
        if first != NOTHING:
            other = operations[first].where or operations[first].process
        reason = (
            "versions are not unique, so nobody knows what a read returned: "
            f"{one.datastore}:{one.key} = {one.version} is written at {one.where or one.process} "
            f"and {other}"
        )
        return Result(Verdict.UNKNOWN, reason=reason)
    for i, source in enumerate(index.source):
        if source == THIN_AIR:
            return Result(Verdict.VIOLATION, Reading.MEMORY, "", Explanation((operations[i],)))
    return None


class _Check:
    """Judges the parts of a history that nothing connects, each separately."""

    def __init__(self, index: Index, meter: Meter) -> None:
        self._index, self._meter = index, meter

    def result(self) -> Result:
        # What no reading refuses is asked for once, by the strongest: it asks for all.
        strongest = self._judged(Reading.WHOLE_LINEAGE, self._index.components)
        suspect = [
            part
            for part, one in zip(self._index.components, strongest, strict=True)
            if one.conflicts or one.exhausted
        ]
        exhausted = ""
        for reading in Reading:
            last = reading is Reading.WHOLE_LINEAGE
            found = strongest if last else self._judged(reading, suspect)
            failed = next((one for one in found if one.conflicts), None)
            if failed:
                return Result(Verdict.VIOLATION, reading, exhausted, explain(self._index, failed))
            spent = next((one.exhausted for one in found if one.exhausted), "")
            if spent and not exhausted:
                exhausted = f"not decided by the reading {reading.value!r}: {spent}"
        mutual = next((one for one in strongest if one.mutual), None)
        if mutual and not exhausted:
            why = f"mutual lineages: {self._names(strongest)} read from each other before they end"
            return Result(Verdict.UNKNOWN, None, why, explain(self._index, mutual))
        return Result(Verdict.UNKNOWN if exhausted else Verdict.OK, reason=exhausted)

    def _judged(self, reading: Reading, parts: Sequence[Component]) -> list[Judgement]:
        if not parts:
            return []
        judge = Judge(self._index, reading, self._meter)
        return [judge.judge(part) for part in parts]

    def _names(self, found: Sequence[Judgement]) -> str:
        index = self._index
        vertices = {vertex for one in found for knot in one.mutual for vertex in knot.vertices}
        names = [
            str(index.operations[index.members[end - index.total][0]].lineage)
            for end in sorted(vertices)
            if end >= index.total
        ]
        few = ", ".join(names[:_FEW])
        return few if len(names) <= _FEW else f"{few} and {len(names) - _FEW} more"
