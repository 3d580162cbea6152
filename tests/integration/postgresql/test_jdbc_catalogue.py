"""What a name in a statement means is what the server makes of it, through a pool of Java's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.postgresql._jdbc import application
from tests.integration.postgresql._named import (
    CALLING,
    READING,
    RELATIONS,
    USING,
    having_functions,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode_testing import PostgreSQLTopology
    from tests.agent.lending import Lend
    from tests.integration.postgresql._clients import Clients

pytestmark = [pytest.mark.slow, pytest.mark.store("postgresql")]


@pytest.fixture
def named(clients: Clients) -> Iterator[PostgreSQLTopology]:
    """Servers with the application's functions."""
    with having_functions(clients.topology) as topology:
        yield topology


@pytest.fixture
def entered(named: PostgreSQLTopology, lend: Lend) -> Iterator[Callable[[str], bool]]:
    """Executes a statement that commits on its own: whether it leaves something in the lineage."""
    app = application(named, lend)
    with app.client(named.primary) as client:

        def executed(statement: str) -> bool:
            with app.remote.scope() as scope:
                client.call("execute", statement)
                return bool(scope.lineage) or bool(scope.lineage.incomplete)

        yield executed


def test_what_a_function_of_the_applications_writes_enters(entered: Callable[[str], bool]) -> None:
    """Whatever PostgreSQL has of that name, and also once it is known."""
    lost = [each for each in CALLING for _ in range(2) if not entered(each)]
    assert lost == []


def test_what_uses_a_function_may_write(
    named: PostgreSQLTopology, entered: Callable[[str], bool]
) -> None:
    """A view, a policy and a condition of a domain; and nothing else does for that reason."""
    for statement in RELATIONS:
        named.execute(statement.format(user=named.user))
    assert [each for each in USING if not entered(each)] == []
    assert [each for each in READING if entered(each)] == []


def test_a_name_that_the_schema_gets_later_is_asked_for_again(
    entered: Callable[[str], bool],
) -> None:
    """What a connection defines is known to it at once."""
    made = (
        "CREATE FUNCTION named.lower(posts) RETURNS text LANGUAGE sql AS 'SELECT named.log($$l$$)'"
    )
    assert not entered("SELECT lower(body) FROM posts")
    assert entered(made)
    assert entered("SELECT lower(p) FROM posts p")
