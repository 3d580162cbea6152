"""How a barrier looks and waits at a real MongoDB server, and what it leaves there: nothing."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import bson
import pymongo
import pytest

import antipode
from antipode import BarrierTimeout, Lineage, Status, VisibilityCheckError
from antipode.shim import Incomplete, Wake
from antipode_shims import mongodb
from antipode_testing import LagProxy, NativeProvider, wait_until

from ._clients import UNWATCHED, Names, counted, failing
from ._regions import TIMEOUT_S, WHERE, Regions, outcome, regions_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import Address, MongoDBTopology

pytestmark = pytest.mark.store("mongodb")

#: Longer than any test waits for anything.
LONG_S = 3 * TIMEOUT_S


@pytest.fixture
def regions(antipode_mongodb: MongoDBTopology) -> Iterator[Regions]:
    """Two regions, of which the session has the servers."""
    with regions_of(antipode_mongodb) as made:
        yield made


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits on the server ends because it is killed: its slice is longer than the test."""
    for name in (
        "antipode._barrier.watcher.SLICE_S",
        "antipode_shims.mongodb._endpoint.wait.SLICE_S",
    ):
        monkeypatch.setattr(name, LONG_S)


def waits(client: Any) -> list[Any]:
    """What waits on a server for a position now."""
    running = client.admin.command("currentOp", {"command.find": "posts"})["inprog"]
    concerns = [each["command"].get("readConcern", {}) for each in running]
    return [each for each in concerns if {"afterClusterTime", "afterOpTime"} & each.keys()]


def test_one_look_is_one_round_trip(regions: Regions) -> None:
    """A barrier with nothing to wait for costs one round trip."""
    write = regions.replicated("k")
    regions.close()
    with LagProxy(regions.topology.replica) as proxy:
        regions.at(proxy.address, **UNWATCHED)
        assert outcome(write).status is Status.VISIBLE
        before = proxy.traffic()
        assert outcome(write).status is Status.VISIBLE
        assert (proxy.traffic() - before).exchanges == 1


def test_the_server_blocks(regions: Regions) -> None:
    """While it waits, the server holds one find back, and looks are about one in a second."""
    regions.replicated("k")
    regions.topology.stall()
    write = regions.write("k")
    wait_until_heard(regions, write)
    before = counted("polls")
    with regions.client(regions.topology.replica) as client, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(outcome, write)
        wait_until(lambda: len(waits(client)) == 1, what="the wait", timeout_s=TIMEOUT_S)
        assert counted("polls") - before < 5
        regions.topology.unstall()
        assert waiting.result(TIMEOUT_S).status is Status.VISIBLE
        wait_until(lambda: not waits(client), what="nothing to wait", timeout_s=TIMEOUT_S)
    assert regions.read(write, "k") == "new"


def wait_until_heard(regions: Regions, write: antipode.WriteId) -> None:
    """Let a stalled secondary hear of a write, without which it refuses to wait for it."""
    with regions.client(regions.topology.replica) as client:

        def heard() -> bool:
            time_of: Any = client.admin.command("hello")["$clusterTime"]["clusterTime"]
            return bool((time_of.time << 32 | time_of.inc) >= int(write.version))

        wait_until(heard, what="the secondary to hear of the write", timeout_s=TIMEOUT_S)


@pytest.mark.usefixtures("endless")
@pytest.mark.parametrize("heard", [True, False])
def test_nothing_waits_after_the_deadline(regions: Regions, *, heard: bool) -> None:
    """When the barrier has timed out, its find is killed: sooner than its slice would end."""
    regions.replicated("k")
    if heard:
        regions.topology.stall()
    else:
        regions.topology.pause()
    write = regions.write("k")
    if heard:
        wait_until_heard(regions, write)
    with regions.client(regions.topology.replica) as client:
        for _ in range(3):
            with pytest.raises(BarrierTimeout):
                antipode.barrier(Lineage([write]), timeout=0.2)
            wait_until(lambda: not waits(client), what="the kill", timeout_s=TIMEOUT_S)

    def threads() -> list[str]:
        return [each.name for each in threading.enumerate() if "server-wait" in each.name]

    wait_until(lambda: not threads(), what="its thread to end", timeout_s=TIMEOUT_S)


