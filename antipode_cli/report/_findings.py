"""Findings: reads joined with the writes of all processes (docs/spec/dry-run.md)."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from typing import TYPE_CHECKING

from ._advice import Advisor
from ._joined import two_names, unhandled, untaken
from ._model import Cost, Finding, LintFinding, Occurrence, Place, ReadGroup, Report

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ._model import FailOn
    from ._records import Entry, Record, Records

#: Most of the distinct details of a lint that are kept.
_DETAILS = 5
#: Where an environment keeps the packages that are installed in it.
_PACKAGES = re.compile(r".*[/\\](?:site|dist)-packages[/\\]", re.DOTALL)
_Key = tuple[str, str, str, str, str]
_Groups = defaultdict[_Key, list["Occurrence"]]


def report(
    records: Records,
    *,
    baseline: frozenset[str] = frozenset(),
    fail_on: FailOn = "none",
    required: frozenset[str] = frozenset(),
) -> Report:
    """What *records* say, in the order of the reads' places.

    Args:
        records: of all processes.
        baseline: ids of findings that are known already and never fail.
        fail_on: what makes the report fail.
        required: datastores of which something must have been judged, or it fails.
    """
    unguarded, held = _grouped(records)
    findings = _findings(records, unguarded, baseline)
    lints = _lints(records, baseline)
    seen = {finding.id for finding in findings} | {lint.id for lint in lints}
    gone = tuple(sorted(baseline - seen))
    groups = _held(records, held)
    return Report(findings, lints, groups, records, gone, fail_on, required=required)


def finding_id(kind: str, *parts: str) -> str:
    """The id of a finding: the kind's first letter and eight hex digits, without any line.

    Where packages are installed is not part of it either.
    """
    text = "".join(f"{_PACKAGES.sub('', part)}\n" for part in (kind, *parts))
    return kind[0] + hashlib.sha256(text.encode()).hexdigest()[:8]


def percentile(values: Sequence[tuple[float, int]], percent: float) -> float:
    """The nearest-rank percentile of *values*, each with how often it occurs, sorted, not empty."""
    left = -(-sum(times for _, times in values) * percent // 100)
    for value, times in values:
        left -= times
        if left <= 0:
            return value
    return values[-1][0]


def _grouped(records: Records) -> tuple[_Groups, _Groups]:
    """The unguarded and the automatic reads, by what makes them the same."""
    unguarded: _Groups = defaultdict(list)
    held: _Groups = defaultdict(list)
    for one in _occurrences(records):
        (held if one.read.verdict == "automatic" else unguarded)[_key(one)].append(one)
    return unguarded, held


def _held(records: Records, grouped: _Groups) -> tuple[ReadGroup, ...]:
    return tuple(_group(grouped[key], key, records) for key in sorted(grouped))


def _findings(records: Records, grouped: _Groups, baseline: frozenset[str]) -> tuple[Finding, ...]:
    ids = {key: finding_id("unguarded", *key) for key in grouped}
    advisor = Advisor(
        records, {_identity(o): ids[k] for k, found in grouped.items() for o in found}
    )
    findings = [
        _finding(ids[key], key, found, records, advisor, known=ids[key] in baseline)
        for key, found in grouped.items()
    ]
    findings.sort(key=lambda one: (one.read.file, one.read.line, one.datastore, one.id))
    return tuple(findings)


def _key(one: Occurrence) -> _Key:
    """What makes two occurrences the same finding."""
    read, write = one.read.site, one.write.site if one.write else None
    return (
        one.read.datastore,
        read.file,
        read.function,
        write.file if write else "",
        write.function if write else "",
    )


def _identity(one: Occurrence) -> tuple[str, int, Entry]:
    return one.read.process, one.read.n, one.entry


def _finding(
    name: str,
    key: _Key,
    found: list[Occurrence],
    records: Records,
    advisor: Advisor,
    *,
    known: bool,
) -> Finding:
    group = _group(found, key, records)
    return Finding(
        id=name,
        datastore=group.datastore,
        read=group.read,
        write=group.write,
        occurrences=tuple(found),
        services=group.services,
        tests=group.tests,
        confirmed=group.confirmed,
        cost=group.cost,
        advice=advisor.advice(name, found),
        known=known,
    )


def _group(found: list[Occurrence], key: _Key, records: Records) -> ReadGroup:
    datastore, read_file, read_function, write_file, write_function = key
    reads = {(one.read.process, one.read.n): one for one in found}
    return ReadGroup(
        datastore=datastore,
        read=Place(read_file, read_function, _lines(one.read for one in found)),
        write=Place(write_file, write_function, _lines(one.write for one in found if one.write)),
        services=_services(records, (one.read for one in found)),
        tests=_tests(one.read for one in found),
        confirmed=sum(one.read.reads for one in reads.values() if one.confirmed),
        cost=_cost(list(reads.values())),
    )


def _cost(reads: list[Occurrence]) -> Cost:
    number = sum(one.read.reads for one in reads)
    waits = sorted(
        (wait, one.read.reads) for one in reads for wait in one.waits[-1:] if wait is not None
    )
    if not waits:
        return Cost(None, None, 0, number)
    known = sum(times for _, times in waits)
    return Cost(percentile(waits, 50), percentile(waits, 99), known, number)


def _occurrences(records: Records) -> Iterable[Occurrence]:
    evidence: defaultdict[tuple[str, int], list[Record]] = defaultdict(list)
    writes = _Writes(records.lines)
    for line in records.lines:
        if line.kind == "evidence":
            evidence[line.process, line.of].append(line)
    for line in records.lines:
        if line.kind == "read" and line.verdict != "guarded":
            proofs = evidence.get((line.process, line.n), [])
            confirmed = any(proof.confirmed is True for proof in proofs)
            waits = tuple(proof.waited_s for proof in proofs)
            for entry in line.writes:
                yield Occurrence(line, entry, writes.of(line, entry), confirmed, waits)


class _Writes:
    """The records of writes, by what they wrote."""

    def __init__(self, lines: Iterable[Record]) -> None:
        self._by_entry: defaultdict[Entry, list[Record]] = defaultdict(list)
        for line in lines:
            if line.kind == "write":
                self._by_entry[line.writes[0]].append(line)

    def of(self, read: Record, entry: Entry) -> Record | None:
        """The record of the write that *read* depends on.

        Tests that start their stores again may assign the same position twice: the read's own
        request comes first, then the latest write before the read.
        """
        found = self._by_entry.get(entry)
        if not found:
            return None
        return max(
            found,
            key=lambda one: (
                one.request is not None and one.request == read.request,
                one.t <= read.t,
                *one.order,
            ),
        )


def _lints(records: Records, baseline: frozenset[str]) -> tuple[LintFinding, ...]:
    grouped: defaultdict[tuple[str, str, str, str], list[Record]] = defaultdict(list)
    for line in (*records.lines, *two_names(records), *unhandled(records), *untaken(records)):
        if line.kind == "lint":
            key = line.lint, line.datastore, line.site.file, line.site.function
            grouped[key].append(line)
    lints: list[LintFinding] = []
    for key, found in grouped.items():
        lint, datastore, file, function = key
        name = finding_id("lint", *key)
        lints.append(
            LintFinding(
                id=name,
                lint=lint,
                datastore=datastore,
                place=Place(file, function, _lines(found)),
                details=tuple(sorted({one.detail for one in found if one.detail})[:_DETAILS]),
                count=len(found),
                services=_services(records, found),
                tests=_tests(found),
                known=name in baseline,
            )
        )
    lints.sort(key=lambda one: (one.place.file, one.place.line, one.lint, one.id))
    return tuple(lints)


def _lines(lines: Iterable[Record]) -> tuple[int, ...]:
    return tuple(sorted({line.site.line for line in lines if line.site.line}))


def _services(records: Records, lines: Iterable[Record]) -> tuple[str, ...]:
    return tuple(sorted({records.process(line).name for line in lines}))


def _tests(lines: Iterable[Record]) -> tuple[str, ...]:
    return tuple(sorted({line.test for line in lines if line.test}))
