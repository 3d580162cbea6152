"""Lints that no process can see alone: what left one, and no recorded process took."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._records import Record, Records

#: What tasks of Celery's are called: of these it is known which process handles them.
_TASK = "the task "


def unhandled(records: Records) -> Iterator[Record]:
    """A lint for each message to where no recorded process handled any.

    Processes in other languages than Python do not say what they handle: what is known of them is
    that they take part in a request.
    """
    handled = {line.to for line in records.lines if line.step == "handled"}
    others = {
        line.request
        for line in records.lines
        if line.kind == "scope" and records.process(line).language != "python"
    }
    sent = [line for line in records.lines if line.step == "sent"]
    taken = {line.to for line in sent if line.request in others}
    if "" in handled:  # Of which broker its consumer did not know.
        taken.update(line.to for line in sent if not line.to.startswith(_TASK))
    for line in sent:
        if line.to not in handled | taken:
            yield replace(line, kind="lint", lint="unhandled-message", detail=line.to)


def untaken(records: Records) -> Iterator[Record]:
    """A lint for each call of a service of which no recorded process took any.

    A service that answers with its lineage is no such record. Others take part if one more scope
    was opened by what came with the request than by where it began and by its messages.
    """
    came = _came(records)
    calls: defaultdict[str, list[Record]] = defaultdict(list)
    for line in records.lines:
        if line.kind == "call":
            calls[line.to].append(line)
    for service, found in calls.items():
        if all(came[line.request] <= 0 for line in found):
            for line in found:
                yield replace(line, kind="lint", lint="call-not-taken", detail=service)


def _came(records: Records) -> defaultdict[str | None, int]:
    """Of each request, how many scopes were opened for calls that came with it."""
    found: defaultdict[str | None, int] = defaultdict(int)
    scopes: defaultdict[str | None, list[Record]] = defaultdict(list)
    for line in records.lines:
        if line.kind == "scope":
            scopes[line.request].append(line)
        elif line.step == "handled" and line.to.startswith(_TASK):
            found[line.request] -= 1
    for request, opened in scopes.items():
        _, *rest = sorted(opened, key=lambda line: line.order)
        found[request] += sum(line.opened == "incoming" for line in rest)
    return found
