"""Reads of databases that an automatic barrier lets go, and that their server refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conformance._agents import LANGUAGES

from ._refused import judge

if TYPE_CHECKING:
    from tests.agent.lending import Lend

STORES = [
    pytest.param(store, marks=pytest.mark.store(store)) for store in ("mariadb", "mongodb", "mysql")
]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_read_that_is_refused_is_not_counted(
    request: pytest.FixtureRequest, store: str, language: str, lend: Lend
) -> None:
    """A read that raises is served to nobody, by Table 2 and by instrumented clients."""
    topology = request.getfixturevalue(f"antipode_{store}")
    remote = lend(language)
    judge(store, topology, remote)
    judge(store, topology, remote, client=True)
