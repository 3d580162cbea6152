"""What no process can see alone: what left one, whose rules found clients, what is one."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ._records import Record, Records

#: What tasks of Celery's are called: of these it is known which process handles them.
_TASK = "the task "
#: The shortest name of a log that no other store has by chance.
_UNIQUE = 16
#: What in a destination may be of one message or process alone, such as an id.
_NUMBERED = re.compile(r"[^.:/]*\d[^.:/]*")


def unhandled(records: Records) -> Iterator[Record]:
    """A lint for each message to where no recorded process handled any.

    Processes in other languages than Python do not say what they handle: what is known of them is
    that they take part in a request.
    """
    handled = _handled(records)
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
        if line.to not in taken and not {"", _destination(line)} & handled[line.to]:
            detail = f"{line.destination} of {line.to}" if line.destination else line.to
            yield replace(line, kind="lint", lint="unhandled-message", detail=detail)


def _handled(records: Records) -> defaultdict[str, set[str]]:
    """Of each task or datastore, the destinations whose messages were handled.

    An empty one stands for all of them: a consumer may not know it, and what moves messages from
    queue to queue, such as a dead-letter exchange, gives them one that nobody sent to.
    """
    sent: defaultdict[str, set[str]] = defaultdict(set)
    for line in records.lines:
        if line.step == "sent":
            sent[line.to].add(_destination(line))
    handled: defaultdict[str, set[str]] = defaultdict(set)
    for line in records.lines:
        if line.step == "handled":
            where = _destination(line)
            for to in [line.to] if line.to else _brokers(sent, where):
                known = "" not in sent[to] and where in sent[to]
                handled[to].add(where if known else "")
    return handled


def _brokers(sent: Mapping[str, set[str]], destination: str) -> list[str]:
    """Of which datastores a message may be whose consumer does not know it; empty for any."""
    return [to for to, known in sent.items() if destination and destination in known] or [""]


def _destination(message: Record) -> str:
    return _NUMBERED.sub("*", message.destination)


def rules_without_clients(records: Records) -> tuple[str, ...]:
    """The entries by which no recorded process made a client, sorted.

    None where a process is recorded that does not say it: another language than Python.
    """
    if any(each.language != "python" for each in records.processes.values()):
        return ()
    rules = [line for line in records.lines if line.kind == "rule"]
    matched = {line.entry for line in rules if line.matched}
    return tuple(sorted({line.entry for line in rules} - matched))


def two_names(records: Records) -> Iterator[Record]:
    """A lint for each datastore of a log that has several, at its last write."""
    names = OneLog(records)
    for name, line in names.last.items():
        if others := sorted(names.doubles[name]):
            detail = f"also {', '.join(others)}"
            yield replace(line, kind="lint", lint="two-names", datastore=name, detail=detail)


class OneLog:
    """Datastores whose writes are recorded in one log.

    Of logs whose names are unique: MariaDB numbers its domains, and so do others. Databases of one
    server have one log, too, and each may be a datastore: rules tell them apart. Without rules two
    names are taken for one store where a request has to do with both.

    Attributes:
        last: of each datastore with such a log, its last write.
        doubles: of each datastore, the other names that it has.
        unclear: names of one log of which nothing says whether they are one store, sorted.
    """

    def __init__(self, records: Records) -> None:
        """Compare the names of each log."""
        self._records = records
        self.last: dict[str, Record] = {}
        self.doubles: defaultdict[str, set[str]] = defaultdict(set)
        unclear = set()
        for names in _logs(records).values():
            for one, other in combinations(names, 2):
                self.last[one], self.last[other] = names[one], names[other]
                if self._double(one, other):
                    self.doubles[one].add(other)
                    self.doubles[other].add(one)
                elif not (self._parts[one] and self._parts[other]):
                    unclear.add(", ".join(sorted([one, other])))
        self.unclear = tuple(sorted(unclear))

    @cached_property
    def _parts(self) -> defaultdict[str, set[str | None]]:
        """Of each datastore the databases that rules say, None for all of a server's."""
        found: defaultdict[str, set[str | None]] = defaultdict(set)
        for line in self._records.lines:
            if line.kind == "rule":
                found[line.datastore].add(line.database)
        return found

    @cached_property
    def _requests(self) -> defaultdict[str, set[str | None]]:
        """Of each datastore the requests of which a record names it."""
        found: defaultdict[str, set[str | None]] = defaultdict(set)
        for line in self._records.lines:
            if line.request is not None:
                for name in {line.datastore, *(each.datastore for each in line.writes)}:
                    found[name].add(line.request)
        return found

    def _double(self, one: str, other: str) -> bool:
        parts, others = self._parts[one], self._parts[other]
        if parts and others:
            return None in parts | others or bool(parts & others)
        return bool(self._requests[one] & self._requests[other])


def _logs(records: Records) -> Mapping[str, dict[str, Record]]:
    """Of each log with a unique name, the last write of each datastore that has it."""
    found: defaultdict[str, dict[str, Record]] = defaultdict(dict)
    for line in records.lines:
        if line.kind == "write" and len(line.writes[0].log) >= _UNIQUE:
            found[line.writes[0].log][line.writes[0].datastore] = line
    return found


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
