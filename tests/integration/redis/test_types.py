"""Every data type: each write of an instrumented client can be waited for, each read waits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
import redis

import antipode
from antipode import BarrierTimeout
from antipode_shims import redis as shims
from antipode_shims.redis._commands import Kind, kind_of, name_of
from antipode_testing import wait_until

from ._clients import (
    TIMEOUT_S,
    async_client,
    client,
    counted,
    exchanges,
    writes_of,
)
from ._table import FUNCTION, TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")

Row = tuple[list[list[str]], list[str], list[str]]

#: Writes in no table: an instrumented client takes them for what may write.
UNLISTED = {
    "FUNCTION DELETE": "a library of functions is no data",
    "FUNCTION FLUSH": "a library of functions is no data",
    "FUNCTION LOAD": "a library of functions is no data",
    "FUNCTION RESTORE": "a library of functions is no data",
    "MIGRATE": "it deletes here what it writes elsewhere, in a log of its own",
    "PFDEBUG": "for Redis's own tests",
    "RESTORE-ASKING": "between the nodes of a cluster",
}
#: Reads that are not held back.
UNHELD = {
    "LOLWUT": "it shows a picture, not data",
    "SUBSTR": "tried as the deprecated name of GETRANGE",
}
#: Covered commands that no row can show a difference for.
UNTRIED = {"OBJECT FREQ": "only under an eviction policy that counts uses"}


def rows(table: str) -> Iterator[Row]:
    """The rows of a table, as words."""
    for line in table.strip().splitlines():
        *before, write, read = ([*part.split()] for part in line.split(";"))
        yield [each for each in before if each], write, read


ROWS = [
    pytest.param(row, id=f"{name}: {' '.join(row[1])}; {' '.join(row[2])}")
    for name, table in TABLES.items()
    for row in rows(table)
]


class Pair:
    """Plain and instrumented clients of a primary and its replica, on empty databases."""

    def __init__(self, topology: RedisTopology, stack: ExitStack) -> None:
        self.topology = topology
        self.primary, self.replica, self.writer, self.reader = (
            stack.enter_context(client(address, socket_timeout=TIMEOUT_S))
            for address in (topology.primary, topology.replica) * 2
        )
        shims.instrument_client(self.writer, datastore="posts")
        shims.instrument_client(self.reader, datastore="posts", reads_from="replica")
        for each in (self.writer, self.reader):
            stack.callback(shims.uninstrument_client, each)
        self.primary.flushall()
        self.primary.function_flush()

    def prepare(self, row: Row) -> Row:
        """Put there what a row wants to find; its commands with what only the server knows."""
        known: dict[str, Any] = {"$FUNCTION": FUNCTION}
        before, write, read = row
        for command in before:
            self.primary.execute_command(*(known.get(word, word) for word in command))
            if command[0] == "SCRIPT":
                # A loaded script is not replicated: it has to be where it is called.
                known["$SHA"] = self.replica.script_load(command[2])
        if "$DUMP" in write:
            known["$DUMP"] = self.primary.dump("k")
        self.topology.wait_replicated()
        return before, *([known.get(word, word) for word in words] for words in (write, read))  # type: ignore[return-value]


@pytest.fixture
def pair(antipode_redis: RedisTopology) -> Iterator[Pair]:
    """Clients of the session's servers."""
    with ExitStack() as stack:
        yield Pair(antipode_redis, stack)


@pytest.mark.parametrize("row", ROWS)
def test_write_is_waited_for(pair: Pair, row: Row) -> None:
    """A read under a floor shows no stale value: it says no while the write is on its way."""
    _, write, read = pair.prepare(row)
    stale = timeless(pair.replica.execute_command(*read))
    pair.topology.pause()
    with antipode.scope() as scope:
        pair.writer.execute_command(*write)
        assert len(writes_of(scope.lineage)) == 1
        assert not scope.lineage.incomplete
        assert timeless(pair.replica.execute_command(*read)) == stale
        antipode.barrier(timeout=0.01, at="read")
        with pytest.raises(BarrierTimeout):
            pair.reader.execute_command(*read)
        pair.topology.resume()
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        shown = timeless(pair.reader.execute_command(*read))
    assert shown != stale
    assert shown == timeless(pair.primary.execute_command(*read))


def timeless(reply: Any) -> Any:
    """A reply without what counts the time since."""
    if isinstance(reply, list):
        return [timeless(each) for each in reply]
    if isinstance(reply, dict):
        return {name: value for name, value in reply.items() if name not in {"idle", b"idle"}}
    return reply


def test_every_covered_command_is_tried(pair: Pair) -> None:
    """The rows leave out no covered command that the server knows."""
    known = set(flags(pair.primary))
    tried = {
        name_of(command)
        for param in ROWS
        for command in param.values[0][1:]  # type: ignore[index]
    }
    covered = shims.COVERED_READS | shims.COVERED_WRITES
    assert (covered & known) - tried == set(UNTRIED) & known


