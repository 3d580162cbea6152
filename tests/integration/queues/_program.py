"""A random program of jobs, which write, fail, are retried, send and chain others; and its model.

The model follows causes in memory: what each job must depend on when it begins. A mark of its own
is exact; a row that it writes is read at a late replica after a barrier.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import antipode
from antipode import WriteId
from antipode_shims import embedded

from ._jobs import HOUR

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode_testing import EmbeddedTopology

#: The program whose jobs run in this process.
programs: list[Program] = []


@dataclass
class Job:
    """What one job does."""

    number: int
    #: How many of its attempts fail.
    fails: int
    #: Whether it sends the others before it writes itself.
    early: bool
    sends: list[Job] = field(default_factory=list)
    #: What is performed once it ended well.
    then: Job | None = None
    attempts: int = 0
    #: What it must depend on.
    wants: frozenset[str] = frozenset()


class Program:
    """Jobs of a seed."""

    def __init__(self, topology: EmbeddedTopology, seed: int, most: int) -> None:
        """Nothing is sent yet; at most *most* jobs are made."""
        self.writer = embedded.shim("posts", topology.primary, reads_from="primary")
        self.reader = embedded.shim("posts", topology.replica, reads_from="replica")
        self.choice = random.Random(seed)
        self.jobs: dict[int, Job] = {}
        self.counts: Counter[str] = Counter()
        #: Puts a job into the queue, and what it names after it.
        self.send: Callable[[Job], object] = lambda _: None
        self._most = most
        self.errors: list[BaseException] = []

    def request(self) -> None:
        """One request that writes, and sends a job."""
        with antipode.scope():
            made, row = self._job(), f"r{len(self.jobs)}"
            self._write(row)
            self._send(made, frozenset([row]))

    def perform(self, number: int) -> None:
        """Do what the job does; a failure of the model's is noted, and fails no attempt.

        Raises:
            RuntimeError: this attempt is to fail.
        """
        job = self.jobs[number]
        job.attempts += 1
        self.counts["attempts"] += 1
        try:
            self._check(job)
            if job.early:
                self._send_all(job)
            row = f"{number}.{job.attempts}"
            self._write(row)
            job.wants |= {row}
            if not job.early:
                self._send_all(job)
        except BaseException as error:
            self.errors.append(error)
            raise
        if job.attempts <= job.fails:
            self.counts["failures"] += 1
            raise RuntimeError(number)
        if job.then is not None:
            job.then.wants |= job.wants

    def done(self) -> bool:
        """Whether all jobs were performed."""
        return bool(self.errors) or all(each.attempts > each.fails for each in self.jobs.values())

    def _check(self, job: Job) -> None:
        """It depends on what the model says, and finds that in the rows of the replica."""
        found = {each.key for each in antipode.current() if each.datastore == "marks"}
        assert found == job.wants, (job.number, job.attempts)
        assert not antipode.current().incomplete
        antipode.barrier(timeout=30, exclude=["marks"])
        for row in job.wants:
            assert self.reader.read(row)[0] == row.encode()
            self.counts["rows"] += 1

    def _write(self, row: str) -> None:
        self.writer.write(row, row.encode())
        antipode.append(WriteId("marks", row, 1, HOUR))

    def _send_all(self, job: Job) -> None:
        if job.attempts > job.fails:
            for each in job.sends:
                self._send(each, job.wants)

    def _send(self, job: Job, wants: frozenset[str]) -> None:
        job.wants |= wants
        if job.then is not None:
            job.then.wants |= wants
        self.send(job)

    def _job(self, depth: int = 0) -> Job:
        """A job as the seed has it."""
        draw = self.choice.random
        job = Job(len(self.jobs), self.choice.choice([0, 0, 1, 2]), early=draw() < 0.3)
        self.jobs[job.number] = job
        for _ in range(self.choice.choice([0, 1, 2]) if depth < 3 else 0):
            if len(self.jobs) < self._most:
                job.sends.append(self._job(depth + 1))
        if draw() < 0.4:
            job.then = Job(len(self.jobs), self.choice.choice([0, 1]), early=False)
            self.jobs[job.then.number] = job.then
        return job


def perform(number: int, *_: object) -> None:
    """A job of the program that runs here."""
    programs[-1].perform(number)
