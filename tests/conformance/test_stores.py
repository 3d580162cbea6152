"""What shims decide without their stores: levels S1 to S3, through the agent of each language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from antipode import Lineage
from antipode.testing.agent._values import lineage_of
from tests.conformance import _vectors as vectors
from tests.conformance._agents import LANGUAGES, agents, asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode.testing.agent.client import AgentProcess

#: By the kind of vectors: by what the agent is asked for it, and what the answer has, with what is
#: expected where a vector leaves that out.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "tokens": ("token", {"lineage": {}, "notes": {}}),
    "batches": ("batch", {"reads": None, "may_write": None, "repeatable": None}),
    "keys": ("keys", {"keys": None}),
    "packs": ("stored", {"companion": None}),
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
