"""A MariaDB replica without a binary log: what it shows has no position there, in any language."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from antipode_testing import MariaDBTopology
from tests.agent.client import RemoteShim
from tests.conformance._agents import LANGUAGES
from tests.contract._servers import regions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import LagProxy
    from tests.agent.lending import Lend

pytestmark = [pytest.mark.slow, pytest.mark.store("mariadb")]


class Unlogged(MariaDBTopology):
    """A replica without a binary log, as managed services set them up."""

    def _launch(self, name: str, feed: LagProxy | None) -> None:
        if feed is not None:
            self._config = {**self._config, "skip-log-bin": "1", "log-slave-updates": "0"}
        super()._launch(name, feed)


@pytest.fixture(scope="module")
def topology() -> Iterator[MariaDBTopology]:
    """A primary and such a replica."""
    with Unlogged() as topology:
        yield topology


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_read_of_it_is_marked(topology: MariaDBTopology, language: str, lend: Lend) -> None:
    """Its lineage says that it may lack something: nothing is dropped without a word."""
    remote = lend(language)
    with regions("mariadb", topology) as servers:
        primary, replica = (
            RemoteShim(remote, "mariadb", "posts", server, reads_from=place)
            for server, place in zip(servers, ("primary", "replica"), strict=True)
        )
        with closing(primary), closing(replica):
            with remote.scope():
                primary.write(language, b"1")
                topology.wait_replicated()
            with remote.scope() as scope:
                value, lineage = replica.read(language)
                assert value == b"1"
                assert ("posts", "unsampled") in lineage.incomplete
                assert ("posts", "unsampled") in scope.lineage.incomplete
