"""Levels S1 to S3: what shims decide without their stores."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from antipode import Lineage
from tests.agent._values import lineage_of
from tests.conformance._agents import asked

if TYPE_CHECKING:
    from tests.conformance._agents import Answers
    from tests.conformance._vectors import Vector

#: By the kind of vectors: by what the agent is asked for it, and what the answer has, with what is
#: expected where a vector leaves that out.
DECISIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "tokens": ("token", {"lineage": {}, "notes": {}}),
    "batches": ("batch", {"reads": None, "may_write": None, "repeatable": None}),
    "positions": ("position", {"position": None}),
    "documents": ("found", {"lineage": None, "match": None}),
    "covers": ("cover", {"lineage": None}),
    "expressions": ("expression", {"expression": None}),
    "sets": ("gtid_set", {"logs": None}),
    "servers": ("server", {"waits": None, "numbers": None}),
    "calls": ("calls", {"calls": None}),
    "catalogues": ("named", {"may_write": None}),
    "keys": ("keys", {"keys": None}),
    "labels": ("label", {"sent": None}),
    "messages": ("message", {"lineage": {}}),
    "packs": ("stored", {"companion": None}),
    "rows": ("found", {"lineage": None}),
    "selects": ("select", {"columns": None}),
    "sought": ("sought", {"sought": None}),
    "statements": ("statement", {"stamped": None, "item": None}),
    "unpacks": ("found", {"lineage": None, "match": None}),
    "views": ("view", {"may_write": None}),
}


def _decided(agent: Answers, vector: Vector, kind: str, given: Any) -> dict[str, Any]:
    found: dict[str, Any] = asked(agent, "decide", store=vector.store, kind=kind, given=given)
    return found


def looks(agent: Answers, vector: Vector) -> None:
    """One look says of each write what the server's state proves."""
    found = _decided(agent, vector, "look_at", vector.content)
    assert found["statuses"] == [write["status"] for write in vector.content["writes"]]


def scripts(agent: Answers, vector: Vector) -> None:
    """Receipts say of each publication what was heard, and no more."""
    found = _decided(agent, vector, "receipts", vector.content)
    expected = [step["status"] for step in vector.content["steps"] if step["op"] == "shows"]
    assert found["statuses"] == expected


def publications(agent: Answers, vector: Vector) -> None:
    """What is published is named by its publisher and its number."""
    found = _decided(agent, vector, "publications", vector.content)
    assert found["writes"] == [step["write"] for step in vector.content["steps"] if "write" in step]


def groups(agent: Answers, vector: Vector) -> None:
    """Each command of a group does the same."""
    others = {}
    for command in vector.content["commands"]:
        does = _decided(agent, vector, "command", {"command": command})["does"]
        if does != vector.content["does"]:
            others[str(command)] = does
    assert not others


def commits(agent: Answers, vector: Vector) -> None:
    """What sessions report of their commits is named by the run of numbers that it is in."""
    found = _decided(agent, vector, "commits", vector.content)
    sessions = vector.content["sessions"]
    assert found["writes"] == [
        [commit["writes"] for commit in session["commits"]] for session in sessions
    ]


def updates(agent: Answers, vector: Vector) -> None:
    """The trigger, with the pattern that the writer sent, loses nothing but what is superseded."""
    pattern = ""
    row, text = vector.content["row"], vector.content["text"]
    if text is not None:
        pattern = _decided(agent, vector, "pattern", {"text": text})["pattern"]
    assert _updated(row, text, pattern) == vector.content["after"]


def _updated(row: str | None, text: str | None, pattern: str) -> str | None:
    """What the trigger makes of a row's texts; the servers are held to it by the same vectors."""
    if text is None or row is None:
        return row if text is None else text
    old = row.split(",")
    if text in old:
        return row
    if not pattern or "~z" in row or any(not each.startswith("1") for each in old):
        merged = f"{text},{row}"
    else:
        kept = re.sub(pattern, "", row)
        merged = re.sub(",1[0-9a-z]*(?=,|$)", "", f"{text},{kept}")
    return merged if len(merged) <= 1024 or merged == text else f"{text},1~isize.-"


def decision(agent: Answers, vector: Vector) -> None:
    """A shim comes to what the vector says."""
    kind, fields = DECISIONS[vector.kind]
    found = _decided(agent, vector, kind, vector.content)
    expected = {field: vector.content.get(field, absent) for field, absent in fields.items()}
    assert _valued(found) == _valued(expected)


def _valued(found: dict[str, Any]) -> dict[str, Any]:
    """Lineages as values; what is recorded states the present hour, which is left out."""
    lineage = lineage_of(found["lineage"]) if "lineage" in found else None
    return found if lineage is None else {**found, "lineage": _hourless(lineage)}


def _hourless(lineage: Lineage) -> Lineage:
    writes = [
        type(each)(each.datastore, each.key, each.version, 0, each.covering) for each in lineage
    ]
    return Lineage(writes, incomplete=lineage.incomplete, unknown=lineage.unknown)


KINDS = {
    "commits": commits,
    "groups": groups,
    "looks": looks,
    "publications": publications,
    "scripts": scripts,
    "updates": updates,
    **dict.fromkeys(DECISIONS, decision),
}
