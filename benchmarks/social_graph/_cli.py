"""The command line."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, cast

from antipode import AntipodeError
from benchmarks._machine import ROOT
from benchmarks.judge import SHOWN, Verdict
from benchmarks.load import LoadDriverError, driver
from benchmarks.post_notification._options import BenchmarkError

from ._build import build
from ._measure import PAIRS
from ._run import Options, graph_of, judged, run
from ._servers import servers
from ._services import VARIANTS, Variant, fitting, services
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
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _COMMANDS[options.command](options)
    except (BenchmarkError, LoadDriverError, AntipodeError) as error:
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
    run = commands.add_parser("run", help="compose posts, and judge what readers are shown")
    run.add_argument("--variants", default="baseline,barrier", help="in this order")
    run.add_argument("--composes", type=int, default=300, help="posts of each variant")
    run.add_argument("--rate", type=float, default=20.0, help="posts a second, on average")
    run.add_argument("--workload", choices=WORKLOADS, default="deathstarbench")
    run.add_argument("--seed", type=int, default=0, help="of the graph and the requests")
    trace = commands.add_parser("trace", help="draw one request through all services, with times")
    trace.add_argument(
        "--out", type=Path, default=Path("social-graph-trace.svg"), help="the picture"
    )
    _add_measure(commands.add_parser("measure", help="variants in turns under a load"))
    _add_bench(commands.add_parser("bench", help="everything that the page of results needs"))
    for command, lag_ms in ((up, 400.0), (run, 400.0), (trace, 40.0)):
        command.add_argument("--post-lag-ms", type=float, default=lag_ms, help="MongoDB's")
        command.add_argument("--message-lag-ms", type=float, default=0.0, help="RabbitMQ's")
        command.add_argument("--preset", default="dev", help="of the C++ library; dev: `make cpp`")
    return parser


def _add_measure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--pair", choices=PAIRS, default="far", help="of regions")
    add("--workload", choices=WORKLOADS, default="deathstarbench")
    add("--mix", action="store_true", help="one request in ten composes, the others read")
    add("--rate", type=float, default=100.0, help="requests a second, on average")
    add("--variants", default="baseline,barrier", help="in turns")
    add("--blocks", type=int, default=5, help="turns of each")
    add("--seconds", type=float, default=20.0, help="of each turn")
    add("--warm-up", type=float, default=5.0, help="seconds of each turn that are left out")
    add("--saturate", action="store_true", help="count what is answered of too many requests")
    add("--seed", type=int, default=0, help="of the graph and the requests")
    add("--preset", default="package", help="of the C++ library; package: what users build")
    add("--json", type=Path, help="where the result goes")


def _add_bench(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--quick", action="store_true", help="one short turn of each: ten minutes, rough figures")
    add("--fresh", action="store_true", help="run what is finished already, too")
    add("--json", type=Path, help="where all figures go (docs/results; quick: with the runs)")
    add("--out", type=Path, default=ROOT / "build" / "bench" / "social-graph", help="of the runs")
    add("--preset", default="package", help="of the C++ library; package: what users build")


def _measure(options: argparse.Namespace) -> int:
    """Measure variants in turns."""
    from ._measure import Plan, measure, write

    plan = Plan(
        options.pair,
        options.workload,
        options.mix,
        options.rate,
        _variants(options.variants, options.workload),
        options.blocks,
        options.seconds,
        options.warm_up,
        options.saturate,
        options.seed,
    )
    found = measure(plan, build(options.preset), lambda line: print(line, flush=True))
    verdict = judged(found.trials) if found.trials else Verdict(SHOWN, "nothing to judge")
    print(verdict.said)
    if options.json is not None:
        write(found, options.json, verdict.status, verdict.said)
    return verdict.status


def _bench(options: argparse.Namespace) -> int:
    """Run everything, what is finished not again, and make the page."""
    from ._bench import RESULTS, bench, status_of
    from ._page import PAGE, write

    build(options.preset)
    driver()  # Not while something is measured.
    folder = options.out / ("quick" if options.quick else "full")
    report = bench(folder, quick=options.quick, fresh=options.fresh, preset=options.preset)
    results = folder / "results" if options.quick else RESULTS
    path = options.json or results / "social-graph.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    write(report, results)
    print(f"results: {results / PAGE}, {path}")
    for failure in report["failures"]:
        print(failure, file=sys.stderr)
    return status_of(report)


def _variants(text: str, workload: Workload) -> tuple[Variant, ...]:
    names = text.split(",")
    unknown = [name for name in names if name not in VARIANTS]
    if unknown:
        raise BenchmarkError(f"no variant {unknown[0]!r}: one of {', '.join(VARIANTS)}")
    variants = tuple(cast("list[Variant]", names))
    if fitting(variants, workload) != variants:
        raise BenchmarkError("barrier-at-read protects readers: the workload paper has none")
    return variants


def _up(options: argparse.Namespace) -> int:
    """Run the application until Ctrl-C."""
    built = build(options.preset)
    with (
        servers(options.post_lag_ms, options.message_lag_ms) as stores,
        services(
            stores,
            built,
            cast("Variant", options.variant),
            lambda service, record: print(f"{service}: {record}", flush=True),
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


def _run(options: argparse.Namespace) -> int:
    """Compose posts with each variant, over stores of its own."""
    variants = _variants(options.variants, options.workload)
    built = build(options.preset)
    asked = Options(
        options.composes,
        options.rate,
        cast("Workload", options.workload),
        options.seed,
    )
    trials: list[Trial] = []
    for variant in variants:
        with servers(options.post_lag_ms, options.message_lag_ms) as stores:
            found = run(stores, built, variant, asked, graph_of(stores, asked))
        print(f"{variant}: {summary(found)}", flush=True)
        trials += found
    verdict = judged(trials)
    print(verdict.said)
    return verdict.status


def _trace(options: argparse.Namespace) -> int:
    """Compose a post, and draw what became of it."""
    from ._trace import Trace, draw

    built = build(options.preset)
    with servers(options.post_lag_ms, options.message_lag_ms) as stores:
        asked = Options(environment={"SOCIAL_GRAPH_HOPS": "yes"})
        found = Trace.of_one_post(stores, built, asked, graph_of(stores, asked))
    draw(found, options.out)
    print(f"{options.out}: {len(found.spans)} spans, {found.took_ms:.1f} ms in all")
    return 0


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


_COMMANDS = {"up": _up, "run": _run, "trace": _trace, "measure": _measure, "bench": _bench}
