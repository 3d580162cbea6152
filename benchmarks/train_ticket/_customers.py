"""Users: each cancels an order and then looks for the refund, at times that no answer delays."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any

import httpx

from ._stores import PASSWORD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._observer import Observer
    from ._services import Edge
    from ._stores import Order

_TIMEOUT_S = 60.0
#: Enough that no user waits for another's answer at the rates of a benchmark.
_USERS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Seen:
    """What a user saw. Times are of this machine's monotonic clock, in seconds.

    Attributes:
        order: that was cancelled.
        cancelled: whether the answer said so.
        answered: whether the look-up was answered.
        refunded: whether it showed the refund.
        cancel_s: how long the cancellation took, from when it was due.
        look_up_s: how long the look-up took.
        looked_at_s: when the look-up was sent.
        shown_at_s: when its answer came.
        error: what went wrong, if something did.
    """

    order: Order
    cancelled: bool = False
    answered: bool = False
    refunded: bool = False
    cancel_s: float = 0.0
    look_up_s: float = 0.0
    looked_at_s: float = 0.0
    shown_at_s: float = 0.0
    error: str = ""


def cancel_all(
    edge: Edge,
    orders: Sequence[Order],
    observer: Observer,
    *,
    rate: float,
    think_ms: float,
    seed: int,
    keep_cookies: bool = True,
    users_at_once: int = _USERS_AT_ONCE,
) -> list[Seen]:
    """Cancel every order and look for its refund; what was seen, in the order of *orders*.

    Args:
        edge: what users call.
        orders: each is cancelled once.
        observer: who is to watch for the refunds.
        rate: cancellations a second on average, at random times.
        think_ms: for how long a user who has the answer does nothing.
        seed: of the times.
        keep_cookies: whether users send back the cookies that they got, as browsers do.
        users_at_once: how many are under way at the most; further ones come late.
    """
    gaps = random.Random(seed)
    # The users share a client: what one was given must not go out with another's request.
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
    limits = httpx.Limits(max_connections=None)
    with httpx.Client(timeout=_TIMEOUT_S, limits=limits, cookies=no_cookies) as client:
        tokens = {user: log_in(client, edge, user) for user in sorted({it.user for it in orders})}
        due_s = time.monotonic()
        futures = []
        with ThreadPoolExecutor(users_at_once) as users:
            for order in orders:
                due_s += gaps.expovariate(rate)
                time.sleep(max(0.0, due_s - time.monotonic()))
                one = _User(client, edge, tokens[order.user], observer, think_ms, keep_cookies)
                futures.append(users.submit(one.cancel, order, due_s))
        return [it.result() for it in futures]


def log_in(client: httpx.Client, edge: Edge, user: str) -> str:
    """The token of a user who is logged in."""
    given = {"name": user, "password": PASSWORD}
    answer = client.post(f"{edge.auth}/api/v1/users/login", json=given)
    return str(answer.raise_for_status().json()["token"])


@dataclass(frozen=True, slots=True)
class _User:
    client: httpx.Client
    edge: Edge
    token: str
    observer: Observer
    think_ms: float
    keep_cookies: bool

    def cancel(self, order: Order, due_s: float) -> Seen:
        """Cancel an order and look for its refund."""
        try:
            return self._cancel(order, due_s)
        except (httpx.HTTPError, ValueError) as error:
            return Seen(order, error=f"{type(error).__name__}: {error}"[:200])

    def _cancel(self, order: Order, due_s: float) -> Seen:
        self.observer.expect(order.id)
        path = f"/api/v1/cancelservice/cancel/{order.id}/{order.user}"
        answer = self._get(f"{self.edge.cancel}{path}", {"Authorization": self.token})
        cancelled_s = time.monotonic()
        if answer.json()["status"] != 1:
            return Seen(order, error=answer.json()["msg"])
        time.sleep(self.think_ms / 1000)
        cookies = [it.partition(";")[0] for it in answer.headers.get_list("set-cookie")]
        headers = {"Cookie": "; ".join(cookies)} if cookies and self.keep_cookies else {}
        path = f"/api/v1/inside_pay_service/inside_payment/money/{order.id}"
        looked_at_s = time.monotonic()
        shown = self._get(f"{self.edge.look_up}{path}", headers, raising=False)
        shown_at_s = time.monotonic()
        found = shown.json() if shown.is_success else []
        return Seen(
            order,
            cancelled=True,
            answered=shown.is_success,
            refunded=any(it["type"] == "D" and it["cents"] == order.refund for it in found),
            cancel_s=cancelled_s - due_s,
            look_up_s=shown_at_s - looked_at_s,
            looked_at_s=looked_at_s,
            shown_at_s=shown_at_s,
            error="" if shown.is_success else f"look-up: {shown.status_code}",
        )

    def _get(self, url: str, headers: dict[str, Any], *, raising: bool = True) -> httpx.Response:
        answer = self.client.get(url, headers=headers)
        return answer.raise_for_status() if raising else answer
