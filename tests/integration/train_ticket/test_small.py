"""TrainTicket in small: fifty users cancel, and look at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx
import pytest

from antipode_testing import wait_until
from benchmarks.train_ticket._money import count
from benchmarks.train_ticket._stores import email
from tests.integration.train_ticket._application import LAG_MS, application, cancelled, seeded

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.train_ticket._customers import Seen
    from benchmarks.train_ticket._money import Money
    from benchmarks.train_ticket._services import Edge
    from benchmarks.train_ticket._stores import Order, Stores

pytestmark = [pytest.mark.store(it) for it in ("mysql", "mongodb", "rabbitmq", "redis")]

USERS = 50
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Small:
    """What happened.

    Attributes:
        forgetful: what users saw whose browsers keep no cookies, so that nothing is waited for.
        others: what the other users saw.
        money: of all.
        told: what the notification service told the others, by order.
    """

    forgetful: list[Seen]
    others: list[Seen]
    money: Money
    told: dict[str, str]


def _told(edge: Edge, orders: list[Order]) -> dict[str, str]:
    """What users were told of *orders*, once they were told of all."""
    found: dict[str, str] = {}

    def all_are() -> bool:
        for user in {it.user for it in orders}:
            url = f"{edge.notification}/api/v1/notifyservice/notices/{email(user)}"
            found.update(httpx.get(url).raise_for_status().json())
        return all(it.id in found for it in orders)

    wait_until(all_are, what="the notifications", timeout_s=TIMEOUT_S, interval_s=0.05)
    return {it.id: found[it.id] for it in orders}


@pytest.fixture
def small(stores: Stores, tmp_path: Path) -> Small:
    """The application with a barrier at the look-up, and what its users saw."""
    with application(stores, tmp_path, "look-up") as edges:
        edge = edges["look-up"]
        orders = seeded(stores, "small", 2 * USERS)
        stores.set_lag(LAG_MS)
        forgetful = cancelled(stores, edge, orders[:USERS], keep_cookies=False)
        others = cancelled(stores, edge, orders[USERS:])
        money = count(stores, edge.database, orders)
        return Small(forgetful, others, money, _told(edge, orders[USERS:]))


@pytest.mark.timeout(900)
def test_users_who_cancel_find_their_refund(small: Small) -> None:
    """After the barrier no refund is missing, elsewhere some are; the money adds up."""
    assert [it.error for it in (*small.forgetful, *small.others) if it.error] == []
    assert sum(not it.refunded for it in small.forgetful) > 0
    assert [it.order.id for it in small.others if not it.refunded] == []
    assert small.money.adds_up, small.money.said()
    assert small.money.cancelled == 2 * USERS
    refunds = {it.order.id: f"{it.order.refund} cents are yours" for it in small.others}
    assert small.told == refunds
