"""The money is counted: what was paid is what came back and what was kept."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pymongo

from antipode_testing import TopologyTimeout, wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._stores import Order, Stores

_SETTLE_S = 60.0


@dataclass(frozen=True, slots=True)
class Money:
    """What the stores say once nothing is under way any more. Amounts are in cents.

    Attributes:
        cancelled: how many orders are.
        paid: for all cancelled orders.
        refunded: what came back for them.
        kept: what did not.
        lost: cancelled orders without a refund.
        doubled: orders with more refunds than one.
        undue: orders with a refund that are not cancelled.
    """

    cancelled: int
    paid: int
    refunded: int
    kept: int
    lost: int
    doubled: int
    undue: int

    @property
    def adds_up(self) -> bool:
        """Whether nothing is lost, doubled or undue."""
        wrong = self.lost or self.doubled or self.undue
        return not wrong and self.paid == self.refunded + self.kept

    def said(self) -> str:
        """A line for a report."""
        verdict = "adds up" if self.adds_up else "does NOT add up"
        return (
            f"money {verdict}: of {self.cancelled} cancelled orders paid {self.paid}, refunded "
            f"{self.refunded}, kept {self.kept} cents; {self.lost} refunds lost, {self.doubled} "
            f"doubled, {self.undue} undue"
        )


def count(stores: Stores, database: str, orders: Sequence[Order]) -> Money:
    """Count the money of *orders*, once every cancelled one has its refund, or a minute is over."""
    cancelled = stores.cancelled(orders)
    ids = [it.id for it in orders]
    url = stores.mongodb_url(reads=False)
    with pymongo.MongoClient[dict[str, Any]](url) as client:
        money = client[database].money

        def settled() -> bool:
            return money.count_documents({"_id": {"$in": ids}}) >= len(cancelled)

        with suppress(TopologyTimeout):  # What is missing is counted.
            wait_until(settled, what="the refunds", timeout_s=_SETTLE_S, interval_s=0.05)
        found = list(money.find({"_id": {"$in": ids}, "type": "D"}))
    refunded = {it["_id"] for it in found}
    return Money(
        cancelled=len(cancelled),
        paid=sum(it.cents for it in orders if it.id in cancelled),
        refunded=sum(it["cents"] for it in found),
        kept=sum(it["kept"] for it in found),
        lost=len(cancelled - refunded),
        doubled=len(found) - len(refunded),
        undue=len(refunded - cancelled),
    )
