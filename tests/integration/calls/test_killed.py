"""A payment service that is killed between any two of its steps, and callers that try again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.calls._cli import STEPS, holds
from benchmarks.calls._run import Outcome, play

if TYPE_CHECKING:
    from collections.abc import Callable

URLS: dict[str, Callable[[Any], str]] = {
    "postgresql": lambda topology: topology.url(driver="postgresql+psycopg"),
    "mysql": lambda topology: topology.url(driver="mysql+pymysql"),
    "mariadb": lambda topology: topology.url(driver="mariadb+pymysql"),
    "mongodb": lambda topology: topology.set_url,
}


@pytest.mark.parametrize(
    "store",
    [
        pytest.param("postgresql", marks=pytest.mark.store("postgresql")),
        *(
            pytest.param(each, marks=[pytest.mark.store(each), pytest.mark.nightly])
            for each in ("mysql", "mariadb", "mongodb")
        ),
    ],
)
def test_nothing_is_paid_twice(request: pytest.FixtureRequest, store: str) -> None:
    """Whatever step was the last one, each order has one payment, and one reply for all who ask."""
    url = URLS[store](request.getfixturevalue(f"antipode_{store}"))
    outcome = play(store, url, "once", orders=15, steps=STEPS)
    assert outcome.failed, "nothing was killed"
    assert (outcome.doubled, outcome.two_replies, outcome.unpaid) == (0, 0, 0), outcome


def test_a_benchmark_that_shows_nothing_does_not_hold() -> None:
    """Where the plain service pays nothing twice either, the run was too short to say anything."""
    clean = Outcome("postgresql", "once", 9, doubled=0, two_replies=0, unpaid=0, failed=5)
    plain = replace(clean, strategy="plain", doubled=1)
    assert holds([clean, plain])
    assert not holds([clean, replace(plain, doubled=0)])
    for bad in (replace(clean, doubled=1), replace(clean, two_replies=1), replace(clean, unpaid=1)):
        assert not holds([clean, plain, bad])
