"""``python -m benchmarks.costs.waits``: how many requests a barrier makes at stores that bill them.

Two regions of an emulator, not of AWS: requests are the same there, times are not. Copies are held
for so long as the barrier is to wait; whatever is sent meanwhile is the barrier's.
"""

from __future__ import annotations

import argparse
import threading
import time
import uuid
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import boto3
from botocore.httpsession import URLLib3Session

import antipode
from antipode_shims import dynamodb, s3
from antipode_testing.lab import topology_class
from benchmarks._markdown import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Store = Literal["dynamodb", "s3"]
STORES: tuple[Store, ...] = ("dynamodb", "s3")
WAITS_MS = (0, 50, 100, 500, 1000, 5000)
_TIMEOUT_S = 30.0
_PLACE = "posts"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one barrier sent.

    Attributes:
        held_ms: for how long copies were held.
        waited_ms: how long it waited.
        here: requests in the region that is read.
        home: requests in the region that took the write.
    """

    held_ms: float
    waited_ms: float
    here: int
    home: int


def measure(store: Store, waits_ms: Sequence[float]) -> list[Cost]:
    """A barrier for one write, for each of these waits."""
    with ExitStack() as stack:
        topology = stack.enter_context(topology_class(store)())
        write = _clients(store, topology, stack)
        return [_cost(topology, write, held_ms) for held_ms in (0, *waits_ms)][1:]  # Connects.


def _clients(store: Store, topology: Any, stack: ExitStack) -> Any:  # noqa: ANN401
    """Instrumented clients of both regions; what writes something in the first."""
    shims = {"dynamodb": dynamodb, "s3": s3}[store]
    urls = dict(zip(topology.regions, topology.urls, strict=True))
    clients = []
    for region, reads_from in zip(topology.regions, ("primary", "replica"), strict=True):
        client = boto3.client(
            store, region_name=region, endpoint_url=urls[region], **topology.credentials
        )
        stack.callback(client.close)
        shims.instrument_client(client, datastore=_PLACE, reads_from=reads_from, regions=urls)
        stack.callback(shims.uninstrument_client, client)
        clients.append(client)
    home: Any = clients[0]
    if store == "dynamodb":
        return lambda key: home.put_item(TableName=_PLACE, Item={"id": {"S": key}})
    return lambda key: home.put_object(Bucket=_PLACE, Key=key, Body=b"1")


def _cost(topology: Any, write: Any, held_ms: float) -> Cost:  # noqa: ANN401
    topology.pause()
    with antipode.scope():
        write(uuid.uuid4().hex)
        if not held_ms:
            topology.resume()
            topology.wait_replicated()
        release = threading.Timer(held_ms / 1000, topology.resume)
        with _counted() as sent:
            release.start()
            began_s = time.monotonic()
            antipode.barrier(timeout=_TIMEOUT_S)
            waited_ms = 1000 * (time.monotonic() - began_s)
        release.join()
    here, home = (sent[server.port] for server in (topology.replica, topology.primary))
    return Cost(held_ms, waited_ms, here, home)


@contextmanager
def _counted() -> Iterator[Counter[int]]:
    """The requests that botocore sends meanwhile, by the port that they go to."""
    sent: Counter[int] = Counter()
    plain: Any = URLLib3Session.send

    def send(self: Any, request: Any) -> Any:  # noqa: ANN401
        sent[int(request.url.split("/")[2].rpartition(":")[2])] += 1
        return plain(self, request)

    URLLib3Session.send = send
    try:
        yield sent
    finally:
        URLLib3Session.send = plain


def main() -> None:
    """Measure, and print a table for each store."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs.waits", description=__doc__)
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES, help="which (all)")
    for store in parser.parse_args().stores:
        rows = [
            (f"{each.held_ms:g} ms", f"{each.waited_ms:.0f} ms", str(each.here), str(each.home))
            for each in measure(store, WAITS_MS)
        ]
        print(f"{store} (emulator)\n")
        print(table(("copies held for", "waited", "requests here", "in the writer's region"), rows))
        print()


if __name__ == "__main__":
    main()
