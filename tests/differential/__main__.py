"""``python -m tests.differential java --sequences 100000``."""

from __future__ import annotations

import argparse
import random
import sys
import time

from tests.conformance._agents import BUILT, LACKING, command

from ._pair import Pair
from ._run import Run, described, run
from ._sequences import FAMILIES, families

_EVERY_S = 20.0


def main() -> int:
    """Compare a language with Python; 1 where they differ."""
    given = _arguments()
    names = families(LACKING.get(given.language, frozenset()))
    if given.family:
        names = [name for name in names if name in given.family]
    seed = random.SystemRandom().randrange(2**31) if given.seed is None else given.seed
    print(f"python and {given.language}: seeds {seed} to {seed + given.sequences - 1}", flush=True)
    with Pair(command("python"), command(given.language)) as pair:
        progress = _Progress(given.language)
        done = run(
            pair,
            names,
            range(seed, seed + given.sequences),
            seconds=given.seconds,
            report=progress.report,
        )
    rate = done.sequences / max(done.seconds, 0.001)
    print(
        f"{done.sequences} sequences in {done.seconds:.0f} s ({rate:.0f}/s): "
        f"{len(done.differences)} differ, {pair.undetermined} were answered differently at times"
    )
    print(", ".join(f"{name} {times}" for name, times in sorted(done.families.items())))
    if done.sequences < given.sequences and not done.differences and given.seconds == float("inf"):
        print("interrupted")
        return 130
    return 1 if done.differences else 0


class _Progress:
    def __init__(self, language: str) -> None:
        self._language = language
        self._told = 0
        self._due_s = time.monotonic() + _EVERY_S

    def report(self, seed: int, done: Run) -> None:
        """Say now and then how far it is, and at once what differs."""
        if len(done.differences) > self._told:
            self._told = len(done.differences)
            print(f"seed {seed}: {described(done.differences[seed], 'python', self._language)}")
            sys.stdout.flush()
        if time.monotonic() > self._due_s:
            self._due_s = time.monotonic() + _EVERY_S
            print(f"{done.sequences} sequences, {len(done.differences)} differ", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential",
        description="Asks Python's conformance agent and another language's the same, at random, "
        "and shows the shortest requests that they answer differently.",
    )
    parser.add_argument("language", choices=sorted(BUILT))
    parser.add_argument("--sequences", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, help="of the first sequence; default: any")
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES), help="of these only")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
