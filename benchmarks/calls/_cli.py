"""``python -m benchmarks.calls once``: 0 effects made twice where others make some."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antipode_testing import (
    MariaDBTopology,
    MongoDBTopology,
    MySQLTopology,
    PostgreSQLTopology,
)

from ._run import STRATEGIES, play

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._run import Outcome

STORES = ("postgresql", "mysql", "mariadb", "mongodb")
ORDERS, QUICK_ORDERS = 10_000, 100
#: A process of the service has one to so many steps.
STEPS = 80


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print a line each, and say whether it holds.

    Returns:
        0 where no effect was made twice by ``once``, nobody was told of two payments, and the plain
        service made some twice.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calls", description=__doc__)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    once = commands.add_parser("once", help="retried calls of a server that is killed")
    once.add_argument("--quick", action="store_true", help=f"{QUICK_ORDERS} orders a store")
    once.add_argument("--orders", type=int, help=f"a store; default {ORDERS}")
    once.add_argument("--store", choices=STORES, action="append", help="default: all of them")
    once.add_argument(
        "--steps", type=int, default=STEPS, help=f"the most of a process; default {STEPS}"
    )
    once.add_argument("--json", type=Path, metavar="FILE", help="write the outcomes there")
    given = parser.parse_args(arguments)
    orders = given.orders or (QUICK_ORDERS if given.quick else ORDERS)
    outcomes: list[Outcome] = []
    for store in given.store or STORES:
        with ExitStack() as stack:
            url = _url(stack, store)
            for strategy in STRATEGIES:
                outcome = play(store, url, strategy, orders=orders, steps=given.steps)
                outcomes.append(outcome)
                sys.stdout.write(f"{_line(outcome)}\n")
                sys.stdout.flush()
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(each) for each in outcomes], indent=2) + "\n")
    return 0 if holds(outcomes) else 1


def holds(outcomes: Sequence[Outcome]) -> bool:
    """Whether ``once`` has no effect twice, and the plain service has some in each store."""
    clean = all(
        not (each.doubled or each.two_replies or each.unpaid)
        for each in outcomes
        if each.strategy == "once"
    )
    return clean and all(each.doubled for each in outcomes if each.strategy == "plain")


def _url(stack: ExitStack, store: str) -> str:
    """The primary of *store*, started for this run."""
    if store == "mongodb":
        return stack.enter_context(MongoDBTopology()).set_url
    kinds: dict[str, tuple[Any, str]] = {
        "postgresql": (PostgreSQLTopology, "postgresql+psycopg"),
        "mysql": (MySQLTopology, "mysql+pymysql"),
        "mariadb": (MariaDBTopology, "mariadb+pymysql"),
    }
    topology, driver = kinds[store]
    url: str = stack.enter_context(topology()).url(driver=driver)
    return url


def _line(outcome: Outcome) -> str:
    return (
        f"{outcome.store:10}  {outcome.strategy:12}  {outcome.orders} orders: "
        f"{outcome.doubled} paid twice, {outcome.two_replies} with two replies, "
        f"{outcome.unpaid} without a payment, {outcome.failed} attempts failed"
    )
