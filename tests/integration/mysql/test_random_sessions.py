"""Random sessions over MySQL and MariaDB see all rows, however many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.programs._sessions.mysql import MADE, STATE

from ._servers import FLAVORS

if TYPE_CHECKING:
    from ._servers import Topology

#: Of some 5,000 steps.
ROWS = 3000


@pytest.fixture(params=FLAVORS)
def topology(request: pytest.FixtureRequest) -> Topology:
    found: Topology = request.getfixturevalue(request.param)
    found.execute(MADE[0])
    return found


def test_another_row_is_seen_beside_many(topology: Topology) -> None:
    """A row that is added, changed or removed shows, in whichever place, beside 3,000 others."""
    rows = ", ".join(f"({number}, 1)" for number in range(ROWS))
    topology.execute(f"INSERT INTO app.kept VALUES {rows}")  # noqa: S608 - numbers
    states = [topology.execute(STATE)]
    for statement in (
        f"INSERT INTO app.kept VALUES ({ROWS}, 1)",  # noqa: S608 - a number
        "UPDATE app.kept SET v = v + 1 ORDER BY n DESC LIMIT 1",
        "UPDATE app.kept SET v = v + 1 ORDER BY n LIMIT 1",
        "DELETE FROM app.kept ORDER BY n DESC LIMIT 1",
        "CREATE TABLE app.made (a INT)",
    ):
        topology.execute(statement)
        states.append(topology.execute(STATE))
    assert all(state not in states[:number] for number, state in enumerate(states))
