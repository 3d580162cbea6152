"""``python -m benchmarks.evaluation.footprint``: what a post takes, with the library and without.

Each variant has servers of its own. Posts are of random letters, which no store compresses.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import antipode
from antipode_testing.lab import topology_class
from benchmarks.post_notification._options import POST_STORAGES
from benchmarks.post_notification._servers import places_of
from benchmarks.post_notification._storage import OF_TABLES, declare, open_post_storage

from ._gauges import open_gauge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from antipode_testing import Topology
    from benchmarks.post_notification._storage import PostStorage, Spec

FORMAT = 1
USAGE = 2
INTERRUPTED = 130
#: Without the library; first writes of their requests, which depend on nothing; writes that depend
#: on an earlier one in the same store.
VARIANTS = ("none", "first", "dependent")
_SEED = 1
#: Posts whose payload is asked for.
_ASKED = 100


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one post takes, on average.

    Attributes:
        variant: one of `VARIANTS`.
        payload_bytes: key, value and what lies beside.
        store_bytes: by which the store grew.
    """

    variant: str
    payload_bytes: float
    store_bytes: float


def measure(store: str, variant: str, *, posts: int, post_bytes: int) -> tuple[Footprint, str]:
    """Write posts into an empty store; what each takes, and what the store counts.

    Raises:
        AntipodeError: a server is missing or does not start.
    """
    library = variant != "none"
    with _running(store) as (topology, spec):
        gauge = open_gauge(topology, library=library)
        storage = open_post_storage(spec, place="writer", face="shim" if library else "plain")
        try:
            # The first posts fill buffers and pages that are there for all.
            ids = [f"{number:07d}" for number in range(posts + posts // 4)]
            warmup, measured = ids[: posts // 4], ids[posts // 4 :]
            scopes = _Scopes(storage, variant)
            _write(storage, scopes, warmup, post_bytes)
            before = gauge.total()
            _write(storage, scopes, measured, post_bytes)
            grown = gauge.total() - before
            asked = measured[:_ASKED]
            payload = sum(gauge.payload(post_id) for post_id in asked) / len(asked)
            return Footprint(variant, payload, grown / posts), gauge.counts
        finally:
            storage.close()
            gauge.close()


@contextmanager
def _running(store: str) -> Iterator[tuple[Topology, Spec]]:
    """Servers with nothing in them, and how the application finds them."""
    with topology_class(store)() as topology:
        spec: Spec = {"store": store, "writer": places_of(topology)[0]}
        if store in OF_TABLES:
            declare(spec)
        yield topology, spec


class _Scopes:
    """The requests in which posts are written."""

    def __init__(self, storage: PostStorage, variant: str) -> None:
        """Make the write that others depend on, if they do."""
        self._library = variant != "none"
        self._lineage: antipode.Lineage | None = None
        if variant == "dependent":
            with antipode.scope():
                storage.write("cause", b"1:cause")
                self._lineage = antipode.current()

    def open(self) -> AbstractContextManager[Any]:
        """A request's scope; nothing without the library."""
        return antipode.scope(self._lineage) if self._library else nullcontext()


def _write(storage: PostStorage, scopes: _Scopes, ids: list[str], post_bytes: int) -> None:
    letters = random.Random(_SEED)
    for post_id in ids:
        value = letters.randbytes((post_bytes + 1) // 2).hex().encode()[:post_bytes]
        with scopes.open():
            storage.write(post_id, value)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write down; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.evaluation.footprint",
        description="What a post takes in a store, with the library and without. Starts the "
        "store's servers itself.",
    )
    add = parser.add_argument
    add("--post-storage", choices=POST_STORAGES, default="embedded", help="where posts are kept")
    add("--posts", type=int, default=5000, help="posts of each variant (5000)")
    add("--post-bytes", type=int, default=1024, help="length of a post (1024)")
    add("--json", type=Path, metavar="FILE", help="write the figures there")
    given = parser.parse_args(arguments)
    if given.posts < 1 or given.post_bytes < 1:
        parser.error("--posts and --post-bytes are numbers from 1 on")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        result = _result(given.post_storage, posts=given.posts, post_bytes=given.post_bytes)
    except antipode.AntipodeError as error:
        print(f"footprint: {str(error).splitlines()[0]}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("footprint: interrupted: servers are stopped, nothing was written", file=sys.stderr)
        return INTERRUPTED
    for each in result["footprints"]:
        print(
            f"{given.post_storage}: {each['variant']}: {each['payload_bytes']:.0f} bytes stored, "
            f"{each['store_bytes']:.0f} in the store"
        )
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


def _result(store: str, *, posts: int, post_bytes: int) -> dict[str, Any]:
    found = [measure(store, each, posts=posts, post_bytes=post_bytes) for each in VARIANTS]
    return {
        "benchmark": "footprint",
        "format": FORMAT,
        "options": {"post_storage": store, "posts": posts, "post_bytes": post_bytes},
        "counts": found[0][1],
        "footprints": [asdict(each) for each, _ in found],
    }


if __name__ == "__main__":
    sys.exit(main())
