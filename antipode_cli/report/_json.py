"""The report for programs: docs/reference/cli.md lists its fields."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ._text import counted, notes

if TYPE_CHECKING:
    from ._model import Finding, LintFinding, Place, ReadGroup, Report

#: Grows when a field changes its meaning or goes; new fields alone do not change it.
REPORT_VERSION = 1
#: Most ids, requests and tests that are listed of one finding.
_MOST = 20


def json_text(report: Report) -> str:
    """The whole report, known findings included."""
    return json.dumps(report_object(report), indent=2, ensure_ascii=False) + "\n"


def report_object(report: Report) -> dict[str, Any]:
    """The report as plain values."""
    lines = report.records.lines
    return {
        "version": REPORT_VERSION,
        "failed": report.failed,
        "fail_on": report.fail_on,
        "barriers_missing": report.barriers,
        "automatic": asdict(report.automatic),
        "findings": [_finding(report, one) for one in report.findings],
        "automatic_reads": [_held(one) for one in report.held],
        "datastores_unread": list(report.unread),
        "datastores_missing": list(report.missing),
        "rules_without_clients": list(report.rules_without_clients),
        "unclear_names": list(report.unclear_names),
        "lints": [_lint(report, one) for one in report.lints],
        "baseline_gone": list(report.gone),
        "comments_without_reason": list(report.unreasoned),
        "notes": notes(report),
        "records": {
            "files": report.records.files,
            "services": sorted({one.name for one in report.records.processes.values()}),
            "processes": len(report.records.processes),
            "requests": report.requests,
            "datastores": list(report.datastores),
            "reads_guarded": sum(e.reads for e in lines if e.verdict == "guarded"),
            "reads_automatic": report.reads_held,
            "reads_unguarded": sum(e.reads for e in lines if e.verdict == "unguarded"),
            "summary": counted(report),
        },
    }


def _finding(report: Report, one: Finding) -> dict[str, Any]:
    return {
        "id": one.id,
        "datastore": one.datastore,
        "known": one.known,
        "accepted": one.accepted,
        "fails": report.fails(one),
        "confirmed": one.confirmed > 0,
        "reads": one.reads,
        "reads_confirmed": one.confirmed,
        "read": _place(one.read),
        "write": _place(one.write),
        "barrier_before": asdict(one.advice.before),
        "barrier_guards": list(one.advice.guards[:_MOST]),
        "barrier_datastores": list(one.advice.datastores),
        "wait_median_s": one.cost.median_s,
        "wait_p99_s": one.cost.p99_s,
        "waits_known": one.cost.known,
        "services": list(one.services),
        "tests": list(one.tests[:_MOST]),
        "requests": sorted({o.read.request for o in one.occurrences if o.read.request})[:_MOST],
    }


def _held(one: ReadGroup) -> dict[str, Any]:
    return {
        "datastore": one.datastore,
        "reads": one.cost.reads,
        "reads_confirmed": one.confirmed,
        "read": _place(one.read),
        "write": _place(one.write),
        "wait_median_s": one.cost.median_s,
        "wait_p99_s": one.cost.p99_s,
        "waits_known": one.cost.known,
        "services": list(one.services),
        "tests": list(one.tests[:_MOST]),
    }


def _lint(report: Report, one: LintFinding) -> dict[str, Any]:
    return {
        "id": one.id,
        "lint": one.lint,
        "datastore": one.datastore,
        "known": one.known,
        "accepted": one.accepted,
        "fails": report.fails(one),
        "place": _place(one.place),
        "count": one.count,
        "details": list(one.details),
        "services": list(one.services),
        "tests": list(one.tests[:_MOST]),
    }


def _place(place: Place) -> dict[str, Any]:
    return {"file": place.file, "function": place.function, "lines": list(place.lines)}
