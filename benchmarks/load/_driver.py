"""Runs the driver over a plan and reads what it prints."""

from __future__ import annotations

import json
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from antipode_testing import uninterrupted
from benchmarks._statistics import percentile

from ._build import LoadDriverError, driver
from ._plan import write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ._plan import Request

_END_S = 10.0
#: A driver that is later than this at 1 in 100 requests was short of processor time: what it sent
#: was no open loop at the times of the plan.
OPEN_LOOP_MS = 50.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request. Times are `time.monotonic`, in seconds.

    Attributes:
        number: of the request in the plan.
        due_s: when it was to be sent.
        sent_s: when the driver got to it.
        ended_s: when its answer was there, or it failed.
        status: of HTTP; 0: there was no answer.
        error: why there was none.
        size: of the body that came, in bytes.
        body: itself, where it was asked for.
        then: what came of the follow-up, if there was one.
    """

    number: int
    due_s: float
    sent_s: float
    ended_s: float
    status: int
    error: str = ""
    size: int = 0
    body: str = ""
    then: Answer | None = None

    @property
    def good(self) -> bool:
        """Whether the service did what it was asked for, by its status."""
        return 200 <= self.status < 300

    @property
    def latency_s(self) -> float:
        """From when it was due to the end of its answer."""
        return self.ended_s - self.due_s


@dataclass(frozen=True, slots=True)
class Load:
    """What came of a plan.

    Attributes:
        began_s: `time.monotonic` when the plan began.
        warm_up: answers that a benchmark leaves out.
        answers: the others, in the order of the plan.
    """

    began_s: float
    warm_up: list[Answer]
    answers: list[Answer]

    @property
    def late_ms(self) -> float:
        """How late the driver itself was, at the 99th percentile."""
        late = sorted((it.sent_s - it.due_s) * 1000 for it in self.answers)
        return percentile(late, 99) if late else 0.0

    @property
    def open_loop(self) -> bool:
        """Whether requests were sent when they were due, but for 1 in 100."""
        return self.late_ms <= OPEN_LOOP_MS

    def achieved(self) -> float:
        """Good answers a second, from the first due time to the last answer; 0 for none."""
        good = [it for it in self.answers if it.good]
        if not good:
            return 0.0
        took_s = max(it.ended_s for it in good) - min(it.due_s for it in self.answers)
        return len(good) / took_s


def drive(
    requests: Sequence[Request],
    due_s: Iterable[float],
    *,
    warm_up: int = 0,
    timeout_s: float = 60.0,
    on_begin: Callable[[float], None] | None = None,
    on_answer: Callable[[Answer], None] | None = None,
) -> Load:
    """Send *requests* when they are due, and return once each has its answer.

    Args:
        requests: the plan.
        due_s: for each, when; seconds from the beginning, in order (see `arrivals`).
        warm_up: how many at the beginning are kept apart.
        timeout_s: of a request, after which it counts as not answered.
        on_begin: is called once, with the time at which the plan begins.
        on_answer: is called with each answer as it comes.

    Raises:
        LoadDriverError: the driver is missing, or it failed.
    """
    program = driver()
    with tempfile.TemporaryDirectory(prefix="antipode-load-") as folder:
        plan, errors = Path(folder, "plan.jsonl"), Path(folder, "stderr")
        with plan.open("w", encoding="utf-8") as file:
            write(file, requests, list(islice(due_s, len(requests))), warm_up)
        with errors.open("wb") as said:
            process = _start([str(program), str(plan), f"{timeout_s:f}s"], said)
            try:
                began_s, found = _read(process, on_begin, on_answer)
            finally:
                _end(process)
        if process.returncode or len(found) != len(requests):
            why = errors.read_text(encoding="utf-8", errors="replace").strip()[:2000]
            raise LoadDriverError(
                f"the load driver ended with status {process.returncode} and {len(found)} of "
                f"{len(requests)} answers: {why or 'it said nothing'}"
            )
    found.sort(key=lambda answer: answer.number)
    return Load(began_s, found[:warm_up], found[warm_up:])


def _start(command: Sequence[str], said: BinaryIO) -> subprocess.Popen[str]:
    with uninterrupted():
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            # Ctrl-C is for this program, which then ends the other one.
            start_new_session=True,
        )


def _read(
    process: subprocess.Popen[str],
    on_begin: Callable[[float], None] | None,
    on_answer: Callable[[Answer], None] | None,
) -> tuple[float, list[Answer]]:
    began_s, found = 0.0, []
    for line in process.stdout or ():
        fields = json.loads(line)
        if "began_ns" in fields:
            began_s = fields["began_ns"] / 1e9
            if on_begin is not None:
                on_begin(began_s)
            continue
        found.append(_answer(fields))
        if on_answer is not None:
            on_answer(found[-1])
    process.wait()
    return began_s, found


def _answer(fields: dict[str, Any]) -> Answer:
    then = fields.get("then")
    return Answer(
        number=fields["seq"],
        due_s=fields["due_ns"] / 1e9,
        sent_s=fields["sent_ns"] / 1e9,
        ended_s=fields["ended_ns"] / 1e9,
        status=fields["status"],
        error=fields.get("error", ""),
        size=fields["bytes"],
        body=fields.get("body", ""),
        then=_answer(then) if then else None,
    )


def _end(process: subprocess.Popen[str]) -> None:
    """End it, if it has not ended; what it waits for may never come."""
    if process.poll() is None:
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)
    if process.stdout is not None:
        process.stdout.close()
