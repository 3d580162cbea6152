"""The command line."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks._report import Start
from benchmarks.judge import busy

from ._variants import COMPARED, NAMES, VARIANTS, TrainTicketError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._run import Options
    from ._variants import VariantName

USAGE = 2
INTERRUPTED = 130
_PROGRAM = "python -m benchmarks.train_ticket"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="TrainTicket of the Antipode paper: how often a user who cancelled an order "
        "and looks at once finds no refund, without Antipode and with it.",
        epilog="exit status of run: 0 no refund was missing with a barrier, where some were "
        "without, and the money adds up; 1 one was missing; 2 bad arguments or a missing server; "
        "3 inconclusive, it says why; 130 interrupted",
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    up = verbs.add_parser("up", help="start the application and say where it is, until Ctrl-C")
    up.add_argument("--variant", choices=NAMES, default="look-up", help="how it runs (look-up)")
    _add_stores(up)
    run = verbs.add_parser("run", help="cancel, look up, and judge")
    run.add_argument("--quick", action="store_true", help="300 cancels of each variant, 5 blocks")
    run.add_argument("--cancels", type=_count, help="of each variant (3000)")
    run.add_argument("--blocks", type=_count, default=5, help="turns of each variant (5)")
    run.add_argument("--warmup", type=int, help="more first, left out (a tenth, up to 100)")
    run.add_argument("--variants", type=_variants, default=COMPARED, help=",".join(COMPARED))
    run.add_argument("--rate", type=_positive, default=20.0, help="cancels a second (20)")
    run.add_argument("--think-ms", type=float, default=0.0, help="before looking (0)")
    run.add_argument("--seed", type=int, default=1, help="of the arrival times (1)")
    run.add_argument("--json", type=Path, metavar="FILE", help="write every observation there")
    _add_stores(run)
    return parser


def _add_stores(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--regions", type=int, choices=(1, 2), default=2, help="1 or 2 (2)")
    parser.add_argument("--lag-ms", type=float, default=50.0, help="of replicas (50)")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 1_000_000:
        msg = f"{text!r} is not a number from 1 to 1000000"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value <= 10_000:
        msg = f"{text!r} is not a number above 0 and up to 10000"
        raise argparse.ArgumentTypeError(msg)
    return value


def _variants(text: str) -> tuple[VariantName, ...]:
    named = text.split(",")
    unknown = [it for it in named if it not in NAMES]
    if unknown:
        msg = f"{unknown[0]!r} is none of {', '.join(NAMES)}"
        raise argparse.ArgumentTypeError(msg)
    return tuple(it for it in NAMES if it in named)


def options_of(given: argparse.Namespace) -> Options:
    """What a run is told."""
    from ._run import Options

    cancels = given.cancels or (300 if given.quick else 3000)
    return Options(
        variants=given.variants,
        cancels=cancels,
        blocks=min(given.blocks, cancels),
        warmup=min(max(cancels // 10, 10), 100) if given.warmup is None else given.warmup,
        rate=given.rate,
        think_ms=given.think_ms,
        lag_ms=given.lag_ms,
        regions=given.regions,
        seed=given.seed,
        json_path=given.json,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; its exit status."""
    given = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if given.verb == "up":
            return _up(given)
        return _run(options_of(given), list(arguments or sys.argv[1:]), short=given.quick)
    except TrainTicketError as error:
        print(f"train_ticket: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("train_ticket: interrupted, everything is stopped", file=sys.stderr)
        return INTERRUPTED


def _run(options: Options, arguments: list[str], *, short: bool) -> int:
    from rich.console import Console

    from . import _report
    from ._run import run

    start = Start.now()
    outcomes = run(options, lambda line: print(line, file=sys.stderr, flush=True))
    console = Console()
    if not console.is_terminal:
        console.width = 150
    conditions = start.conditions(_PROGRAM, arguments, short=short, versions={})
    machine = conditions["machine"]
    if loaded := busy(machine["in_use"], machine["processors"]):
        console.print(loaded, style="bold yellow")
    _report.show(console, options, outcomes)
    _report.write(options, outcomes, conditions)
    judged = _report.verdict(outcomes)
    console.print(judged.said, style="bold green" if judged.status == 0 else "bold red")
    return judged.status


def _up(given: argparse.Namespace) -> int:
    from ._build import build
    from ._run import orders_of
    from ._services import Services
    from ._stores import PASSWORD, started

    variant = VARIANTS[given.variant]
    build(library=variant.library)
    with (
        tempfile.TemporaryDirectory(prefix="train-ticket-") as folder,
        started(two_regions=given.regions == 2) as stores,
        Services(stores, Path(folder), [variant]) as services,
    ):
        orders = orders_of("order", 100)
        stores.seed(orders)
        if stores.two_regions:
            stores.set_lag(given.lag_ms)
        edge = services.edges[variant.name]
        order = orders[0]
        print(f"""TrainTicket runs ({variant.name}: {variant.said}); logs are in {folder}
log in, cancel, look (orders {order.id.rpartition("-")[0]}-0 to -99, of user-0 to user-9):
  curl -s {edge.auth}/api/v1/users/login -H 'Content-Type: application/json' \\
    -d '{{"name": "{order.user}", "password": "{PASSWORD}"}}'
  curl -s -c cookies -H 'Authorization: TOKEN' \\
    {edge.cancel}/api/v1/cancelservice/cancel/{order.id}/{order.user}
  curl -s -b cookies {edge.look_up}/api/v1/inside_pay_service/inside_payment/money/{order.id}
  curl -s {edge.notification}/api/v1/notifyservice/notices/{order.user}@example.org
Ctrl-C stops it""")
        sys.stdout.flush()
        threading.Event().wait()
    return 0
