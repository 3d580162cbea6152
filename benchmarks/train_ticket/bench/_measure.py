"""Measures cells: the load driver cancels and looks up, and what its users saw is kept."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import httpx
import psutil

from benchmarks.judge import rotated
from benchmarks.load import FollowUp, Request, arrivals, drive
from benchmarks.train_ticket._customers import Seen, log_in
from benchmarks.train_ticket._money import count
from benchmarks.train_ticket._observer import Observer, Sight
from benchmarks.train_ticket._run import Outcome, orders_of
from benchmarks.train_ticket._variants import VARIANTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.judge import Trial
    from benchmarks.load import Answer, Load
    from benchmarks.train_ticket._services import Edge, Services
    from benchmarks.train_ticket._stores import Order, Stores
    from benchmarks.train_ticket._variants import VariantName

    from ._plan import Cell

SEED = 1
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Block:
    """One turn of one variant. Times are milliseconds, one for each request that has it.

    Attributes:
        variant: whose turn it was.
        block: its number.
        cancels: how many were sent.
        trials: of each look-up what the judge takes, as five digits.
        errors: texts, and how often.
        cancel_ms: latency of cancellations, from when each was due.
        look_up_ms: latency of look-ups.
        window_ms: from the look-up to the refund's visibility where it reads.
        late_ms: from that visibility to the end of a look-up that waited.
        throughput: cancels a second whose refund was made and looked up.
        cpu_us: processor time for each cancel, by service.
        driver_late_ms: how late the driver was, at the 99th percentile.
        money_adds_up: whether what was paid is what came back and what was kept.
        money: the same in words.
    """

    variant: VariantName
    block: int
    cancels: int
    trials: list[str]
    errors: dict[str, int]
    cancel_ms: list[float]
    look_up_ms: list[float]
    window_ms: list[float]
    late_ms: list[float]
    throughput: float
    cpu_us: dict[str, float]
    driver_late_ms: float
    money_adds_up: bool
    money: str


def measured(cell: Cell, stores: Stores, services: Services) -> list[Block]:
    """Let each variant of a cell have its turns."""
    orders = {it: orders_of(it, cell.cancels * cell.blocks) for it in cell.variants}
    stores.seed([order for each in orders.values() for order in each])
    found = []
    for block in range(cell.blocks):
        for name in rotated(cell.variants, block):
            taken = orders[name][block * cell.cancels : (block + 1) * cell.cancels]
            turn = _Turn(cell, name, block, taken)
            found.append(_block(turn, stores, services))
    return found


@dataclass(frozen=True, slots=True)
class _Turn:
    cell: Cell
    variant: VariantName
    block: int
    orders: Sequence[Order]


def _block(turn: _Turn, stores: Stores, services: Services) -> Block:
    cell, name, orders = turn.cell, turn.variant, turn.orders
    edge = services.edges[name]
    processes = services.of(VARIANTS[name])
    before = _spent_s(processes)
    with ExitStack() as stack:
        observer = None
        if cell.watched:
            url = stores.mongodb_url(reads=True)
            observer = stack.enter_context(Observer(url, edge.database))
        load = _cancelled(cell, edge, orders, observer, SEED + turn.block)
        if observer is not None:
            observer.settle()
        sights = [Sight() if observer is None else observer.sight(it.id) for it in orders]
    money = count(stores, edge.database, orders)
    ended_s = time.monotonic()
    seen = [_seen(*pair) for pair in zip(orders, load.answers, strict=True)]
    outcome = Outcome(name, seen, sights)
    spent = {it: after - before[it] for it, after in _spent_s(processes).items()}
    return Block(
        variant=name,
        block=turn.block,
        cancels=len(orders),
        trials=[_digits(it) for it in outcome.trials()],
        errors=dict(Counter(it.error for it in seen if it.error)),
        cancel_ms=_ms(it.cancel_s for it in seen if it.cancelled),
        look_up_ms=_ms(it.look_up_s for it in seen if it.answered),
        window_ms=[round(it, 3) for it in outcome.windows_ms()],
        late_ms=[round(it, 3) for it in outcome.late_ms()],
        throughput=sum(it.answered for it in seen) / (ended_s - load.answers[0].due_s),
        cpu_us={it: seconds * 1e6 / len(orders) for it, seconds in spent.items()},
        driver_late_ms=round(load.late_ms, 3),
        money_adds_up=money.adds_up,
        money=money.said(),
    )


def _cancelled(
    cell: Cell, edge: Edge, orders: Sequence[Order], observer: Observer | None, seed: int
) -> Load:
    """What came back to users who cancelled *orders*, each at its time, and then looked."""
    with httpx.Client(timeout=_TIMEOUT_S) as client:
        tokens = {user: log_in(client, edge, user) for user in sorted({it.user for it in orders})}
    times = arrivals(cell.rate, seed=seed)
    due_s = [next(times) for _ in orders]

    def expect(began_s: float) -> None:
        if observer is not None:
            offsets = zip(orders, due_s, strict=True)
            observer.expect_at([(order.id, began_s + offset) for order, offset in offsets])

    requests = [_request(edge, it, tokens[it.user], cell.think_ms) for it in orders]
    return drive(requests, due_s, timeout_s=_TIMEOUT_S, on_begin=expect)


def _request(edge: Edge, order: Order, token: str, think_ms: float) -> Request:
    look_up = f"{edge.look_up}/api/v1/inside_pay_service/inside_payment/money/{order.id}"
    return Request(
        f"{edge.cancel}/api/v1/cancelservice/cancel/{order.id}/{order.user}",
        headers={"Authorization": token},
        keep_body=True,
        then=FollowUp(look_up, after_ms=think_ms, cookies=True),
    )


def _seen(order: Order, answer: Answer) -> Seen:
    """What a user saw."""
    refused = f"cancel: {answer.error or answer.status}"
    if not answer.good:
        return Seen(order, error=refused)
    said = json.loads(answer.body)
    if said["status"] != 1:
        return Seen(order, error=said["msg"])
    shown = answer.then
    if shown is None:
        return Seen(order, cancelled=True, error=refused)
    found = json.loads(shown.body) if shown.good else []
    return Seen(
        order,
        cancelled=True,
        answered=shown.good,
        refunded=any(it["type"] == "D" and it["cents"] == order.refund for it in found),
        cancel_s=answer.latency_s,
        look_up_s=shown.latency_s,
        looked_at_s=shown.sent_s,
        shown_at_s=shown.ended_s,
        error="" if shown.good else f"look-up: {shown.error or shown.status}",
    )


def _digits(trial: Trial) -> str:
    bits = (trial.answered, trial.right, trial.told, trial.exposed, trial.early)
    return "".join("01"[bool(it)] for it in bits)


def _ms(seconds: Iterator[float]) -> list[float]:
    return [round(it * 1000, 3) for it in seconds]


def _spent_s(processes: dict[str, int]) -> dict[str, float]:
    """The processor time of each process, of all its threads, as /proc/PID/stat has it."""
    found = {}
    for name, pid in processes.items():
        times = psutil.Process(pid).cpu_times()
        found[name] = times.user + times.system
    return found


def as_json(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """Blocks, as a file keeps them."""
    return [asdict(it) for it in blocks]


def of_json(found: Sequence[dict[str, Any]]) -> list[Block]:
    """Blocks that a file kept."""
    return [Block(**it) for it in found]
