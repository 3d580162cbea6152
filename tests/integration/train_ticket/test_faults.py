"""TrainTicket when something dies: users call again, and the money is counted."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import httpx
import pytest

from antipode_testing import wait_until
from benchmarks.train_ticket._customers import log_in
from benchmarks.train_ticket._money import count
from tests.integration.train_ticket._application import running, seeded

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.train_ticket._services import Edge, Services
    from benchmarks.train_ticket._stores import Order, Stores

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    *(pytest.mark.store(it) for it in ("mysql", "mongodb", "rabbitmq", "redis")),
]

USERS_AT_ONCE, ORDERS, BEFORE = 4, 24, 6
#: Longer than any client of a store waits for a server that is away.
REQUEST_S = 100.0
PATIENCE_S = 400.0
STORES = ("mysql", "mongodb", "rabbitmq", "redis")
SERVICES = (
    "look-up-cancel",
    "look-up-look-up",
    "antipode-inside-payment",
    "antipode-payment",
    "antipode-order",
    "antipode-order-other",
    "antipode-user",
    "antipode-auth",
    "antipode-notification",
)


class User:
    """Calls again after an error, as long as it takes."""

    def __init__(self, edge: Edge, done: Callable[[], None]) -> None:
        self.edge = edge
        self.done = done
        self.errors: Counter[str] = Counter()

    def cancel(self, order: Order) -> None:
        """Cancel an order, then look until an answer comes: it has the refund."""
        with httpx.Client(timeout=REQUEST_S) as client:
            self._until_answered(f"cancel {order.id}", lambda: self._cancelled(client, order))
            self._until_answered(f"look up {order.id}", lambda: self._shown(client, order))
        self.done()

    def _until_answered(self, what: str, call: Callable[[], bool]) -> None:
        def answered() -> bool:
            try:
                return call()
            except (httpx.HTTPStatusError, httpx.NetworkError, httpx.RemoteProtocolError) as error:
                self.errors[f"{what.partition(' ')[0]}: {error}"[:80]] += 1
                return False

        wait_until(answered, what=what, timeout_s=PATIENCE_S, interval_s=0.2)

    def _cancelled(self, client: httpx.Client, order: Order) -> bool:
        token = log_in(client, self.edge, order.user)
        path = f"/api/v1/cancelservice/cancel/{order.id}/{order.user}"
        answer = client.get(f"{self.edge.cancel}{path}", headers={"Authorization": token})
        return bool(answer.raise_for_status().json()["status"] == 1)

    def _shown(self, client: httpx.Client, order: Order) -> bool:
        path = f"/api/v1/inside_pay_service/inside_payment/money/{order.id}"
        found = client.get(f"{self.edge.look_up}{path}").raise_for_status().json()
        assert [it["cents"] for it in found] == [order.refund], "an answer without the refund"
        return True


def _kill(victim: str, stores: Stores, services: Services) -> None:
    """Kill it, and start it again where it was."""
    if victim == "rabbitmq":
        stores.rabbitmq.restart_broker("us", graceful=False)
    elif victim == "mysql":
        stores.mysql.restart_primary(graceful=False)
    elif victim == "mongodb":
        stores.mongodb.restart_primary(graceful=False)
    elif victim == "redis":
        stores.redis.restart_primary(graceful=False)
    else:
        services.running[victim].kill()
        services.running[victim].start_again()


def test_whatever_dies_costs_no_user_money(stores: Stores, tmp_path: Path) -> None:
    """Each part is killed once under load: every refund is made once, and every look-up shows it.

    A request ends with an answer or an error, never without either; a user who calls again after
    an error gets an answer.
    """
    with running(stores, tmp_path, "look-up") as services:
        edge = services.edges["look-up"]
        for victim in (*STORES, *SERVICES):
            orders = seeded(stores, victim, ORDERS)
            some_done = threading.Semaphore(0)
            user = User(edge, some_done.release)
            with ThreadPoolExecutor(USERS_AT_ONCE) as users:
                calls = [users.submit(user.cancel, it) for it in orders]
                for _ in range(BEFORE):
                    some_done.acquire(timeout=PATIENCE_S)
                _kill(victim, stores, services)
                for call in calls:
                    call.result()
            money = count(stores, edge.database, orders)
            said = f"{victim}: {money.said()}; users saw {dict(user.errors)}"
            logging.getLogger(__name__).info(said)
            assert money.cancelled == ORDERS, said
            assert money.adds_up, said
