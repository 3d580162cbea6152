"""The verdict over a run: shown, refuted, or nobody can tell."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

#: Exit statuses. A program has 2 for arguments that make no sense.
SHOWN: Final = 0
FAILED: Final = 1
INCONCLUSIVE: Final = 3
#: The share of trials without an answer, or of which the observer cannot tell, that is tolerated.
TOLERATED: Final = 0.01


@dataclass(frozen=True, slots=True)
class Trial:
    """One read that may be wrong, and what an observer of its own knows of it.

    The observer looks where the read looks, with a client that has nothing to do with whatever
    guards the read.

    Attributes:
        strategy: what was done so that the read is right.
        case: what was read; only the same are compared with each other.
        answered: whether the read was answered at all.
        right: whether its answer was.
        told: whether the observer knows when there was something to read.
        exposed: whether it came so soon that a read at that moment would have been wrong.
        early: whether it was answered, and a look that began later still found nothing: whatever
            it read, it was not what the observer watches.
    """

    strategy: str
    case: str
    answered: bool
    right: bool
    told: bool
    exposed: bool
    early: bool

    @property
    def waited(self) -> bool:
        """Whether it waited until it was right: what a guard is there for."""
        return self.exposed and self.answered and self.right and not self.early


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run comes to.

    Attributes:
        status: `SHOWN`, `FAILED` or `INCONCLUSIVE`.
        said: the line that explains it.
    """

    status: int
    said: str


def judge(
    trials: Iterable[Trial], *, guarded: Collection[str], unguarded: str, guard: str
) -> Verdict:
    """Whether *trials* show that no guarded read is wrong.

    Args:
        trials: all of them, but for those of a warm-up.
        guarded: strategies that are to be judged.
        unguarded: the strategy that does nothing: without wrong reads there, right ones elsewhere
            prove nothing.
        guard: what guards, in the explanation.
    """
    rounds: defaultdict[tuple[str, str], list[Trial]] = defaultdict(list)
    for trial in trials:
        rounds[trial.strategy, trial.case].append(trial)
    judged = {key: found for key, found in rounds.items() if key[0] in guarded}
    counts = Counter[str]()
    for trial in (trial for found in judged.values() for trial in found):
        counts["wrong"] += trial.answered and not trial.right
        counts["early"] += trial.early
        counts["waited"] += trial.waited
    if counts["wrong"] or counts["early"]:
        said = (
            f"FAILED: {counts['wrong']} wrong reads and {counts['early']} early ones with {guard}"
        )
        return Verdict(FAILED, said)
    doubts = [*_unanswered(rounds), *_doubts(rounds, judged, unguarded)]
    if doubts:
        return Verdict(INCONCLUSIVE, f"INCONCLUSIVE: {'; '.join(doubts)}")
    if not judged:
        return Verdict(SHOWN, f"done; {guard} was not among the strategies")
    reads = f"{counts['waited']} reads that would have been wrong"
    return Verdict(SHOWN, f"with {guard} 0 of {reads} were: each waited until it was right")


def _unanswered(rounds: dict[tuple[str, str], list[Trial]]) -> Iterator[str]:
    """What is said of rounds whose answers are missing: of any strategy, for all are compared."""
    for (strategy, case), found in rounds.items():
        lost = sum(not trial.answered for trial in found)
        if lost > TOLERATED * len(found):
            yield f"no answer to {lost} of {len(found)} ({case}, {strategy})"


def _doubts(
    rounds: dict[tuple[str, str], list[Trial]],
    judged: dict[tuple[str, str], list[Trial]],
    unguarded: str,
) -> Iterator[str]:
    """Why right reads of judged rounds may prove nothing."""
    for (strategy, case), found in judged.items():
        where = f"({case}, {strategy})"
        bare = rounds.get((unguarded, case), [])
        if not any(trial.answered and not trial.right for trial in bare):
            yield f"nothing was wrong without it {where}"
        untold = sum(not trial.told for trial in found)
        if untold > TOLERATED * len(found):
            yield f"the observer cannot tell of {untold} of {len(found)} {where}"
        elif not any(trial.waited for trial in found):
            yield f"nothing had to wait {where}"