def flags(plain: Any) -> dict[str, set[str]]:
    """The server's own flags of each command, those with a second word included."""
    connection = plain.connection_pool.get_connection()
    try:
        connection.send_command("COMMAND")
        entries = connection.read_response(disable_decoding=True)
    finally:
        plain.connection_pool.release(connection)
    found: dict[str, set[str]] = {}
    for entry in entries:
        for each in (entry, *entry[9]):
            name = each[0].decode().upper().replace("|", " ")
            found[name] = {flag.decode() for flag in each[2]}
    return found


def test_tables_agree_with_the_server(pair: Pair) -> None:
    """What the server flags as a write or a read is covered, or left out for a written reason."""
    found = flags(pair.primary)
    writes = {name for name, has in found.items() if "write" in has}
    reads = {name for name, has in found.items() if "readonly" in has}
    assert writes - shims.COVERED_WRITES == set(UNLISTED) & set(found)
    assert reads - shims.COVERED_READS <= set(UNHELD)
    assert not shims.COVERED_WRITES & reads
    assert not shims.COVERED_READS & writes
    assert {kind_of(name.split()) for name in UNLISTED} == {Kind.OTHER}


async def test_types_over_asyncio(antipode_redis: RedisTopology) -> None:
    """One write of each type by an asyncio client, read in one pipeline under one floor."""
    writer, reader = (
        async_client(each) for each in (antipode_redis.primary, antipode_redis.replica)
    )
    shims.instrument_client(writer, datastore="posts")
    shims.instrument_client(reader, datastore="posts", reads_from="replica")
    await writer.flushall()
    antipode_redis.set_lag(50)
    with antipode.scope() as scope:
        await writer.set("k", "v")
        await writer.hset("h", "f", "v")
        await writer.rpush("l", "v")
        await writer.sadd("s", "v")
        await writer.zadd("z", {"v": 1})
        await writer.xadd("x", {"f": "v"}, id="1-1")
        await writer.pfadd("p", "v")
        assert len(writes_of(scope.lineage)) == 1  # The newest of one log stands for all.
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        pipe = reader.pipeline().get("k").hget("h", "f").lrange("l", 0, -1).smembers("s")
        pipe = pipe.zscore("z", "v").xlen("x").pfcount("p")
        assert await pipe.execute() == [b"v", b"v", [b"v"], {b"v"}, 1.0, 1, 1]
    for one in (writer, reader):
        shims.uninstrument_client(one)
        await one.aclose()


def test_iterators_wait(pair: Pair) -> None:
    """``SCAN`` iterators show what was written before the barrier, page by page."""
    pair.topology.set_lag(50)
    with antipode.scope():
        pair.writer.mset({f"k{number}": number for number in range(50)})
        pair.writer.hset("h", mapping={f"f{number}": number for number in range(50)})
        pair.writer.zadd("z", {f"m{number}": number for number in range(50)})
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        assert len(set(pair.reader.scan_iter("k*", count=5))) == 50
        assert len(dict(pair.reader.hscan_iter("h", count=5))) == 50
        assert len(dict(pair.reader.zscan_iter("z", count=5))) == 50


def test_optimistic_transaction_on_fresh_data(pair: Pair) -> None:
    """``WATCH``, read and ``EXEC`` over several types mint one position that can be waited for."""
    pair.topology.set_lag(50)
    with antipode.scope() as scope:

        def work(pipe: Any) -> None:
            seen = int(pipe.get("n") or 0)
            pipe.multi()
            pipe.set("n", seen + 1).rpush("l", seen).hset("h", "n", seen).xadd("s", {"n": seen})

        pair.writer.transaction(work, "n")
        assert len(writes_of(scope.lineage)) == 1
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        assert pair.reader.pipeline().get("n").llen("l").hlen("h").xlen("s").execute() == [
            b"1",
            1,
            1,
            1,
        ]


def test_expiry_is_waited_for(pair: Pair) -> None:
    """A key's end by its time to live is no write of the request, and leaves no trace in it."""
    with antipode.scope() as scope:
        pair.writer.set("k", "v", px=1)
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        wait_until(lambda: pair.reader.get("k") is None, what="the end", timeout_s=TIMEOUT_S)
        assert len(writes_of(scope.lineage)) == 1