@pytest.mark.usefixtures("endless")
def test_closing_ends_the_wait(regions: Regions) -> None:
    """A shim that is closed while somebody waits leaves nothing on the server."""
    regions.replicated("k")
    regions.topology.stall()
    write = regions.write("k")
    wait_until_heard(regions, write)
    with regions.client(regions.topology.replica) as client, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(outcome, write)
        wait_until(lambda: len(waits(client)) == 1, what="the wait", timeout_s=TIMEOUT_S)
        regions.close()
        assert waiting.result(TIMEOUT_S).status is Status.UNDECIDABLE
        wait_until(lambda: not waits(client), what="the kill", timeout_s=TIMEOUT_S)


@pytest.mark.usefixtures("endless")
def test_wake_ends_a_pause_at_once(regions: Regions) -> None:
    """A pause at a server that blocks ends when it is woken, long before the slice."""
    regions.replicated("wake")
    regions.topology.stall()
    write = regions.write("wake")
    wait_until_heard(regions, write)
    wake = Wake()
    with closing(regions.reader.open_endpoint(timeout_s=2)) as endpoint, closing(wake):
        assert not endpoint.observe([write], timeout_s=1).statuses[write].met
        assert endpoint.blocks
        timer = threading.Timer(0.05, wake.set)
        timer.start()
        started_s = time.monotonic()
        endpoint.pause(LONG_S, wake)
        assert time.monotonic() - started_s < TIMEOUT_S
        timer.join()
        endpoint.rest()


def test_server_that_has_not_heard_of_a_write(regions: Regions) -> None:
    """Its time, which the server would refuse, is not waited for, but its place in the oplog."""
    regions.replicated("k")
    regions.topology.set_lag(200)
    write, before = regions.write("k"), counted("polls")
    assert outcome(write).status is Status.VISIBLE
    assert counted("polls") - before < 5
    second = regions.write("k", "second")
    assert regions.read(second, "k") == "second"


def test_server_that_refuses_to_wait(regions: Regions) -> None:
    """One that does not wait for a place, as newer ones may not, is looked at again and again."""
    topology = regions.topology
    regions.replicated("k")
    topology.pause()
    write = regions.write("k")
    with (
        failing(topology.replica, "find", errorCode=72),
        closing(regions.reader.open_endpoint(timeout_s=2)) as endpoint,
        closing(Wake()) as wake,
    ):
        assert not endpoint.observe([write], timeout_s=1).statuses[write].met
        endpoint.pause(0.05, wake)
        assert not endpoint.observe([write], timeout_s=1).statuses[write].met
        assert not endpoint.blocks
        endpoint.rest()
    with failing(topology.replica, "find", errorCode=72), ThreadPoolExecutor(1) as pool:
        before = counted("polls")
        waiting = pool.submit(outcome, write)
        wait_until(lambda: counted("polls") - before > 20, what="looks", timeout_s=TIMEOUT_S)
        topology.resume()
        assert waiting.result().status is Status.VISIBLE


def test_read_of_what_the_server_has_not_heard_of(regions: Regions) -> None:
    """A Table 2 read under a floor is held back by the server there, too: it is not polled."""
    said: list[str] = []
    regions.replicated("k")
    regions.close()
    writer = regions.at(regions.topology.primary, reads_from="primary")
    reader = regions.at(regions.topology.replica, event_listeners=[Names(said)])
    reader.read("k")
    regions.topology.set_lag(200)
    with antipode.scope():
        writer.write("k", "new")
        antipode.barrier(timeout=TIMEOUT_S, at="read", only="posts")
        said.clear()
        assert reader.read("k")[0] == "new"
    assert len(said) < 10


def test_fence_covers_what_was_acknowledged(regions: Regions) -> None:
    """The primary's position of now is at or after every write acknowledged so far."""
    write = regions.write("k")
    (fence,) = regions.writer.fence(timeout_s=2)
    assert fence.covering
    assert fence.version >= write.version
    assert not regions.reader.fences


