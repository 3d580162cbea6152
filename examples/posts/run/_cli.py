"""The command line: the story with barriers switched off, then with them."""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from antipode import AntipodeError

from ._regions import Regions
from ._services import Services
from ._story import tell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._story import Seen

USAGE, INTERRUPTED = 2, 130
_MOST_POSTS = 10_000
#: Under which the barriers' five seconds are enough.
_LONGEST_LAG_MS = 2_000
_HEADINGS = {
    "off": "without barriers (ANTIPODE_MODE=off)",
    "enforce": "with barriers",
    "dry-run": "dry run (nothing waits)",
}
_READS = {
    "post": "the post, in MySQL's replica",
    "counter": "its author's posts, in Redis's",
    "page": "the page, by the API of the EU",
    "views": "the page's view, in Redis's",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the example; the exit status."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _run(options)
    except KeyboardInterrupt:
        print("\ninterrupted; everything that was started is stopped", file=sys.stderr)
        return INTERRUPTED
    except (AntipodeError, httpx.HTTPError) as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.posts",
        description="Posts in the US, notifications in the EU, on real servers of this machine: "
        "what the EU sees too early, and that with barriers it sees everything.",
        epilog="exit status: 0 everything was there behind barriers; 1 something was not; "
        "2 bad arguments, or a server that is missing or failed; 130 interrupted",
    )
    add = parser.add_argument
    add("--posts", type=_count, default=10, help="how many in each round (10)")
    add("--lag-ms", type=_lag, default=100.0, help="of MySQL's and Redis's replication (100)")
    add(
        "--mode",
        choices=list(_HEADINGS),
        action="append",
        help="ANTIPODE_MODE of a round; may be given several times (off and enforce)",
    )
    return parser


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= _MOST_POSTS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {_MOST_POSTS}")
    return int(text)


def _lag(text: str) -> float:
    try:
        lag_ms = float(text)
    except ValueError:
        lag_ms = -1.0
    if not 0 <= lag_ms <= _LONGEST_LAG_MS:
        raise argparse.ArgumentTypeError(f"{text!r} is not from 0 to {_LONGEST_LAG_MS} ms")
    return lag_ms


def _run(options: argparse.Namespace) -> int:
    print("starting MySQL, Redis and RabbitMQ in two regions ...", flush=True)
    late = False
    with Regions.started() as regions:
        regions.migrate()
        regions.set_lag(options.lag_ms)
        for mode in options.mode or ["off", "enforce"]:
            seen = _round(regions, mode, options.posts)
            _report(mode, seen)
            late |= mode == "enforce" and any(each.stale for each in seen)
    return int(late)


def _round(regions: Regions, mode: str, posts: int) -> list[Seen]:
    """The services in one mode, and what the EU saw of the posts behind the first."""
    with (
        tempfile.TemporaryDirectory() as directory,
        Services(regions, mode=mode, directory=Path(directory)) as services,
    ):
        # The first one opens connections.
        return list(tell(services, posts + 1))[1:]


def _report(mode: str, seen: list[Seen]) -> None:
    early = Counter(name for each in seen for name in each.stale)
    print(f"\n{_HEADINGS[mode]}: {len(seen)} posts")
    for name, what in _READS.items():
        print(f"  {what:<34} {_verdict(early[name], len(seen))}")
    took_ms = statistics.median(each.took_s for each in seen) * 1000
    datastores = ", ".join(sorted(seen[-1].lineage.datastores))
    print(f"  {'from the post to the end':<34} {took_ms:.0f} ms (median)")
    print(f"  {'lineage at the end':<34} {datastores}", flush=True)


def _verdict(early: int, of: int) -> str:
    return "always there" if not early else f"not there yet: {early} of {of}"
