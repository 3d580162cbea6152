"""Transactions that change temporary tables alone, through a pool of Java's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.postgresql._jdbc import application
from tests.integration.postgresql._temporary import LASTING, OWN, SESSION, TEMPORARY, changing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import PostgreSQLTopology
    from tests.agent.lending import Lend
    from tests.integration.postgresql._clients import Clients
    from tests.integration.postgresql._jdbc import Application, Client

pytestmark = [pytest.mark.slow, pytest.mark.store("postgresql")]


@pytest.fixture
def topology(clients: Clients) -> Iterator[PostgreSQLTopology]:
    """With what a temporary table's rows may change besides."""
    with changing(clients.topology) as topology:
        yield topology


class Session:
    """One connection of the pool."""

    def __init__(self, app: Application, client: Client) -> None:
        self._app, self._client = app, client

    def prepared(self) -> None:
        """Make temporary tables; what the server lets it see is known afterwards."""
        for statement in SESSION:
            self._client.call("execute", statement)
        assert self.entered(OWN)

    def entered(self, *statements: str, autocommit: bool = True) -> bool:
        """Whether a transaction leaves something in the lineage."""
        with self._app.remote.scope() as scope:
            self._client.call(*(("execute", "BEGIN") if autocommit else ("begin",)))
            for statement in statements:
                self._client.call("execute", statement)
            self._client.call(*(("execute", "COMMIT") if autocommit else ("commit",)))
            return bool(scope.lineage) or bool(scope.lineage.incomplete)


@pytest.fixture
def session(topology: PostgreSQLTopology, lend: Lend) -> Iterator[Session]:
    """Of a process, with its tables not made so far."""
    app = application(topology, lend)
    with app.client(topology.primary) as client:
        yield Session(app, client)


@pytest.mark.parametrize("autocommit", [True, False])
def test_they_enter_nothing(session: Session, *, autocommit: bool) -> None:
    """By a COMMIT that is sent, and by the driver's own, with which the question goes."""
    session.prepared()
    entered = [each for each in TEMPORARY if session.entered(*each, autocommit=autocommit)]
    assert entered == []


@pytest.mark.parametrize("autocommit", [True, False])
def test_what_they_change_besides_enters(
    topology: PostgreSQLTopology, session: Session, *, autocommit: bool
) -> None:
    """By a function, a view, a trigger, a default, a sequence, a large object, a table beside."""
    topology.execute("CREATE TABLE own (a int)")
    topology.execute(f"GRANT ALL ON own TO {topology.user}")
    session.prepared()
    lost = [each for each in LASTING if not session.entered(*each, autocommit=autocommit)]
    assert lost == []


def test_a_user_who_may_not_see_locks_commits(
    topology: PostgreSQLTopology, session: Session
) -> None:
    """As before, and what it changed enters."""
    topology.execute("REVOKE SELECT ON pg_locks FROM public")
    try:
        session.prepared()
        assert session.entered(OWN)
    finally:
        topology.execute("GRANT SELECT ON pg_locks TO public")