def test_wrong_password() -> None:
    """A server that does not let the user in ends the barrier at once, and says why."""
    with alone(replSet="antipode") as address:
        url = f"mongodb://nobody:wrong@{address}/?directConnection=true"
        shim = mongodb.shim("posts", url, **WHERE, reads_from="replica")
        write = antipode.WriteId("posts", "antipode.1", 1)
        with closing(shim), pytest.raises(VisibilityCheckError, match="Authentication failed"):
            antipode.barrier(Lineage([write]), timeout=TIMEOUT_S)


def test_standalone_server() -> None:
    """A server outside of a replica set is refused: before a write, and by a barrier."""
    with alone() as address:
        shim = mongodb.shim("posts", f"mongodb://{address}/?directConnection=true", **WHERE)
        with closing(shim):
            with pytest.raises(antipode.ConfigurationError, match="no member of a replica set"):
                shim.write("k", 1)
            write = antipode.WriteId("posts", "antipode.1", 1)
            with pytest.raises(VisibilityCheckError, match="no member of a replica set"):
                antipode.barrier(Lineage([write]), timeout=TIMEOUT_S)
        with pymongo.MongoClient[Any](*address) as client:
            assert client.app.posts.count_documents({}) == 0


@contextmanager
def alone(**config: str) -> Iterator[Address]:
    """One mongod that nobody has initiated."""
    server = NativeProvider().start("mongodb", "alone", config)
    try:
        yield server.address
    finally:
        server.close()


def test_mongos() -> None:
    """A mongos is refused. The server is a fake: it only says that it is one."""
    with FakeMongos() as port:
        url = f"mongodb://127.0.0.1:{port}/?directConnection=true"
        shim = mongodb.shim("posts", url, **WHERE)
        with closing(shim), pytest.raises(antipode.ConfigurationError, match="mongos"):
            shim.write("k", 1)
        reader = mongodb.shim("posts", url, **WHERE, reads_from="replica")
        write = antipode.WriteId("posts", "antipode.1", 1)
        with closing(reader), pytest.raises(VisibilityCheckError, match="mongos"):
            antipode.barrier(Lineage([write]), timeout=TIMEOUT_S)


def test_statements_on_a_mongos() -> None:
    """What an application sends there goes its way and is marked; what has to wait is refused."""
    with (
        FakeMongos() as port,
        pymongo.MongoClient("127.0.0.1", port, directConnection=True, connect=False) as client,
    ):
        mongodb.instrument_client(client, datastore="posts")
        before = counted("uncovered_write")
        with antipode.scope() as scope:
            client.app.posts.insert_one({"_id": 1})
            assert counted("uncovered_write") == before + 1
            assert scope.lineage.incomplete == {Incomplete("posts", "unsampled")}
        with antipode.scope():
            lineage = Lineage([antipode.WriteId("posts", "antipode.1", 1, 1)])
            antipode.barrier(lineage, timeout=TIMEOUT_S, at="read")
            with pytest.raises(antipode.ConfigurationError, match="mongos"):
                client.app.posts.find_one()
        mongodb.uninstrument_client(client)


class FakeMongos:
    """Answers every message with the hello of a mongos."""

    HELLO = bson.encode(
        {
            "isWritablePrimary": True,
            "ismaster": True,
            "msg": "isdbgrid",
            "maxBsonObjectSize": 16_777_216,
            "maxMessageSizeBytes": 48_000_000,
            "maxWriteBatchSize": 100_000,
            "minWireVersion": 0,
            "maxWireVersion": 17,
            "ok": 1.0,
        }
    )

    def __enter__(self) -> int:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()
        return int(self._listener.getsockname()[1])

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._serve, args=(link,)))
            self._threads[-1].start()

    def _serve(self, link: socket.socket) -> None:
        with link, link.makefile("rb") as stream:
            while len(header := stream.read(16)) == 16:
                length, request, _, code = (
                    int.from_bytes(header[at : at + 4], "little") for at in (0, 4, 8, 12)
                )
                stream.read(length - 16)
                body = b"\0" * 5 + self.HELLO
                if code == 2004:  # The first hello may come as OP_QUERY, answered by OP_REPLY.
                    body = b"\0" * 16 + (1).to_bytes(4, "little") + self.HELLO
                head = (16 + len(body), 7, request, 1 if code == 2004 else 2013)
                link.sendall(b"".join(each.to_bytes(4, "little") for each in head) + body)

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(TIMEOUT_S)