@pytest.mark.parametrize("batch", [False, True])
def test_blocking_stream_read_misses_nothing(pair: Pair, *, batch: bool) -> None:
    """``XREAD BLOCK`` for what comes is made once, after the floor: no entry falls between two."""
    pair.primary.xadd("s", {"n": 0})
    pair.topology.wait_replicated()
    pair.topology.pause()

    def read() -> Any:
        if batch:
            pipe = pair.reader.pipeline(transaction=False)
            return pipe.xread({"s": "$"}, block=int(TIMEOUT_S * 1000)).execute()[0]
        return pair.reader.xread({"s": "$"}, block=int(TIMEOUT_S * 1000))

    def blocked() -> bool:
        return bool(pair.replica.info("clients")["blocked_clients"])

    with antipode.scope(), ThreadPoolExecutor(1) as pool:
        pair.writer.xadd("s", {"n": 1})
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        held = antipode.current()

        def reading() -> Any:
            with antipode.scope(held):
                antipode.barrier(timeout=TIMEOUT_S, at="read")
                return read()

        found = pool.submit(reading)
        pair.topology.resume()
        wait_until(blocked, what="a blocked reader", timeout_s=TIMEOUT_S)
        pair.primary.xadd("s", {"n": 2})
        reply = found.result(TIMEOUT_S)
    entries = next(iter(reply.values()))[0] if isinstance(reply, dict) else reply[0][1]
    assert [fields for _, fields in entries] == [{b"n": b"2"}]


def test_blocking_read_keeps_the_floors_deadline(pair: Pair) -> None:
    """A floor that is not met in time says so long before the server would stop to block."""
    pair.topology.pause()
    with antipode.scope():
        pair.writer.xadd("s", {"n": 1})
        antipode.barrier(timeout=0.05, at="read")
        with pytest.raises(BarrierTimeout):
            pair.reader.xread({"s": "0"}, block=int(TIMEOUT_S * 1000))


def test_queue_by_blocking_pop(pair: Pair) -> None:
    """A pop that blocks until there is something mints the position behind it."""
    with ThreadPoolExecutor(1) as pool:

        def pop() -> Any:
            with antipode.scope() as scope:
                return pair.writer.blpop("queue", timeout=TIMEOUT_S), writes_of(scope.lineage)

        popping = pool.submit(pop)
        wait_until(
            lambda: pair.primary.info("clients")["blocked_clients"] == 1,
            what="a blocked client",
            timeout_s=TIMEOUT_S,
        )
        pair.primary.rpush("queue", "job")
        popped, minted = popping.result(TIMEOUT_S)
    assert popped is not None
    assert list(popped) == [b"queue", b"job"]
    assert len(minted) == 1
    assert minted[0].version <= int(pair.primary.info("replication")["master_repl_offset"])


def test_scripts_and_functions_are_waited_for(pair: Pair) -> None:
    """Whatever calls them: what they wrote is there once the barrier has passed."""
    pair.primary.script_flush()
    text = "return redis.call('INCR', KEYS[1])"
    script = pair.writer.register_script(text)

    def batch(*, transaction: bool) -> Any:
        pipe = pair.writer.pipeline(transaction=transaction)
        script(keys=["n"], client=pipe)
        script(keys=["n"], client=pipe)
        return pipe.execute()[-1]

    with antipode.scope():
        pair.writer.function_load("#!lua name=l\nredis.register_function('g', function(k) "
                                  "return redis.call('INCR', k[1]) end)")  # fmt: skip
    pair.topology.set_lag(20)
    for call in (
        lambda: script(keys=["n"]),  # NOSCRIPT, SCRIPT LOAD, EVALSHA
        lambda: script(keys=["n"]),
        lambda: pair.writer.eval(text, 1, "n"),
        lambda: pair.writer.evalsha(script.sha, 1, "n"),
        lambda: pair.writer.fcall("g", 1, "n"),
        lambda: batch(transaction=False),
        lambda: batch(transaction=True),
    ):
        with antipode.scope() as scope:
            value = call()
            assert len(writes_of(scope.lineage)) == 1
            assert not scope.lineage.incomplete
            antipode.barrier(timeout=TIMEOUT_S, at="read")
            assert pair.reader.get("n") == b"%d" % value
    with antipode.scope() as scope:
        pair.writer.script_exists(script.sha)
        pair.writer.script_load("return 1")
        assert scope.lineage.empty


def test_read_only_scripts_are_reads(pair: Pair) -> None:
    """The server lets them write nothing, so they enter nothing, count nothing, and wait."""
    before = counted("uncovered_write")
    with antipode.scope() as scope:
        assert pair.writer.eval_ro("return 1", 0) == 1
        for forbidden in ("'SET', 'k', 1", "'PUBLISH', 'c', 1"):
            with pytest.raises(redis.ResponseError):
                pair.writer.eval_ro(f"return redis.call({forbidden})", 0)
        assert scope.lineage.empty
        pair.writer.set("k", "v")
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        pair.topology.wait_replicated()
        with exchanges(pair.topology.link()):
            assert pair.reader.eval_ro("return redis.call('GET', KEYS[1])", 1, "k") == b"v"
    assert counted("uncovered_write") == before


def test_scripts_under_a_floor_wait(pair: Pair) -> None:
    """A script that may write is held back before it is sent, and sent once."""
    pair.topology.set_lag(50)
    with antipode.scope():
        pair.writer.set("k", "v")
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        assert pair.reader.eval("return redis.call('GET', KEYS[1])", 1, "k") == b"v"
