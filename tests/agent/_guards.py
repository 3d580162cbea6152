"""One read that is held back, by answers that a vector gives: what is asked, and how it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import AntipodeError, StaleSnapshot, Status, WriteId
from antipode._barrier.decisions import Policies
from antipode._barrier.demands import Demand
from antipode._runtime.clock import Allowance
from antipode.shim import (
    Floor,
    Guarded,
    Observation,
    Places,
    Repeated,
    Unreachable,
    Verdict,
    drive,
    guard,
)
from antipode_testing import FakeStore, VirtualClock

if TYPE_CHECKING:
    from antipode.shim import Steps

WRITE = WriteId("a", "k", 5, written_hour=500_000)
POLICIES = Policies("raise", "raise", "raise", horizon_h=168, hour=500_000)
STATUSES = {"shown": Status.VISIBLE, "early": Status.NOT_YET, "never": Status.UNDECIDABLE}


class Unproved(Exception):  # noqa: N818 - an answer
    """A poll outside shows nothing."""


class Told:
    """A step: what is asked or done, which a vector names, and its answer."""

    def __init__(self, name: str, answer: Any = None) -> None:
        self._name, self._answer = name, answer

    def do(self, told: list[str]) -> Any:
        told.append(self._name)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    do_async = do


class Read(Guarded):
    """Answers as its vector does."""

    watched = False
    unproved = (Unproved,)

    def __init__(self, given: dict[str, Any], told: list[str]) -> None:
        self._clock = VirtualClock()
        demand = Demand([WRITE], policies=POLICIES, allowance=Allowance(given.get("left_s", 5)))
        self.held = Floor("a", [demand], clock=self._clock)
        self.shim = FakeStore("a", self._clock)
        self.leads = given.get("leads", False)
        self._verdict, self._asked = Verdict(given["verdict"]), given.get("asked")
        self._answers = {name: iter(given.get(name, ())) for name in ("polls", "outside", "rides")}
        self._again = Repeated(self.shim, Places(lambda: 0)) if given.get("repeats") else None
        self._told, self._questions_left = told, given.get("left", False)

    @property
    def again(self) -> Repeated | None:
        return self._again

    def judge(self) -> Verdict:
        self._told.append("judge")
        return self._verdict

    def questions(self) -> Steps[Verdict]:
        verdict = yield Told("ask", self._asked)
        return Verdict(verdict)

    def poll(self, timeout_s: float, *, outside: bool) -> Steps[Observation]:
        assert timeout_s > 0
        name = "outside" if outside else "poll"
        answer = next(self._answers["outside" if outside else "polls"])
        errors = {"unproved": Unproved(), "away": Unreachable("away")}
        seen = Observation("s", {WRITE: STATUSES[answer]}) if answer in STATUSES else None
        found: Observation = yield Told(name, errors.get(answer, seen))
        return found

    def ride(self) -> Steps[bool]:
        answer = yield Told("ride", next(self._answers["rides"]))
        return bool(answer == "shown")

    def settle(self, seen: Observation | None, *, outside: bool) -> Steps[None] | None:
        self._told.append("settle outside" if outside else "settle")
        return self._left() if self._questions_left else None

    def _left(self) -> Steps[None]:
        yield Told("ask what is left")

    def stale(self) -> None:
        self._told.append("stale")
        raise StaleSnapshot("an older snapshot")


def run(given: dict[str, Any]) -> dict[str, Any]:
    """What is done for a read, in order, and how it ends."""
    told: list[str] = []
    read = Read(given, told)
    try:
        outcome = "sent" if drive(noted(guard(read), told), told) else "early"
    except (AntipodeError, Unreachable) as error:
        outcome = getattr(error, "code", "unreachable")
    return {"steps": told, "outcome": outcome}


def noted(steps: Steps[bool], told: list[str]) -> Steps[bool]:
    """The same conversation, whose pauses are noted and take no time."""
    answer: Any = None
    make = steps.send
    while True:
        try:
            step = make(answer)
        except StopIteration as end:
            return bool(end.value)
        if type(step).__name__ == "Pause":
            step = Told("pause")
        try:
            answer, make = (yield step), steps.send
        except Exception as error:  # noqa: BLE001 - it goes to the conversation
            answer, make = error, steps.throw
