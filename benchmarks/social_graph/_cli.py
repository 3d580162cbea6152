"""The command line."""

from __future__ import annotations

import argparse
import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING, cast

from antipode import AntipodeError
from benchmarks.post_notification._options import BenchmarkError

from ._build import build
from ._run import Options, graph_of, judged, run
from ._servers import servers
from ._services import VARIANTS, Variant, services
from ._workload import WORKLOADS, Workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.judge import Trial

USAGE = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program.

    Returns:
        The exit status: that of `benchmarks.judge`, 2 where it cannot run, 130 after Ctrl-C.
    """
    options = _parser().parse_args(arguments)
    try:
        return _up(options) if options.command == "up" else _measure(options)
    except (BenchmarkError, AntipodeError) as error:
        print(error, file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.social_graph", description=__doc__, allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start the application, and say what to curl")
    up.add_argument("--variant", choices=VARIANTS, default="barrier")
    measure = commands.add_parser("run", help="compose posts, and judge what readers are shown")
    measure.add_argument("--variants", default="baseline,barrier", help="in this order")
    measure.add_argument("--composes", type=int, default=300, help="posts of each variant")
    measure.add_argument("--rate", type=float, default=20.0, help="posts a second, on average")
    measure.add_argument("--workload", choices=WORKLOADS, default="deathstarbench")
    measure.add_argument("--seed", type=int, default=0, help="of the graph and the requests")
    for command in (up, measure):
        command.add_argument("--post-lag-ms", type=float, default=400.0, help="MongoDB's")
        command.add_argument("--message-lag-ms", type=float, default=0.0, help="RabbitMQ's")
        command.add_argument("--link-ms", type=float, default=0.0, help="of calls, one way")
        command.add_argument("--preset", default="dev", help="of the C++ library; dev: `make cpp`")
    return parser


def _up(options: argparse.Namespace) -> int:
    """Run the application until Ctrl-C."""
    built = build(options.preset)
    with (
        servers(options.post_lag_ms, options.message_lag_ms) as stores,
        services(
            stores,
            built,
            cast("Variant", options.variant),
            lambda record: print(record, flush=True),
            link_ms=options.link_ms,
            fixed_ports=True,
        ) as running,
    ):
        graph = graph_of(stores, Options())
        reader = next(other for one, other in graph if one == 0)
        edges = running.edges
        print(
            f"It runs, with posts {options.post_lag_ms:g} ms late in eu. Ctrl-C ends it.\n"
            f"Compose:        curl -d 'user_id=0&username=username_0&text=hello&media=0' "
            f"http://{edges['compose']}/compose\n"
            f"Home timeline:  curl 'http://{edges['eu']}/home-timeline"
            f"?user_id={reader}&start=0&stop=10'\n"
            f"What user 0 posted:  curl 'http://{edges['compose']}/user-timeline"
            f"?user_id=0&start=0&stop=10'",
            flush=True,
        )
        while not threading.Event().wait(1):
            running.check()
    return 0


def _measure(options: argparse.Namespace) -> int:
    """Compose posts with each variant, over stores of its own."""
    variants = options.variants.split(",")
    unknown = [name for name in variants if name not in VARIANTS]
    if unknown:
        raise BenchmarkError(f"no variant {unknown[0]!r}: one of {', '.join(VARIANTS)}")
    built = build(options.preset)
    asked = Options(
        options.composes,
        options.rate,
        cast("Workload", options.workload),
        options.link_ms,
        options.seed,
    )
    trials: list[Trial] = []
    for variant in cast("list[Variant]", variants):
        with servers(options.post_lag_ms, options.message_lag_ms) as stores:
            found = run(stores, built, variant, asked, graph_of(stores, asked))
        print(f"{variant}: {summary(found)}", flush=True)
        trials += found
    verdict = judged(trials)
    print(verdict.said)
    return verdict.status


def summary(trials: Sequence[Trial]) -> str:
    """What became of the composes of one variant, for people."""
    counts = Counter[str]()
    for trial in trials:
        counts["wrong"] += trial.answered and not trial.right
        counts["waited"] += trial.waited
        counts["unanswered"] += not trial.answered
    return (
        f"of {len(trials)} posts {counts['wrong']} were named and could not be read, "
        f"{counts['waited']} were held until they could, {counts['unanswered']} were never named"
    )
