"""The conformance agent of each language: what crosses it, and a vector of each kind and file."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import Lineage
from tests.agent._values import lineage_of, of_lineage, of_write
from tests.agent.client import AgentFailed, AgentProcess, Unsupported
from tests.conformance import _vectors as vectors
from tests.conformance._agents import LACKING, LANGUAGES, agents, asked, command
from tests.conformance._checks import hold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conformance._vectors import Vector


@pytest.fixture(scope="module", params=LANGUAGES)
def agent(request: pytest.FixtureRequest) -> Iterator[AgentProcess]:
    """One agent for all vectors, of each language."""
    yield from agents(request.param)


SMOKE = vectors.smoke(*vectors.FOLDERS)


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(each, id=str(each), marks=() if each in SMOKE else pytest.mark.nightly)
        for each in vectors.every(*vectors.FOLDERS)
        if each.kind != "records"  # No agent makes reports.
    ],
)
def test_vector(agent: AgentProcess, vector: Vector) -> None:
    """Through the agent a vector holds as well; each language's own tests replay all of them."""
    hold(agent, vector)


def test_render_is_whole_or_bounded(agent: AgentProcess) -> None:
    """Without a bound a text is whole, however long; an egress list is one, with a size or not."""
    writes = [{"datastore": "posts", "key": f"k{n}", "version": "1"} for n in range(5_000)]
    whole = agent.ask("render", lineage={"writes": writes})
    assert whole.count("~") == len(writes)
    writes.append({"datastore": "users", "key": "k", "version": "1"})
    for bound, egress in ({}, ["users"]), ({"max_bytes": 100}, ["users"]):
        text = agent.ask("render", lineage={"writes": writes}, egress=egress, **bound)
        assert text == "1~iegress.-~kusers.1.k"
    text = agent.ask("render", lineage={"writes": writes}, egress=["posts", "users"])
    assert text.count("~") <= 4_096
    assert "~isize.posts~" in text


def test_a_request_that_makes_no_sense_is_answered(agent: AgentProcess) -> None:
    """Unknown operations, missing arguments and handles are errors of the agent, and it goes on."""
    for op, arguments in (("dance", {}), ("parse", {}), ("lineage", {"scope": "s999"})):
        with pytest.raises((AgentFailed, Unsupported)):
            agent.ask(op, **arguments)
    assert agent.ask("hello")["language"] in LANGUAGES


def test_cpp_says_that_it_reads_nothing_at_the_primary(monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting that it lacks is refused by a message that says so, not taken for another."""
    monkeypatch.setenv("ANTIPODE_ON_STALE", "primary")
    with (
        AgentProcess(command("cpp")) as agent,
        pytest.raises(antipode.ConfigurationError, match=r"in C\+\+: a client has one connection"),
    ):
        agent.ask("configure", settings={})


def test_settings_are_taken_back_as_they_are_told(agent: AgentProcess) -> None:
    """Whoever gives back what `configure` said has the settings from before."""
    before = asked(agent, "configure", settings={})
    peers = {"*.internal": "auto", "posts.internal/v1": "never"}
    assert agent.ask("configure", settings={"peers": peers, "egress": ["posts"]}) == before
    changed = agent.ask("configure", settings=before)
    assert changed["peers"] == peers
    assert changed["egress"] == ["posts"]
    assert agent.ask("configure", settings={}) == before


def test_members_of_the_application_are_sent_on(agent: AgentProcess) -> None:
    """A request takes along the members of others that its own request came with."""
    if "open_scope baggage" in LACKING.get(agent.ask("hello")["language"], ()):
        pytest.skip("its library has no context that holds them")
    headers = [["baggage", "tenant=acme,antipode=1~kposts.7.log"]]
    scope = asked(agent, "open_scope", headers=headers)["scope"]
    sent = dict(agent.ask("request_headers", scope=scope, headers=[]))["baggage"]
    assert sorted(sent.split(",")) == ["antipode=1~kposts.7.log", "tenant=acme"]
    agent.ask("close_scope", scope=scope)


def test_a_lineage_that_is_merged_says_nothing_of_the_future(agent: AgentProcess) -> None:
    """A mint hour of the year 8867 becomes the present one, though its text was decoded before."""
    scope = asked(agent, "open_scope", headers=[])["scope"]
    far = Lineage(
        [antipode.WriteId("posts", "log", 7, 36**5 - 1)],
        promises=[antipode.Promise("posts", "0" * 32, 2**40)],
    )
    agent.ask("merge_into", scope=scope, text=antipode.shim.encode(far))
    held = antipode.deserialize(agent.ask("lineage", scope=scope))
    (write,), (promise,) = held, held.promises
    now_s = time.time()
    assert abs(write.written_hour - now_s / 3600) < 2
    assert promise.expires_s < now_s + 8 * 86_400
    agent.ask("close_scope", scope=scope)


def test_headers_of_a_request_and_of_its_answer(agent: AgentProcess) -> None:
    """A request takes the caller's lineage along, and its answer brings back what it added."""
    came = Lineage([antipode.WriteId("posts", "log", 7, 490_000)])
    added = antipode.WriteId("posts", "log", 9, 490_000)
    caller = asked(agent, "open_scope", text=antipode.shim.encode(came))["scope"]
    headers = agent.ask("request_headers", scope=caller, headers=[["baggage", "tenant=acme"]])
    callee = agent.ask("open_scope", headers=headers)["scope"]
    assert "tenant=acme" in dict(headers)["baggage"]
    assert antipode.deserialize(agent.ask("lineage", scope=callee)) == came
    text = agent.ask("render", lineage={"writes": [of_write(added)]})
    agent.ask("merge_into", scope=callee, text=text)
    answer = agent.ask("response_headers", scope=callee)
    agent.ask("receive", scope=caller, headers=answer)
    held = antipode.deserialize(agent.ask("lineage", scope=caller))
    assert held == came.append(added)
    assert lineage_of(of_lineage(held)) == held
    for scope in (callee, caller):
        agent.ask("close_scope", scope=scope)
