"""``python -m tests.programs --only cancel``: 1 for a fault, no step, or a line that is missing."""

from __future__ import annotations

import argparse
import platform
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from ._programs import IN_CI, NAMED, PROGRAMS, clients_of, run

#: What a shell says of a program that was interrupted.
INTERRUPTED = 130


def main() -> int:
    """Run the programs that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", default="", help="programs, with commas; without it all that are quick"
    )
    parser.add_argument(
        "--clients", default="", help="clients, with commas; those of CI by `ci`; all without it"
    )
    parser.add_argument("--steps", type=int, default=300, help="of each client")
    parser.add_argument("--seed", type=int, default=0, help="of the first session")
    parser.add_argument("--jobs", type=int, default=1, help="how many clients at a time")
    given = parser.parse_args()
    names = (
        given.only.split(",") if given.only else [each for each in PROGRAMS if each not in NAMED]
    )
    wanted = [
        (name, client)
        for name in names
        for client in clients_of(name)
        if _is_wanted(name, client, given.clients)
    ]
    print(f"Python {platform.python_version()}", flush=True)
    each = partial(run, steps=given.steps, seed=given.seed)
    try:
        with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
            sound = list(pool.map(each, *zip(*wanted, strict=True))) if wanted else []
    except KeyboardInterrupt:  # Each process has it, too, and stops its servers.
        return INTERRUPTED
    return 0 if sound and all(sound) else 1


def _is_wanted(name: str, client: str, clients: str) -> bool:
    if clients == "ci":
        return client in IN_CI.get(name, clients_of(name))
    return not clients or client in clients.split(",")


if __name__ == "__main__":
    sys.exit(main())
