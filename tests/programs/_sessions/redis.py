"""Sessions of redis-py, synchronous and asynchronous."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, ClassVar

import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry

import antipode
from antipode_shims import redis as shims
from antipode_testing import RedisTopology

from .bench import DATASTORE, OFTEN, Bench, Fault, step
from .both import Awaited
from .connected import AsCalls, InLoop

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from typing_extensions import Self

#: How long a read at the replica, whose replication is held, waits; and one at the primary.
HELD_S = 0.02
WAIT_S = 0.2
#: A cancellation comes within this time.
CANCEL_S = 0.004
#: Strings that steps write, and held reads compare.
KEYS = ("a", "b", "c")
#: What the other client writes.
NOTE = b"note"
NAME = "session"
WRITES = "redis.call('SET', KEYS[1], ARGV[1]) return 1"
READS = "return redis.call('GET', KEYS[1])"
WRITES_AND_FAILS = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('NO_SUCH')"
LIBRARY = """#!lua name=kept
redis.register_function('keep', function(keys, args)
  redis.call('SET', keys[1], args[1]) return 1 end)
redis.register_function{function_name='shown', callback=function(keys, args)
  return redis.call('GET', keys[1]) end, flags={'no-writes'}}"""
#: What one pipeline may hold: commands with their arguments; ``{n}`` is a new value.
INNER: tuple[tuple[str, ...], ...] = (
    ("SET", "a", "{n}"),
    ("GET", "a"),
    ("INCRBY", "counter", "{n}"),
    ("LPUSH", "a_list", "{n}"),
    ("INCR", "a_list"),
    ("DEL", "b"),
    ("MGET", *KEYS),
    ("EVAL", READS, "1", "a"),
    ("EVAL", WRITES, "1", "b", "{n}"),
)
ALONE: Mapping[str, tuple[str, ...]] = {
    "increment": ("INCRBY", "counter", "{n}"),
    "delete": ("DEL", "a"),
    "delete_nothing": ("DEL", "no_such_key"),
    "set_if_new": ("SET", "b", "{n}", "NX"),
    "set_and_get": ("SET", "b", "{n}", "GET"),
    "take": ("GETDEL", "c"),
    "field": ("HSET", "a_hash", "f", "{n}"),
    "push": ("LPUSH", "a_list", "{n}"),
    "pop": ("RPOP", "a_list"),
    "move": ("LMOVE", "a_list", "other_list", "LEFT", "RIGHT"),
    "blocking_pop": ("BLPOP", "a_list", "0.01"),
    "stream": ("XADD", "a_stream", "*", "f", "{n}"),
    "rename": ("RENAME", "a", "c"),
    "copy": ("COPY", "a", "c", "REPLACE"),
    "sort_and_store": ("SORT", "a_list", "STORE", "sorted"),
    "wrong_type": ("INCR", "a_list"),
    "wrong_number": ("SET", "a"),
    "no_command": ("NO_SUCH_COMMAND",),
    "publish": ("PUBLISH", "channel", "{n}"),
    "script_writes": ("EVAL", WRITES, "1", "a", "{n}"),
    "script_reads": ("EVAL", READS, "1", "a"),
    "script_only_reads": ("EVAL_RO", READS, "1", "a"),
    "script_fails": ("EVAL", WRITES_AND_FAILS, "1", "a", "{n}"),
    "no_script": ("EVALSHA", "0" * 40, "1", "a", "{n}"),
    "function_writes": ("FCALL", "keep", "1", "a", "{n}"),
    "function_reads": ("FCALL_RO", "shown", "1", "a"),
    "type_of": ("TYPE", "a"),
    "many": ("MSET", "a", "{n}", "b", "{n}"),
    "many_if_new": ("MSETNX", "a", "{n}", "new:{n}", "{n}"),
    "info": ("INFO", "replication"),
    "ping": ("PING",),
    "scan": ("SCAN", "0"),
}


def _sends(words: tuple[str, ...]) -> Any:
    async def act(bench: Any, choose: random.Random) -> None:
        await bench.send(bench.filled(words))

    return act


#: A class whose steps send one command each.
Commands: Any = type("Commands", (), {name: step()(_sends(words)) for name, words in ALONE.items()})


class RedisSteps(Commands, Bench):  # type: ignore[misc]
    """Two servers, and a client of each: the steps of both APIs."""

    refusals: ClassVar[tuple[type[BaseException], ...]] = (redis.RedisError, OSError)

    def __init__(self) -> None:
        super().__init__()
        # The digests of values are the truth.
        self.topology = RedisTopology(lag_ms=0, config={"enable-debug-command": "yes"})

    def __enter__(self) -> Self:
        self.topology.start()
        self._plain = [
            self._connected(self.topology.primary),
            self._connected(self.topology.replica),
        ]
        self._other = self._connected(self.topology.primary)
        shims.instrument_client(self._other, datastore=DATASTORE)
        self._plain[0].function_load(LIBRARY, replace=True)
        self.topology.wait_replicated()
        return self

    def _connected(self, server: Any) -> Any:
        return redis.Redis(host=server.host, port=server.port)

    def __exit__(self, *exception: object) -> None:
        shims.uninstrument_client(self._other)
        for each in (*self._plain, self._other):
            each.close()
        self.topology.close()

    def open(self, choose: random.Random) -> None:
        """A client of each server, which tries again after a lost connection, or not."""
        retries = choose.choice((0, 0, 3))
        self.session = self._client(self.topology.primary, "primary", retries)
        self.reader = self._client(self.topology.replica, "replica", retries)

    def _client(self, server: Any, reads_from: Any, retries: int) -> Any:
        client = self.made(
            host=server.host, port=server.port, client_name=NAME, retry=self.retry(retries)
        )
        shims.instrument_client(client, datastore=DATASTORE, reads_from=reads_from)
        return self.whole(client)

    def made(self, **options: Any) -> Any:
        """A client that nothing instruments."""
        return redis.asyncio.Redis(**options)

    def retry(self, times: int) -> Any:
        """How often a command is sent again."""
        return redis.asyncio.retry.Retry(NoBackoff(), times)

    def whole(self, client: Any) -> Any:
        """As steps call it."""
        return client

    def bare(self, client: Any) -> Any:
        """The client itself."""
        return client

    def settle(self) -> None:
        """Nothing is open between two calls."""

    def close(self) -> None:
        """Close both."""
        for each in (self.session, self.reader):
            shims.uninstrument_client(self.bare(each))
            self.run(each.aclose())

    def committed(self) -> object:
        """The digests of all values but the other client's."""
        return self._digests(self._plain[0])

    def shown(self) -> object:
        """Those of the replica."""
        return self._digests(self._plain[1])

    def _digests(self, plain: Any) -> object:
        keys = sorted(set(plain.keys()) - {NOTE})
        return keys, plain.execute_command("DEBUG", "DIGEST-VALUE", *keys)

    def hold(self) -> None:
        """Hold replication."""
        self.topology.pause()

    def release(self) -> None:
        """Let it go on."""
        self.topology.resume()
        self.topology.wait_replicated()

    def filled(self, words: tuple[str, ...]) -> list[str]:
        """A command with a value that nothing has."""
        number = str(self.number())
        return [word.replace("{n}", number) for word in words]

    async def send(self, words: list[str]) -> Any:
        """One command."""
        self.trace.append(" ".join(words))
        return await self.session.execute_command(*words)

    @step(OFTEN)
    async def set_(self, choose: random.Random) -> None:
        """``set()``."""
        key = choose.choice(KEYS)
        self.trace.append(f"set({key})")
        await self.session.set(key, self.number())

    @step(OFTEN)
    async def get(self, choose: random.Random) -> None:
        """``get()``."""
        await self.session.get(choose.choice(KEYS))

    @step(OFTEN)
    async def pipeline(self, choose: random.Random) -> None:
        """Several commands, of which some fail: with MULTI, or without."""
        transaction = choose.random() < 0.5
        self.trace.append(f"pipeline(transaction={transaction}):")
        async with self.session.pipeline(transaction=transaction) as pipe:
            self._fill(choose, pipe)
            await pipe.execute(raise_on_error=choose.random() < 0.5)

    def _fill(self, choose: random.Random, pipe: Any) -> None:
        for words in choose.choices(INNER, k=choose.randrange(1, 5)):
            filled = self.filled(words)
            self.trace.append(" ".join(filled))
            pipe.execute_command(*filled)

    @step(4)
    async def watched(self, choose: random.Random) -> None:
        """``WATCH``, a read, and a transaction, which a write of others may abort."""
        self.trace.append("watch(a), get(a), multi():")
        async with self.session.pipeline() as pipe:
            await pipe.watch("a")
            await pipe.get("a")
            if choose.random() < 0.3:
                self.trace.append("-- another client writes it")
                self._plain[0].set("a", self._plain[0].get("a") or "", xx=True)
            pipe.multi()
            self._fill(choose, pipe)
            await pipe.execute()

    @step(2)
    async def registered(self, choose: random.Random) -> None:
        """A script that the client registers: EVALSHA, and SCRIPT LOAD where it is not known."""
        self.trace.append("register_script")
        if choose.random() < 0.5:
            self._plain[0].script_flush()
        script = self.bare(self.session).register_script(choose.choice((WRITES, READS)))
        called = script(keys=["a"], args=[self.number()])
        if not isinstance(self.session, Awaited):
            await called

    @step(OFTEN)
    async def read_under_floor(self, choose: random.Random) -> None:
        """Another client writes, and the session's next read has to show it."""
        number = self._floor()
        if int(await self.session.get(NOTE) or 0) < number:
            raise Fault("early", f"note {number} is not shown")

    @step(4)
    async def pipeline_under_floor(self, choose: random.Random) -> None:
        """The same in a pipeline, beside other commands."""
        number = self._floor()
        self.trace.append(f"pipeline under a floor, note {number}:")
        async with self.session.pipeline(transaction=choose.random() < 0.5) as pipe:
            pipe.get(NOTE)
            self._fill(choose, pipe)
            found = await pipe.execute(raise_on_error=False)
        if int(found[0] or 0) < number:
            raise Fault("early", f"note {number} is not shown in a pipeline")

    def _floor(self) -> int:
        number = self.number()
        with antipode.scope() as scope:
            self._other.set(NOTE, number)
            written = scope.lineage
        antipode.barrier(written, timeout=WAIT_S, at="read")
        return number

    @step(OFTEN)
    async def read_at_replica(self, choose: random.Random) -> None:
        """A read that waits for the request's writes is refused, or shows them."""
        antipode.barrier(timeout=HELD_S, at="read")
        read = choose.choice((self._mget, self._script, self._piped))
        self.trace.append(f"read at the replica: {read.__name__}")
        found = await read()
        if found != self._plain[0].mget(KEYS):
            raise Fault("early", "a held read at the replica shows older values")

    async def _mget(self) -> Any:
        return await self.reader.mget(KEYS)

    async def _script(self) -> Any:
        return await self.reader.eval("return redis.call('MGET', unpack(KEYS))", len(KEYS), *KEYS)

    async def _piped(self) -> Any:
        async with self.reader.pipeline(transaction=False) as pipe:
            for key in KEYS:
                pipe.get(key)
            return await pipe.execute()

    @step()
    async def ended_by_the_server(self, choose: random.Random) -> None:
        """The server ends the session's connections."""
        self.trace.append("-- killed")
        for each in self._plain[0].client_list():
            if each["name"] == NAME:
                with contextlib.suppress(redis.ResponseError):
                    self._plain[0].client_kill(each["addr"])


class AsyncRedisPy(InLoop, RedisSteps):
    """The asyncio API."""

    @step(2)
    async def cancelled(self, choose: random.Random) -> None:
        """A task that is cancelled while it writes, or as it ends."""
        after_s = choose.uniform(0, CANCEL_S)
        await self.cancel(self.send(["SET", "a", str(self.number())]), after_s)


class RedisPy(AsCalls, RedisSteps):
    """The synchronous API."""

    def made(self, **options: Any) -> Any:
        """A client that nothing instruments."""
        return redis.Redis(**options)

    def retry(self, times: int) -> Any:
        """How often a command is sent again."""
        return Retry(NoBackoff(), times)

    def whole(self, client: Any) -> Any:
        """As steps call it."""
        return Awaited(client)

    def bare(self, client: Any) -> Any:
        """The client itself."""
        return client.part
