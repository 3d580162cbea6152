"""TrainTicket of the benchmarks, in small: what its tests share."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from benchmarks.train_ticket._build import SERVICES, build
from benchmarks.train_ticket._customers import cancel_all
from benchmarks.train_ticket._observer import Observer
from benchmarks.train_ticket._run import orders_of
from benchmarks.train_ticket._services import Services
from benchmarks.train_ticket._variants import VARIANTS, TrainTicketError
from tests.conformance._agents import REQUIRE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.train_ticket._customers import Seen
    from benchmarks.train_ticket._services import Edge
    from benchmarks.train_ticket._stores import Order, Stores
    from benchmarks.train_ticket._variants import VariantName

LAG_MS = 100
#: As fast as a few users at once can: it is a test of what they see, not of when.
RATE, USERS_AT_ONCE = 10_000, 6
#: Longer than anything takes on a busy machine.
PATIENCE_S = 25.0


@contextmanager
def application(
    stores: Stores, folder: Path, *names: VariantName, dry_run_dir: Path | None = None
) -> Iterator[dict[str, Edge]]:
    """The services of some variants for the block; what users call, by the variant."""
    with running(stores, folder, *names, dry_run_dir=dry_run_dir) as services:
        yield services.edges


@contextmanager
def running(
    stores: Stores, folder: Path, *names: VariantName, dry_run_dir: Path | None = None
) -> Iterator[Services]:
    """The services of some variants for the block."""
    chosen = [VARIANTS[it] for it in names]
    try:
        for library in sorted({it.library for it in chosen}):
            build(library=library)
    except TrainTicketError as error:
        if "java" in os.environ.get(REQUIRE_VARIABLE, "").split(","):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))
    with Services(
        stores, folder, chosen, patience_s=PATIENCE_S, dry_run_dir=dry_run_dir
    ) as services:
        yield services


def seeded(stores: Stores, name: str, number: int) -> list[Order]:
    """So many orders, in the stores of both regions."""
    orders = orders_of(name, number)
    stores.seed(orders)
    return orders


def cancelled(
    stores: Stores, edge: Edge, orders: Sequence[Order], *, keep_cookies: bool = True
) -> list[Seen]:
    """What users saw who cancelled and looked at once."""
    with Observer(stores.mongodb_url(reads=True), edge.database) as observer:
        return cancel_all(
            edge,
            orders,
            observer,
            rate=RATE,
            think_ms=0,
            seed=1,
            keep_cookies=keep_cookies,
            users_at_once=USERS_AT_ONCE,
        )


def place(file: str, code: str) -> tuple[str, int]:
    """Where a line of the services with the library is: its file and number."""
    (path,) = SERVICES.glob(f"*/src/antipode/java/trainticket/*/{file}")
    lines = path.read_text(encoding="utf-8").splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if code in line]
    return file, number
