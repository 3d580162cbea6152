"""What a report says: findings with their advice, lints, and what they were counted from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ._joined import OneLog, rules_without_clients

if TYPE_CHECKING:
    from ._records import Entry, Record, Records, Site

FailOn = Literal["unguarded", "confirmed", "lint", "none"]


@dataclass(frozen=True, slots=True)
class Place:
    """A function, and the lines in it that a finding is about."""

    file: str
    function: str
    lines: tuple[int, ...]

    @property
    def line(self) -> int:
        """The first of the lines; 0 where none is known."""
        return self.lines[0] if self.lines else 0

    @property
    def name(self) -> str:
        """``file in function``, which edits elsewhere in the file do not change."""
        return self._named(self.file)

    def __str__(self) -> str:
        """``file:line in function``, the lines separated by commas."""
        return self._named(f"{self.file}:{','.join(map(str, self.lines))}")

    def _named(self, where: str) -> str:
        if not self.file:
            return "an unknown place (no record names it)"
        return f"{where} in {self.function}" if self.function else where


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Unguarded or automatic reads of one write, one or several in a row.

    Attributes:
        write: the record of the write; None where there is none.
        waits: seconds until it was visible, by evidence; None where evidence does not know.
    """

    read: Record
    entry: Entry
    write: Record | None
    confirmed: bool
    waits: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Cost:
    """What barriers at reads of the same places would have waited, in seconds.

    Attributes:
        known: how many of them have evidence of it; without one the other two are None.
        reads: how many there were.
    """

    median_s: float | None
    p99_s: float | None
    known: int
    reads: int


@dataclass(frozen=True, slots=True)
class Advice:
    """Where one barrier would have guarded a finding.

    Attributes:
        before: the read before which to place it, the earliest that is of use.
        guards: the ids of the findings that it would have guarded, this one's first.
        datastores: those of these findings, sorted: what is read there.
    """

    before: Site
    guards: tuple[str, ...]
    datastores: tuple[str, ...]

    @property
    def call(self) -> str:
        """The barrier, as code: on what is read there, whatever else requests may depend on."""
        return f"antipode.barrier(timeout=..., only={list(self.datastores)})"


@dataclass(frozen=True, slots=True)
class Finding:
    """All unguarded reads of the same read and write places (docs/spec/dry-run.md).

    Attributes:
        known: whether the baseline has it.
        accepted: the reason in the comment that accepts it, or empty.
    """

    id: str
    datastore: str
    read: Place
    write: Place
    occurrences: tuple[Occurrence, ...]
    services: tuple[str, ...]
    tests: tuple[str, ...]
    confirmed: int
    cost: Cost
    advice: Advice
    known: bool = False
    accepted: str = ""

    @property
    def new(self) -> bool:
        """Whether the baseline does not have it and no comment accepts it."""
        return not (self.known or self.accepted)

    @property
    def reads(self) -> int:
        """How many reads it is about."""
        return self.cost.reads


@dataclass(frozen=True, slots=True)
class ReadGroup:
    """All reads of the same read and write places, of one verdict."""

    datastore: str
    read: Place
    write: Place
    services: tuple[str, ...]
    tests: tuple[str, ...]
    confirmed: int
    cost: Cost


@dataclass(frozen=True, slots=True)
class LintFinding:
    """All records of the same lint at the same place; known and accepted as findings are."""

    id: str
    lint: str
    datastore: str
    place: Place
    details: tuple[str, ...]
    count: int
    services: tuple[str, ...]
    tests: tuple[str, ...]
    known: bool = False
    accepted: str = ""

    @property
    def new(self) -> bool:
        """Whether the baseline does not have it and no comment accepts it."""
        return not (self.known or self.accepted)


