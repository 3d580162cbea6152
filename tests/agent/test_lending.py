"""An agent that is lent again is as new, and one that is not is not lent again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.agent.client import AgentFailed
from tests.agent.lending import Lender
from tests.conformance._agents import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.agent.client import RemoteAntipode

#: Four of them start the JVM or a Python once or twice.
pytestmark = pytest.mark.slow


@pytest.fixture
def lender(request: pytest.FixtureRequest) -> Iterator[Lender]:
    """One whose agents no other test has."""
    found = Lender(request.session)
    yield found
    found.close()


def handle(agent: RemoteAntipode) -> str:
    """The name of a scope, of which a process gives none twice."""
    with agent.scope() as scope:
        return scope.handle


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_next_test_finds_nothing_of_the_last_one(lender: Lender, language: str) -> None:
    """In the same process the settings and what is counted begin anew."""
    with lender.lent(language) as agent:
        settings = agent.ask("configure", settings={})
        agent.ask("configure", settings={"egress": ["posts"], "peers": {"*.internal": "auto"}})
        agent.ask("receive", headers=[["antipode-lineage", "%"]])
        assert agent.ask("statistics")["metrics"]
        first = handle(agent)
    with lender.lent(language) as agent:
        assert agent.ask("configure", settings={}) == settings
        assert not agent.ask("statistics")["metrics"]
        assert handle(agent) != first


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_left_open_ends_the_agent(lender: Lender, language: str) -> None:
    """A scope that a test leaves open fails that test, and the next one has another process."""
    first = ""
    with pytest.raises(AgentFailed, match="still open"), lender.lent(language) as agent:
        first = agent.ask("open_scope")["scope"]
    with lender.lent(language) as agent:
        assert handle(agent) == first
