"""What a random program says of one client, the same for every program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    #: Runs so many steps of one client, drawn from a seed.
    Client = Callable[[int, int], "Line"]

#: Of how many steps one may be an alarm.
STEPS_AN_ALARM = 10


@dataclass(frozen=True)
class Line:
    """How the steps of one client ended.

    Attributes:
        steps: how many were made.
        faults: how often each fault was seen (``lost``, ``early``, ``swallowed``, ...).
        seconds: what they took.
        alarms: needless marks, waits and refusals, of which a few are no fault.
        seed: what the first session was drawn from; None where moments are not drawn again.
        notes: what is left out and why, and how to see the faults again.
    """

    steps: int
    faults: Mapping[str, int]
    seconds: float
    alarms: int = 0
    seed: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether something was tried, and nothing was wrong."""
        bearable = self.alarms * STEPS_AN_ALARM <= self.steps
        return self.steps > 0 and bearable and not any(self.faults.values())

    def __str__(self) -> str:
        """In one line, and one for each note."""
        faults = "".join(f", {times} {fault}" for fault, times in self.faults.items())
        seed = "" if self.seed is None else f", seed {self.seed}"
        line = f"{self.steps} steps{faults}, {self.alarms} alarms, {self.seconds:.1f} s{seed}"
        return "\n    ".join((line, *self.notes))
