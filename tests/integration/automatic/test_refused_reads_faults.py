"""Reads of databases that an automatic barrier lets go, and that their server refuses."""

from __future__ import annotations

import pytest

from tests.agent.client import AgentProcess
from tests.conformance._agents import LANGUAGES, command

from ._refused import judge

STORES = [
    pytest.param(store, marks=pytest.mark.store(store)) for store in ("mariadb", "mongodb", "mysql")
]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_read_that_is_refused_is_not_counted(
    request: pytest.FixtureRequest, store: str, language: str
) -> None:
    """A read that raises is served to nobody, by Table 2 and by instrumented clients."""
    topology = request.getfixturevalue(f"antipode_{store}")
    with AgentProcess(command(language)) as agent:
        judge(store, topology, agent)
        judge(store, topology, agent, client=True)
