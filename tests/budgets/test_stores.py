"""What the library adds to calls of clients of stores: functions, exchanges, threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.budgets._clients import CLIENTS, Client, count

if TYPE_CHECKING:
    from collections.abc import Callable


#: The others' servers take longer to start than all of their budgets to count.
QUICK = {"redis"}


@pytest.fixture
def topology(request: pytest.FixtureRequest, client: Client) -> Any:
    """The servers of a client's store."""
    return request.getfixturevalue(f"antipode_{client.store}")


def case(client: Client, call: str) -> Any:
    """One call of a client."""
    marks = [pytest.mark.store(client.store)]
    if client.store not in QUICK:
        marks.append(pytest.mark.slow)
    return pytest.param(client, call, id=f"{client.name}: {call}", marks=marks)


@pytest.mark.parametrize(
    ("client", "call"), [case(client, call) for client in CLIENTS for call in client.calls]
)
def test_a_call_of_a_client_is_within_its_budget(
    topology: Any, hold: Callable[..., None], client: Client, call: str
) -> None:
    """The instrumented call minus the plain one is what the file says, to the last call."""
    hold(count(client, call, topology))
