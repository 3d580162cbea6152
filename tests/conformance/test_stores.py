"""What shims decide without their stores: levels S1 to S3, through the agent of each language."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from antipode import Lineage
from tests.agent._values import lineage_of
from tests.conformance import _vectors as vectors
from tests.conformance._agents import LANGUAGES, agents, asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.agent.client import AgentProcess

#: By the kind of vectors: by what the agent is asked for it, and what the answer has, with what is
#: expected where a vector leaves that out.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "tokens": ("token", {"lineage": {}, "notes": {}}),
    "batches": ("batch", {"reads": None, "may_write": None, "repeatable": None}),
    "positions": ("position", {"position": None}),
    "documents": ("found", {"lineage": None, "match": None}),
    "covers": ("cover", {"lineage": None}),
    "expressions": ("expression", {"expression": None}),
    "sets": ("gtid_set", {"logs": None}),
    "servers": ("server", {"waits": None, "numbers": None}),
    "calls": ("calls", {"calls": None}),
    "keys": ("keys", {"keys": None}),
    "labels": ("label", {"sent": None}),
    "messages": ("message", {"lineage": {}}),
    "packs": ("stored", {"companion": None}),
    "rows": ("found", {"lineage": None}),
    "selects": ("select", {"columns": None}),
    "sought": ("sought", {"sought": None}),
    "statements": ("statement", {"stamped": None, "item": None}),
    "unpacks": ("found", {"lineage": None, "match": None}),
}


@pytest.fixture(scope="module", params=LANGUAGES)
def agent(request: pytest.FixtureRequest) -> Iterator[AgentProcess]:
    """One agent for all vectors, of each language."""
    yield from agents(request.param)


@pytest.mark.parametrize(("store", "vector"), vectors.of_stores("looks"))
def test_looks(agent: AgentProcess, store: str, vector: dict[str, Any]) -> None:
    """One look says of each write what the server's state proves."""
    found = asked(agent, "decide", store=store, kind="look_at", given=vector)
    assert found["statuses"] == [write["status"] for write in vector["writes"]]


@pytest.mark.parametrize(("store", "vector"), vectors.of_stores("scripts"))
def test_scripts(agent: AgentProcess, store: str, vector: dict[str, Any]) -> None:
    """Receipts say of each publication what was heard, and no more."""
    found = asked(agent, "decide", store=store, kind="receipts", given=vector)
    expected = [step["status"] for step in vector["steps"] if step["op"] == "shows"]
    assert found["statuses"] == expected


@pytest.mark.parametrize(("store", "vector"), vectors.of_stores("publications"))
def test_publications(agent: AgentProcess, store: str, vector: dict[str, Any]) -> None:
    """What is published is named by its publisher and its number."""
    found = asked(agent, "decide", store=store, kind="publications", given=vector)
    assert found["writes"] == [step["write"] for step in vector["steps"] if "write" in step]


@pytest.mark.parametrize(("store", "vector"), vectors.of_stores("groups"))
def test_groups(agent: AgentProcess, store: str, vector: dict[str, Any]) -> None:
    """Each command of a group does the same."""
    others = {}
    for command in vector["commands"]:
        given = {"command": command}
        does = asked(agent, "decide", store=store, kind="command", given=given)["does"]
        if does != vector["does"]:
            others[str(command)] = does
    assert not others


@pytest.mark.parametrize(("store", "vector"), vectors.of_stores("commits"))
def test_commits(agent: AgentProcess, store: str, vector: dict[str, Any]) -> None:
    """What sessions report of their commits is named by the run of numbers that it is in."""
    found = asked(agent, "decide", store=store, kind="commits", given=vector)
    assert found["writes"] == [
        [commit["writes"] for commit in session["commits"]] for session in vector["sessions"]
    ]


@pytest.mark.parametrize(("store", "vector"), vectors.of_stores("updates"))
def test_updates(agent: AgentProcess, store: str, vector: dict[str, Any]) -> None:
    """The trigger, with the pattern that the writer sent, loses nothing but what is superseded."""
    pattern = ""
    if vector["text"] is not None:
        given = {"text": vector["text"]}
        pattern = asked(agent, "decide", store=store, kind="pattern", given=given)["pattern"]
    assert _updated(vector["row"], vector["text"], pattern) == vector["after"]


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


@pytest.mark.parametrize(
    ("kind", "store", "vector"),
    [
        pytest.param(kind, *each.values, id=f"{kind}: {each.id}")
        for kind in KINDS
        for each in vectors.of_stores(kind)
    ],
)
def test_decisions(agent: AgentProcess, kind: str, store: str, vector: dict[str, Any]) -> None:
    """A shim comes to what the vector says."""
    name, fields = KINDS[kind]
    found = asked(agent, "decide", store=store, kind=name, given=vector)
    expected = {field: vector.get(field, absent) for field, absent in fields.items()}
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
