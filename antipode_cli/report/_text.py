"""The report for a terminal: lines of styled spans, which are plain where nothing paints them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ._model import LintFinding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ._model import Cost, Finding, ReadGroup, Report


class Span(NamedTuple):
    """A piece of a line; the style is one of rich's, empty for none."""

    text: str
    style: str = ""


Line = tuple[Span, ...]


def text_lines(report: Report) -> Iterator[Line]:
    """The whole report; one line where nothing is new."""
    for finding in report.new:
        yield from finding_lines(finding)
        yield ()
    for lint in report.new_lints:
        yield from lint_lines(lint)
        yield ()
    for one in report.accepted:
        yield from accepted_lines(one)
    for place in report.unreasoned:
        message = f"{place}: `# antipode: ok(...)` must give its reason"
        yield (Span(message, "bold red"),)
    if report.gone:
        noun = "an id" if len(report.gone) == 1 else "ids"
        gone = ", ".join(report.gone)
        yield (Span(f"the baseline has {noun} that no record shows any more: {gone}", "dim"),)
    for held in report.held:
        yield from held_lines(held)
        yield ()
    if report.new or report.held:
        chosen = choice(report) if report.new else ""
        yield from _rows(("choice", chosen), ("", AUTOMATIC))
        yield ()
    for said in filter(None, (not_judged(report), *rules(report))):
        yield (Span(said, "dim"),)
    unseen = [f"{datastore}: {NOTHING_JUDGED}" for datastore in report.missing]
    unseen += [NOTHING_SEEN] if report.unseen else []
    for said in unseen:
        yield (Span(said, "bold red"),)
    bad = bool(report.new or report.new_lints or report.unreasoned or unseen)
    yield (Span(summary(report), "bold yellow" if bad else "green"),)


def finding_lines(finding: Finding) -> Iterator[Line]:
    """One finding: the write's line, the read's line, the fix, and the id."""
    title = f"{finding.datastore}: read from a replica without waiting for the write"
    count = plural(finding.reads, "read")
    if finding.confirmed:
        count += f", {finding.confirmed} confirmed stale"
    yield Span(finding.id, "bold red"), Span(" "), Span(title, "bold"), Span(f" ({count})", "dim")
    yield from _rows(
        ("write", str(finding.write)),
        ("read", str(finding.read)),
        ("fix", fix(finding)),
        ("cost", cost(finding.cost)),
        ("test", few(finding.tests)),
    )


def held_lines(held: ReadGroup) -> Iterator[Line]:
    """Reads of the same places that automatic barriers would have held."""
    count = plural(held.cost.reads, "read")
    if held.confirmed:
        count += f", {held.confirmed} stale without it"
    yield (
        Span(f"{held.datastore}: guarded by an automatic barrier", "bold"),
        Span(f" ({count})", "dim"),
    )
    yield from _rows(
        ("write", str(held.write)),
        ("read", str(held.read)),
        ("cost", cost(held.cost)),
        ("test", few(held.tests)),
    )


def lint_lines(lint: LintFinding) -> Iterator[Line]:
    """One lint: what it says, its line, and the id."""
    about = f"{lint.datastore}: " if lint.datastore else ""
    yield (
        Span(lint.id, "bold yellow"),
        Span(" "),
        Span(f"{about}{LINTS.get(lint.lint, lint.lint)}", "bold"),
        Span(f" ({lint.lint}, {plural(lint.count, 'time')})", "dim"),
    )
    yield from _rows(
        ("at", str(lint.place)), ("said", "; ".join(lint.details)), ("test", few(lint.tests))
    )


def accepted_lines(one: Finding | LintFinding) -> Iterator[Line]:
    """One finding or lint that a comment accepts, and why."""
    place = one.place if isinstance(one, LintFinding) else one.read
    yield Span(one.id), Span(f" accepted at {place}: {one.accepted}", "dim")


_FIRST = "call antipode.setup() there before all else, and skip none of it"
_UNCOVERED = (
    "what handles the request, or started the thread, is not covered. Call antipode.setup() before "
    "all else, and skip none of it"
)
LINTS = {
    "in-transaction": "published or called out inside an open transaction, whose writes have no "
    "position yet",
    "after-response": "written after the response had been sent, which does not depend on it",
    "nothing-to-wait-for": "a barrier whose lineage had nothing for it to wait for",
    "read-before-commit": "a read or barrier that cannot see what its request wrote, in a "
    "transaction that is not committed yet",
    "unscoped-read": f"read without a scope, so it waits for nothing: {_UNCOVERED}",
    "unscoped-write": f"written without a scope, so nothing can wait for it: {_UNCOVERED}",
    "late-setup": "antipode.setup() was called while a request was handled, which has no scope: "
    "call it first in the module that the service starts with",
    "message-without-lineage": "handled a message without a lineage: its publisher is not "
    f"instrumented, or publishes outside of any scope. If it is not, {_FIRST}",
    "unhandled-message": "no recorded process handled such a message: its consumer is not "
    f"instrumented, or not recorded. In the module that it starts with, {_FIRST}; and run it in "
    "the same dry run",
    "call-not-taken": "called a service of which no recorded process took the call. If it is "
    f"yours, {_FIRST}, and run it in the same dry run; if not, say "
    "configure(peers={'HOST': 'never'})",
    "undeclared-replica": "read through a client without reads_from='replica', from a server that "
    "says it is a replica: its reads are not judged. Add ?reads_from=replica to its rule",
    "unshowable": "its server cannot show what it has, so a barrier here would not succeed",
    "two-names": "one log has several names, perhaps one store under two: a barrier for one name "
    "does not hold the reads of the other. Give it one name in the rules of all services",
    "unnamed-client": "a client that no rule names: what it writes is in no lineage, and its reads "
    "wait for nothing",
    "shared-read": "read in the scope of one request for others, too, so it waits for nothing that "
    "these depend on: make what they share one of antipode.together(), or instrument its loader",
    "unknown-lineage": "read a value whose stored lineage is absent, foreign or unreadable",
}


