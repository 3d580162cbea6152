"""Level 3: headers in and out, what calls leave behind, scopes, hosts, and what dry runs find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from antipode import Lineage
from tests.agent._values import lineage_of
from tests.conformance import _vectors as vectors
from tests.conformance._agents import LANGUAGES, agents, asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.agent.client import AgentProcess


@pytest.fixture(scope="module", params=LANGUAGES)
def agent(request: pytest.FixtureRequest) -> Iterator[AgentProcess]:
    """One agent for all vectors, of each language."""
    yield from agents(request.param)


def judged(agent: AgentProcess, kind: str, vector: dict[str, Any]) -> dict[str, Any]:
    """What the agent makes of *vector*; what is expected in it is not for the agent."""
    found: dict[str, Any] = asked(agent, "headers", kind=kind, given=vector)
    return found


@pytest.mark.parametrize("vector", vectors.cases("L3-headers", "requests_in"))
def test_requests_in(agent: AgentProcess, vector: dict[str, Any]) -> None:
    """A request starts from what its headers say; members of others are the application's."""
    found = judged(agent, "requests_in", vector)
    assert lineage_of(found["lineage"]) == lineage_of(vector["lineage"])
    assert found["others"] == vector.get("others", found["others"])


@pytest.mark.parametrize("vector", vectors.cases("L3-headers", "calls"))
def test_calls(agent: AgentProcess, vector: dict[str, Any]) -> None:
    """Each call carries these headers, and leaves this lineage in its caller's scope."""
    found = judged(agent, "calls", vector)["calls"]
    for call, ended in zip(vector["calls"], found, strict=True):
        assert ended["sent"] == sorted(call["sent"])
        if "after" in call:
            assert lineage_of(ended["after"]) == lineage_of(call["after"])


@pytest.mark.parametrize("vector", vectors.cases("L3-headers", "responses_out"))
def test_responses_out(agent: AgentProcess, vector: dict[str, Any]) -> None:
    """The answer brings back what the request added, to whom that is of use."""
    allowed = [None, "1"] if vector.get("optional") else [vector["answer"]]
    assert judged(agent, "responses_out", vector)["answer"] in allowed


@pytest.mark.parametrize("vector", vectors.cases("L3-headers", "sessions"))
def test_sessions(agent: AgentProcess, vector: dict[str, Any]) -> None:
    """Cookies say what requests of a user start from, age, and are set, removed or left alone."""
    found = judged(agent, "sessions", vector)["requests"]
    for request, ended in zip(vector["requests"], found, strict=True):
        assert lineage_of(ended["starts"]) == lineage_of(request["starts"])
        assert ended["counts"] == request.get("counts", {})
        assert ended["content"] == request["content"]
        assert ended["lasts"] is bool(request["content"])
        if request["content"] is not None:
            assert ended["cache_control"] == request["cache_control"]


@pytest.mark.parametrize("vector", vectors.cases("L3-headers", "session_signatures"))
def test_session_signatures(agent: AgentProcess, vector: dict[str, Any]) -> None:
    """Services of several languages that share keys share a cookie."""
    found = judged(agent, "session_signatures", vector)
    assert found == {"value": vector["value"], "read": vector["read"]}


@pytest.mark.parametrize("vector", vectors.cases("L3-headers", "strips"))
def test_strips(agent: AgentProcess, vector: dict[str, Any]) -> None:
    """Nothing of ours is left, and everything else is."""
    assert judged(agent, "strips", vector)["kept"] == sorted(vector["kept"])


@pytest.mark.parametrize("vector", vectors.cases("L3-headers", "hosts"))
def test_hosts(agent: AgentProcess, vector: dict[str, Any]) -> None:
    """A lineage goes to the hosts that the setting names, however their URL is spelled."""
    assert judged(agent, "hosts", vector)["sent"] is vector["sent"]


@pytest.mark.parametrize("entry", vectors.entries("L3-headers", "refused_hosts"))
def test_refused_hosts(agent: AgentProcess, entry: str) -> None:
    """What names no host is a mistake in the setting."""
    assert judged(agent, "refused_hosts", {"entry": entry})["code"] == "configuration"


@pytest.mark.parametrize("script", vectors.cases("L3-headers", "scopes"))
def test_scopes(agent: AgentProcess, script: dict[str, Any]) -> None:
    """Every check of the script holds."""
    found = judged(agent, "scopes", script)["holds"]
    expected = [step["lineage"] for step in script["steps"] if step["op"] == "holds"]
    assert [hourless(lineage_of(each)) for each in found] == list(map(lineage_of, expected))


def hourless(lineage: Lineage) -> Lineage:
    """*lineage* without mint hours: what is recorded states the present one."""
    return Lineage(
        [type(each)(each.datastore, each.key, each.version) for each in lineage],
        incomplete=lineage.incomplete,
    )


@pytest.mark.parametrize("vector", vectors.cases("L3-headers", "finding_ids"))
def test_finding_ids(agent: AgentProcess, vector: dict[str, Any]) -> None:
    """Reports of all languages name a finding alike."""
    assert judged(agent, "finding_ids", vector)["id"] == vector["id"]


@pytest.mark.parametrize("vector", vectors.cases("L3-headers", "verdicts"))
def test_verdicts(agent: AgentProcess, vector: dict[str, Any]) -> None:
    """Each read is judged by what the scope depends on and what guards it, and by nothing else."""
    found = judged(agent, "verdicts", vector)
    expected = [
        (step["verdict"], sorted(step["writes"]))
        for step in vector["steps"]
        if step["op"] == "read" and step["verdict"]
    ]
    assert [(read["verdict"], sorted(read["writes"])) for read in found["reads"]] == expected
    assert sorted(found["guards"]) == sorted(vector.get("guards_after", found["guards"]))
    assert sorted(found["counted"]) == sorted(vector.get("counted", []))
    assert sorted(found["lints"]) == sorted(vector.get("lints", []))
