"""Lends agents to tests: one process a language for a whole file, as new for each of its tests."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Protocol

import pytest

from antipode_testing import wait_until
from tests.conformance._agents import command

from .client import AgentProcess, RemoteAntipode

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Within which what a test closed is gone from its agent.
CLOSED_S = 10.0
#: Descriptors that an agent keeps once it had a connection: the JDK closes sockets by means of one.
KEPT = {"java": 1}


class Lender:
    """The agents that run, by language.

    What a test leaves open fails that test. An agent that saw a test fail is not lent again, so
    that no failure causes another one.
    """

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._idle: dict[str, _Lent] = {}

    @contextmanager
    def lent(self, language: str) -> Iterator[RemoteAntipode]:
        """An agent that nobody else has meanwhile."""
        failures = self._session.testsfailed
        agent = self._idle.pop(language, None) or _Lent(language)
        try:
            yield RemoteAntipode(agent.process)
            if self._session.testsfailed == failures:
                agent.reset()
                self._idle.setdefault(language, agent)
        finally:
            if self._idle.get(language) is not agent:
                agent.close()

    def close(self) -> None:
        """End all processes."""
        while self._idle:
            self._idle.popitem()[1].close()


class _Lent:
    """One process, and how it was when it started."""

    def __init__(self, language: str) -> None:
        self.process = AgentProcess(command(language)).__enter__()
        self._settings = self.process.ask("configure", settings={})
        self._connections = self.process.ask("statistics")["connections"] + KEPT.get(language, 0)

    def reset(self) -> None:
        """Make it as new; an error if anything of a test is left."""
        wait_until(self.process.idle, what="all requests to be answered", timeout_s=CLOSED_S)
        self.process.ask("reset", settings=self._settings)
        wait_until(self._closed, what="an agent to be as it began", timeout_s=CLOSED_S)

    def _closed(self) -> bool:
        """Whether no store is polled, and no connection is open."""
        found = self.process.ask("statistics")
        return not found["watchers"] and found["connections"] <= self._connections

    def close(self) -> None:
        """End it."""
        self.process.__exit__(None, None, None)


class Lend(Protocol):
    """Lends the agent of a language until the test has ended."""

    def __call__(self, language: str) -> RemoteAntipode: ...


@pytest.fixture(scope="module")
def lender(request: pytest.FixtureRequest) -> Iterator[Lender]:
    """The agents of a file's tests."""
    found = Lender(request.session)
    yield found
    found.close()


@pytest.fixture
def lend(lender: Lender) -> Iterator[Lend]:
    """Lends agents of the file to one test; what it opens there it closes first."""
    with ExitStack() as stack:
        yield lambda language: stack.enter_context(lender.lent(language))