#: What automatic barriers do not do.
AUTOMATIC = (
    "automatic barriers hold the reads of instrumented clients alone: effects that leave the "
    'system, as an e-mail or a charge, need antipode.barrier(at="now") before them'
)


def not_judged(report: Report) -> str:
    """Which datastores' reads nothing is known of, as far as records show."""
    if not report.unread:
        return ""
    return (
        f"not judged: {few(report.unread, most=10)} (written, but no read at a replica was "
        "recorded whose request depends on that: reads outside of a scope, and by clients that "
        "are not instrumented, are not recorded, and automatic barriers do not hold them either)"
    )


def rules(report: Report) -> Iterator[str]:
    """Which rules have found no client, and which names may be of one store, as records show."""
    if unused := report.rules_without_clients:
        yield (
            f"rules without a client: {few(unused, most=10)} (no recorded process made one by "
            "them: their address is wrong, or who uses it is not recorded)"
        )
    if unclear := report.unclear_names:
        yield (
            f"names of one log: {few([f'({each})' for each in unclear], most=10)} (databases "
            "of one server have one; if they are one store, give it one name in all services)"
        )


#: What is said of a datastore that is required.
NOTHING_JUDGED = (
    "nothing of it was judged, though it is required: no read of a replica is recorded whose scope "
    "depends on a write there"
)


#: What is said where findings shall fail, and there was nothing to find any in.
NOTHING_SEEN = (
    "no request is recorded, so nothing could be found: did the processes call antipode.setup(), "
    "and did anything call them?"
)


def choice(report: Report) -> str:
    """What to choose from: the missing barriers, or automatic ones and how long they would wait."""
    found = report.automatic
    barriers = plural(report.barriers, "barrier")
    wait = "for a wait that no evidence shows"
    if found.mean_s is not None:
        wait = f"for about {duration(found.mean_s)} a request at this lag"
    return (
        f'the {barriers} above, or antipode.configure(barriers="auto") {wait} '
        f"({found.waiting} of {plural(found.requests, 'request')} would wait, {found.known} known)"
    )


def fix(finding: Finding) -> str:
    """Where one barrier would guard the read, and what else it would guard."""
    advice = finding.advice
    others = few(advice.guards[1:])
    also = f", which guards {others} too" if others else ""
    return f"{advice.call} before {advice.before}{also}"


#: Why the wait of some reads is not known.
SAMPLE = (
    "evidence is a sample: of each place the first 100 reads, then ten a second, at most 64 at a "
    "time for 10 s each"
)


def cost(known: Cost) -> str:
    """What a barrier would have waited; empty where there is no evidence."""
    if known.median_s is None or known.p99_s is None:
        return ""
    median, most = duration(known.median_s), duration(known.p99_s)
    share = f"{known.known} of {known.reads} known"
    if known.known < known.reads:
        share += f"; {SAMPLE}"
    return f"a wait of {median} at the median, {most} at p99 ({share})"


def duration(seconds: float) -> str:
    """Seconds for a person."""
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    return f"{seconds:.3g} s"


def summary(report: Report) -> str:
    """The one line that a clean report consists of."""
    parts = [missing(report)]
    if report.held:
        parts.append(f"{plural(report.reads_held, 'read')} guarded by automatic barriers")
    if report.new_lints:
        parts.append(plural(len(report.new_lints), "lint"))
    if report.missing:
        parts.append(f"nothing judged of {few(report.missing, most=10)}")
    if report.accepted:
        parts.append(f"{len(report.accepted)} accepted")
    if report.known:
        parts.append(f"{report.known} known by the baseline")
    return f"antipode: {', '.join(parts)} ({counted(report)})"


def missing(report: Report) -> str:
    """How many barriers are missing, and for how many findings, where one guards several."""
    if not report.new:
        return "no missing barrier"
    barriers = plural(report.barriers, "missing barrier")
    several = len(report.new) > report.barriers
    return f"{barriers} for {len(report.new)} findings" if several else barriers


def counted(report: Report) -> str:
    """What the records are of."""
    reads = sum(line.reads for line in report.records.lines if line.kind == "read")
    processes = plural(len(report.records.processes), "process", "es")
    return (
        f"{plural(report.requests, 'request')} of {processes}, "
        f"{plural(reads, 'read')} of replicas with a write to see, "
        f"datastores: {few(report.datastores, most=10) or 'none'}"
    )


def notes(report: Report) -> list[str]:
    """What a reader should know of the records themselves."""
    return [
        f"{name} ends inside a line, which is left out: its process crashed or still runs"
        for name in report.records.truncated
    ]


def plural(number: int, noun: str, ending: str = "s") -> str:
    """*number* and its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{ending}"


def _rows(*rows: tuple[str, str]) -> Iterator[Line]:
    for name, value in rows:
        if value:
            yield Span(f"  {name:5} ", "dim"), Span(value)


def few(names: Sequence[str], most: int = 3) -> str:
    """The first of *names*, and how many there are besides."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def plain(lines: Iterable[Line]) -> str:
    """*lines* without any style."""
    return "".join("".join(span.text for span in line).rstrip() + "\n" for line in lines)
