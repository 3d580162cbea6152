"""A service whose metrics fill every panel of the dashboard: two regions, late, with every fault.

The embedded store is real. What only servers or a dry run can cause is counted as their shims do.
``python -m tests.end_to_end._dashboard_service PORT`` serves its metrics until it is ended.
"""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING

from opentelemetry import context, metrics, propagate
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import start_http_server

import antipode
from antipode import Lineage, WriteId
from antipode.shim import count, mark_incomplete, stored_text
from antipode_shims import embedded
from antipode_testing._address import LOOPBACK

if TYPE_CHECKING:
    from antipode_shims.embedded import EmbeddedShim, EmbeddedTopology

#: What the embedded store never does, one in so many requests.
COUNTED = {
    "uncovered_write": 8,
    "aged": 50,
    "unsampled_read": 12,
    "unread_lineage": 9,
    "foreign": 40,
    "unguarded_read": 15,
    "poll_failed": 25,
    "reads_at_primary": 6,
    "unnamed_client": 70,
    "two_names": 45,
    "unknown_store": 30,
    "client_not_made": 35,
    "floor_unused": 33,
    "stripped": 20,
    "served_stale": 11,
    "blocked_loop": 60,
}
MANY = Lineage([WriteId("posts", f"log-{number}", 1) for number in range(60)])


class Service:
    """Writes in one region, and reads in the other."""

    def __init__(self, posts: EmbeddedTopology, users: EmbeddedTopology) -> None:
        self.here = self._shims(posts, users, "primary")
        self.there = self._shims(posts, users, "replica")

    @staticmethod
    def _shims(
        posts: EmbeddedTopology, users: EmbeddedTopology, which: str
    ) -> tuple[EmbeddedShim, EmbeddedShim]:
        made = [
            embedded.shim(name, getattr(files, which), reads_from=which)  # type: ignore[arg-type]
            for name, files in (("posts", posts), ("users", users))
        ]
        return made[0], made[1]

    def request(self, number: int) -> None:
        """Write a post and its author; notify; read both in the other region."""
        headers: dict[str, str] = {}
        posts, users = self.here
        with antipode.scope():
            posts.write(f"post-{number % 50}", b"hello")
            if number % 3:
                users.write(f"user-{number % 20}", b"alice")
            propagate.inject(headers)
        self._fault(number, headers)
        token = context.attach(propagate.extract(headers))
        try:
            self._read(number)
        finally:
            context.detach(token)

    def _read(self, number: int) -> None:
        """As four kinds of readers do: in a hurry, asking, waiting at the read, waiting at once."""
        posts, users = self.there
        kind = number % 10
        if kind == 0:
            antipode.barrier(timeout=0.004, on_unmet="return", on_incomplete="report")
        elif kind in (1, 2):
            antipode.check()
        elif kind == 3:
            antipode.barrier(timeout=5, at="read", on_incomplete="report")
        elif kind == 4:
            with antipode.barriers("auto"):
                posts.read(f"post-{number % 50}")
        else:
            antipode.barrier(timeout=5, on_incomplete="report")
        posts.read(f"post-{number % 50}")
        users.read(f"user-{number % 20}")

    def _fault(self, number: int, headers: dict[str, str]) -> None:
        """What goes wrong now and then."""
        for name, seldom in COUNTED.items():
            if number % seldom == 0:
                count(name, "users" if number % 2 else "posts")
        if number % 14 == 0:
            self.here[1].write("visits", b"1")  # Outside of any scope.
        if number % 17 == 0:
            stored_text(MANY)
        if number % 21 == 0:
            headers["baggage"] = "antipode=not-a-lineage"
        if number % 30 == 0:
            mark_incomplete("posts", "in_doubt")


def main() -> None:
    """Serve requests until somebody ends it."""
    metrics.set_meter_provider(MeterProvider([PrometheusMetricReader()]))
    start_http_server(int(sys.argv[1]), LOOPBACK)
    antipode.configure(max_lineage_bytes=512, auto_timeout=0.01)
    antipode.instrument()
    with (
        embedded.EmbeddedTopology(lag_ms=40) as posts,
        embedded.EmbeddedTopology(lag_ms=8) as users,
    ):
        service = Service(posts, users)
        for number in itertools.count():
            service.request(number)


if __name__ == "__main__":
    main()
