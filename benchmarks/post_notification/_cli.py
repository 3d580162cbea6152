"""The command line."""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from benchmarks.judge import busy

from ._options import (
    ALL_STORAGES,
    IN_COMPOSE,
    KINDS,
    NOTIFIERS,
    OF_OWN_SERVERS,
    STACKS,
    STRATEGIES,
    BenchmarkError,
    Options,
)
from ._strategies import stores_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._options import Kind, Strategy

USAGE = 2
INTERRUPTED = 130
#: How much the lag wanders unless told: nobody can know how long to sleep.
SPREAD = 0.5
#: By how much longer than replication takes a user would stick to the primary.
_MARGIN_MS = 1000.0
_DEFAULT: tuple[Strategy, ...] = ("none", "barrier")
_NAME = "post_notification"
#: A call that waits for longer would be taken for one that is lost.
LONGEST_DELAY_MS = 5000
#: Packages by the extra that brings them.
_NEEDED: dict[str, tuple[str, ...]] = {"bench": ("rich", "matplotlib")}
_NEEDED_BY_STORE: dict[str, tuple[str, ...]] = {
    "redis": ("redis",),
    "mysql": ("pymysql", "sqlalchemy"),
    "mariadb": ("pymysql", "sqlalchemy"),
    "postgresql": ("psycopg", "sqlalchemy"),
    "mongodb": ("pymongo",),
    "dynamodb": ("boto3", "ministack"),
    "s3": ("boto3", "ministack"),
    "seaweedfs": ("boto3",),
    "rabbitmq": ("pika",),
    "activemq": ("stomp",),
    "sns": ("boto3", "ministack"),
}
#: Stores whose extra is named after another.
_EXTRAS = {"mariadb": "mysql", "seaweedfs": "s3"}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line."""
        self.exit(USAGE, f"{self.prog}: {message} (see --help)\n")


def parse(arguments: Sequence[str] | None = None) -> Options:
    """The options of a command line; ends the program where it makes no sense."""
    parser = _parser()
    given = parser.parse_args(arguments)
    blocks = min(given.blocks, given.requests)
    few = max(given.requests // blocks // 20, 10)
    warmup = min(few, 100) if given.warmup is None else given.warmup
    longest_ms = max(given.lag_ms)
    lag_spread = given.lag_spread
    if lag_spread is None:
        lag_spread = SPREAD if given.stack == "own" else 0.0
    json_path: Path | None = given.json
    if json_path is not None and json_path.is_dir():
        parser.error(f"argument --json: {json_path} is a directory, not a file")
    out_dir: Path = given.out_dir or (json_path.parent if json_path else Path("build", _NAME))
    if out_dir.exists() and not out_dir.is_dir():
        parser.error(f"argument --out-dir: {out_dir} is not a directory")
    if given.stack == "compose" and given.post_storage not in IN_COMPOSE:
        parser.error(f"argument --stack: docker-compose.yml has no {given.post_storage}")
    for strategy in given.strategies:
        stores = stores_of(strategy, ALL_STORAGES)
        if given.post_storage not in stores:
            has = f"{given.post_storage} has no {strategy!r}, which is for {', '.join(stores)}"
            parser.error(f"argument --strategies: {has}")
        if given.stack == "compose" and strategy in OF_OWN_SERVERS:
            parser.error(f"argument --strategies: {strategy!r} changes servers: --stack own")
    if given.stack == "compose" and given.lag_spread:
        parser.error("argument --lag-spread: the stack's link has one lag: --stack own")
    pair = f"{_NAME}-{given.post_storage}-{given.notifier}"
    stem = json_path.stem if json_path is not None and given.out_dir is None else pair
    return Options(
        post_storage=given.post_storage,
        notifier=given.notifier,
        stack=given.stack,
        requests=given.requests,
        blocks=blocks,
        warmup=warmup,
        kinds=given.kinds,
        strategies=given.strategies,
        rate=given.rate,
        lags_ms=given.lag_ms,
        lag_spread=lag_spread,
        notifier_lag_ms=given.notifier_lag_ms,
        notify_delays_ms=given.notify_delay_ms,
        link_ms=given.link_ms,
        sleep_ms=longest_ms if given.sleep_ms is None else given.sleep_ms,
        stick_ms=longest_ms + _MARGIN_MS if given.stick_ms is None else given.stick_ms,
        timeout_s=given.timeout,
        post_bytes=given.post_bytes,
        seed=given.seed,
        json_path=json_path,
        png_path=out_dir / f"{stem}.png",
        details=given.details,
        history_dir=given.history,
    )


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m benchmarks.post_notification",
        description="The post-notification application of the Antipode paper, in two regions on "
        "this machine: how often followers are notified of posts that they cannot read, without "
        "barrier() and with it.",
        epilog="exit status: 0 no violation with the barrier, where reads had to wait; 1 there was "
        "one; 2 bad arguments or a missing server; 3 inconclusive, it says why; 130 interrupted",
    )
    add = parser.add_argument
    add("--post-storage", choices=ALL_STORAGES, default="embedded", help="where posts are kept")
    add("--notifier", choices=NOTIFIERS, default="embedded", help="what carries notifications")
    add(
        "--stack", choices=STACKS, default="own", help="servers of its own, or docker-compose.yml's"
    )
    add("--requests", type=_count, default=3000, help="measured requests of each kind (3000)")
    add("--blocks", type=_count, default=5, help="turns in which each strategy makes them (5)")
    add("--warmup", type=_count_or_none, help="more of each turn first (a 20th, from 10 to 100)")
    add("--kinds", type=_kinds, default=KINDS, help="any of new,update,delete (all)")
    every = ",".join(STRATEGIES)
    add("--strategies", type=_strategies, default=_DEFAULT, help=f"any of {every} (none,barrier)")
    add("--rate", type=_positive, default=80.0, help="requests a second, on average (80)")
    lags = "replication lag of the post storage (100), or several: 25,100,400"
    add("--lag-ms", type=_lags, default=(100.0,), help=lags)
    add("--lag-spread", type=_spread, help=f"how much that lag wanders, from 0 to 2 ({SPREAD})")
    add("--notifier-lag-ms", type=_lag, default=0.0, help="that of the notifier (0)")
    add("--notify-delay-ms", type=_delays, default=(), help="waited before notifying: 0,50,100")
    add("--link-ms", type=_lag, default=40.0, help="of reads of the primary, one way (40)")
    add("--sleep-ms", type=_lag, help="that the strategy sleep sleeps (the longest lag)")
    add("--stick-ms", type=_lag, help="that the strategy sticky sticks (the lag and a second)")
    add("--timeout", type=_positive, default=10.0, help="seconds a barrier may wait (10)")
    add("--post-bytes", type=_count, default=1024, help="length of a post (1024)")
    add("--seed", type=int, default=1, help="of the arrival times (1)")
    add("--json", type=Path, metavar="FILE", help="write every observation there")
    add("--out-dir", type=Path, metavar="DIR", help="of the PNG (beside --json)")
    add("--history", type=Path, metavar="DIR", help="write each strategy's history there, checked")
    add("--details", action="store_true", help="print all figures: costs, overshoot, exactness")
    return parser


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 1_000_000:
        msg = f"{text!r} is not a number from 1 to 1000000"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _count_or_none(text: str) -> int:
    return 0 if text == "0" else _count(text)


def _positive(text: str) -> float:
    value = _number(text)
    if not 0 < value <= 10_000:
        msg = f"{text!r} is not a number above 0 and up to 10000"
        raise argparse.ArgumentTypeError(msg)
    return value


def _lag(text: str) -> float:
    value = _number(text)
    if not 0 <= value <= 60_000:
        msg = f"{text!r} is not a number of milliseconds from 0 to 60000"
        raise argparse.ArgumentTypeError(msg)
    return value


def _lags(text: str) -> tuple[float, ...]:
    return tuple(dict.fromkeys(_lag(part) for part in text.split(",")))


def _spread(text: str) -> float:
    value = _number(text)
    if not 0 <= value <= 2:
        msg = f"{text!r} is not a number from 0 to 2"
        raise argparse.ArgumentTypeError(msg)
    return value


def _delays(text: str) -> tuple[float, ...]:
    delays_ms = tuple(_lag(part) for part in text.split(","))
    if max(delays_ms) > LONGEST_DELAY_MS:
        msg = f"{text!r} has a delay above {LONGEST_DELAY_MS} milliseconds"
        raise argparse.ArgumentTypeError(msg)
    return delays_ms


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        msg = f"{text!r} is not a number"
        raise argparse.ArgumentTypeError(msg) from None


def _kinds(text: str) -> tuple[Kind, ...]:
    named = [part.strip() for part in text.split(",")]
    unknown = [name for name in named if name not in KINDS]
    if unknown:
        msg = f"{unknown[0]!r} is none of {', '.join(KINDS)}"
        raise argparse.ArgumentTypeError(msg)
    return tuple(kind for kind in KINDS if kind in named)


def _strategies(text: str) -> tuple[Strategy, ...]:
    named = [part.strip() for part in text.split(",")]
    unknown = [name for name in named if name not in STRATEGIES]
    if unknown:
        msg = f"{unknown[0]!r} is none of {', '.join(STRATEGIES)}"
        raise argparse.ArgumentTypeError(msg)
    return tuple(strategy for strategy in STRATEGIES if strategy in named)


def _check_packages(options: Options) -> None:
    """Say what to install before anything is started.

    Raises:
        BenchmarkError: a package is missing.
    """
    needed = dict(_NEEDED)
    needed |= {
        _EXTRAS.get(store, store): _NEEDED_BY_STORE[store]
        for store in (options.post_storage, options.notifier)
        if store in _NEEDED_BY_STORE
    }
    for extra, packages in needed.items():
        for package in packages:
            if importlib.util.find_spec(package) is None:
                raise BenchmarkError(
                    f"the package {package!r} is missing: pip install 'antipode-xcy[{extra}]'"
                )


def _make_folders(options: Options) -> None:
    """Make the folders of the results before anything is measured.

    Raises:
        BenchmarkError: one cannot be made or written to.
    """
    history = options.history_dir and options.history_dir / "history.jsonl"
    for path in (options.json_path, options.png_path, history):
        if path is None:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BenchmarkError(f"cannot write to {path}: {error.strerror}") from error
        if not os.access(path.parent, os.W_OK):
            raise BenchmarkError(f"cannot write to {path}: its folder is read-only")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; its exit status."""
    options = parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _check_packages(options)
        _make_folders(options)
        return _measure(options)
    except BenchmarkError as error:
        print(f"post_notification: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        message = "interrupted: servers and services are stopped, nothing was written"
        print(f"post_notification: {message}", file=sys.stderr)
        return INTERRUPTED


def _measure(options: Options) -> int:
    from rich.console import Console

    from . import _report
    from ._history import record
    from ._plot import draw
    from ._result import RoundSummary, machine, verdict, write_json
    from ._run import run

    before = machine()
    with _report.Bar(Console(stderr=True), options) as bar:
        rounds = run(options, bar)
    summaries = [RoundSummary.of(done) for done in rounds]
    judged = verdict(rounds)
    status, said = judged.status, judged.said
    console = Console()
    if not console.is_terminal:
        console.width = _report.WIDTH
    _report.show(console, options, summaries, busy(before["in_use"], before["processors"]))
    if options.json_path is not None:
        write_json(options.json_path, options, rounds, before, status=status, said=said)
        console.print(f"observations: {options.json_path}", soft_wrap=True, highlight=False)
    if options.history_dir is not None:
        for strategy in options.strategies:
            told = record(options.history_dir, strategy, rounds)
            console.print(told, soft_wrap=True, highlight=False)
    draw(options.png_path, options, rounds, summaries)
    console.print(f"picture: {options.png_path}", soft_wrap=True, highlight=False)
    style = "bold green" if status == 0 else "bold red"
    console.print(said, style=style, highlight=False, soft_wrap=True)
    return status