@dataclass(frozen=True, slots=True)
class AutomaticCost:
    """What automatic barriers would have waited in place of those that are missing.

    Attributes:
        requests: how many there are in all.
        waiting: how many of them have an unguarded read.
        known: of how many of these evidence says how long that would have been.
        mean_s: seconds for each of all requests, those without a wait included; None where no
            evidence says so.
    """

    requests: int
    waiting: int
    known: int
    mean_s: float | None


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that the formats render.

    Attributes:
        held: reads that automatic barriers would have held: no findings.
        gone: ids of the baseline that were not found any more, sorted.
        fail_on: what makes the report fail.
        unreasoned: places of comments that would accept something, but give no reason.
        required: datastores of which something must have been judged, or SERVICE:STORE.
    """

    findings: tuple[Finding, ...]
    lints: tuple[LintFinding, ...]
    held: tuple[ReadGroup, ...]
    records: Records
    gone: tuple[str, ...] = ()
    fail_on: FailOn = "none"
    unreasoned: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()

    @property
    def new(self) -> tuple[Finding, ...]:
        """The findings that are neither in the baseline nor accepted."""
        return tuple(finding for finding in self.findings if finding.new)

    @property
    def new_lints(self) -> tuple[LintFinding, ...]:
        """The lints that are neither in the baseline nor accepted."""
        return tuple(lint for lint in self.lints if lint.new)

    @property
    def known(self) -> int:
        """How many findings and lints the baseline has; those accepted as well are not counted."""
        return sum(one.known and not one.accepted for one in self.everything)

    @property
    def accepted(self) -> tuple[Finding | LintFinding, ...]:
        """What comments accept."""
        return tuple(one for one in self.everything if one.accepted)

    @property
    def everything(self) -> tuple[Finding | LintFinding, ...]:
        """All findings, then all lints."""
        return *self.findings, *self.lints

    @property
    def reads_held(self) -> int:
        """How many reads automatic barriers would have held."""
        return sum(one.cost.reads for one in self.held)

    @property
    def unread(self) -> tuple[str, ...]:
        """Datastores that were written, and of which no read of a replica is recorded."""
        lines = self.records.lines
        written = {line.writes[0].datastore for line in lines if line.kind == "write"}
        return tuple(sorted(written - self._judged))

    @property
    def rules_without_clients(self) -> tuple[str, ...]:
        """The entries of rules by which no recorded process made a client, where that is known."""
        return rules_without_clients(self.records)

    @property
    def unclear_names(self) -> tuple[str, ...]:
        """Names of one log of which nothing says whether they are one store."""
        return OneLog(self.records).unclear

    @property
    def missing(self) -> tuple[str, ...]:
        """What is required and was not judged: datastores, or a service's as SERVICE:STORE."""
        return tuple(sorted(self.required - self._judged))

    @property
    def requests(self) -> int:
        """How many requests are recorded."""
        return len({line.request for line in self.records.lines if line.request is not None})

    @property
    def datastores(self) -> tuple[str, ...]:
        """The datastores that were written, or of which reads were judged."""
        lines = self.records.lines
        read = {line.datastore for line in lines if line.kind == "read"}
        return tuple(sorted(read | {w.datastore for line in lines for w in line.writes}))

    @property
    def unseen(self) -> bool:
        """Whether findings shall fail, and no request was seen that could have any."""
        return self.fail_on != "none" and not self.requests

    @property
    def _judged(self) -> set[str]:
        """The datastores of which a read of a replica, with a write to see, is recorded.

        Each by itself, and as SERVICE:STORE for each service that made such a read.
        """
        reads = [line for line in self.records.lines if line.kind == "read"]
        of_services = {f"{self.records.process(one).service}:{one.datastore}" for one in reads}
        return of_services | {line.datastore for line in reads}

    @property
    def barriers(self) -> int:
        """How many barriers would guard all new findings."""
        return len({finding.advice.before for finding in self.new})

    @property
    def automatic(self) -> AutomaticCost:
        """What automatic barriers would have cost at the new findings.

        The reads of a request overlap: while one waits, time passes for the others, too.
        """
        requests = {line.request for line in self.records.lines if line.request is not None}
        waits: dict[str, float | None] = {}
        for one in (each for finding in self.new for each in finding.occurrences):
            request = one.read.request
            if request is not None:
                known = [waits.get(request), *one.waits[-1:]]
                waits[request] = max((s for s in known if s is not None), default=None)
        told = [wait for wait in waits.values() if wait is not None]
        # What is not known is taken to be as what is.
        mean_s = sum(told) / len(told) * len(waits) / len(requests) if told else None
        return AutomaticCost(len(requests), len(waits), len(told), mean_s)

    def fails(self, finding: Finding | LintFinding) -> bool:
        """Whether *finding* is one that ``fail_on`` asks for, and new.

        Each level has the one before it in it: none, confirmed, unguarded, lint.
        """
        if not finding.new or self.fail_on == "none":
            return False
        if isinstance(finding, LintFinding):
            return self.fail_on == "lint"
        return self.fail_on != "confirmed" or finding.confirmed > 0

    @property
    def failed(self) -> bool:
        """Whether any finding fails, a comment gives no reason, or what is wanted was not seen."""
        bad = bool(self.unreasoned or self.missing or self.unseen)
        return bad or any(map(self.fails, self.everything))
