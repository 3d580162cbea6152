"""What a promotion lost and kept, as Java's pools see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from antipode import DependencyLost, Status
from tests.integration.postgresql._jdbc import INSERT, application

if TYPE_CHECKING:
    from antipode_testing import PostgreSQLTopology
    from tests.agent.lending import Lend

pytestmark = [pytest.mark.store("postgresql"), pytest.mark.timeout(300)]


def test_a_write_that_a_promotion_lost_is_lost(
    antipode_postgresql: PostgreSQLTopology, lend: Lend
) -> None:
    """However far the new timeline goes; what it kept is visible, and its own writes too."""
    topology = antipode_postgresql
    app = application(topology, lend)
    with app.client(topology.replica, reads_from="replica") as standby:
        with app.client(topology.primary) as primary:
            with app.remote.scope() as scope:
                primary.call("update", INSERT)
                kept = scope.lineage
            topology.wait_replicated()
            assert standby.call("query", "SELECT count(*) FROM jdbc_notes") != ["0"]
            topology.cut()
            with app.remote.scope() as scope:
                primary.call("update", INSERT)
                lost = scope.lineage
        topology.failover()
        # The connection to the standby outlives its promotion, and takes writes.
        with app.remote.scope() as scope:
            standby.call("update", INSERT)
            new = scope.lineage
        for _ in range(50):
            topology.execute("INSERT INTO jdbc_notes (body) VALUES (repeat('x', 200))")
        assert not new.incomplete
        assert {write.key.split("/")[1].partition("-")[0] for write in new} == {"2"}
        for lineage, status in ((kept, Status.VISIBLE), (new, Status.VISIBLE), (lost, Status.LOST)):
            result = app.remote.barrier(lineage, timeout=3, on_unmet="return")
            assert {outcome.status for outcome in result.outcomes} == {status}
        with app.remote.scope(lost):
            app.remote.barrier(timeout=3, at="read")
            with pytest.raises(DependencyLost):
                standby.call("query", "SELECT body FROM jdbc_notes")
