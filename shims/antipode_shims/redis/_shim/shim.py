"""Table 2 over redis-py: values with their stored lineage."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from antipode.shim import (
    Repeated,
    StaleRead,
    Unreachable,
    drive,
    drive_async,
    named_client,
    own_client,
    recorded,
    register,
)
from antipode_shims.redis._clients.exchange import (
    asking,
    exchange,
    exchange_async,
    polling,
)
from antipode_shims.redis._clients.redis_py import (
    check_client,
    link_errors,
    places_of,
    redis_module,
    take_connection,
    timed_out,
    watch_error,
)
from antipode_shims.redis._clients.sentinel import settings_of
from antipode_shims.redis._promises.records import watch_record
from antipode_shims.redis._table2 import RedisTable2, Sent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from antipode import Lineage, Promise
    from antipode.shim import Floor, Observation, OnRead, ReadsFrom
    from antipode_shims.redis._clients.redis_py import ServerSettings
    from antipode_shims.redis._commands import Command
    from antipode_shims.redis._table2 import Expiry, Key, Value

#: Most times that a write is tried whose promise gets another record meanwhile.
FULFILMENTS = 3


class RedisShim(RedisTable2):
    """Table 2 of one Redis server, synchronous. Made by :func:`shim`."""

    def __init__(
        self, datastore: str, client: Any, settings: ServerSettings, *, owned: bool, **options: Any
    ) -> None:
        """Use the pool of *client*; an *owned* client is closed with the shim."""
        super().__init__(datastore, settings, **options)
        self._client = client
        self._owned = owned
        self._places = places_of(client.connection_pool)

    @recorded("write", expires=("ex", "px"))
    def write(
        self,
        key: Key,
        value: Value,
        lineage: Lineage | None = None,
        *,
        ex: Expiry | None = None,
        px: Expiry | None = None,
        fulfils: Promise | None = None,
    ) -> Lineage:
        """Set *key* to *value*, with its lineage, in one round trip.

        Args:
            key: the key.
            value: a string or number, as redis-py takes it.
            lineage: what the value depends on; default the current lineage.
            ex: seconds until both expire.
            px: milliseconds until both expire.
            fulfils: a promise that this write fulfils, in the same transaction; one more round
                trip.

        Returns:
            The lineage with this write in it; it enters the current scope as well.

        Raises:
            PromiseAbandoned: *fulfils* was given up; nothing is written.
            redis.RedisError: as redis-py does; without a reply the scope becomes ``incomplete``.
        """
        base = self.base(lineage)
        encoded = bytes(self._client.get_encoder().encode(value))
        commands = self.write_commands(key, encoded, base, ex=ex, px=px, fulfils=fulfils)
        return self._send(commands, base, fulfils)

    @recorded("delete")
    def delete(
        self, key: Key, lineage: Lineage | None = None, *, fulfils: Promise | None = None
    ) -> Lineage:
        """Delete *key*; a tombstone keeps the lineage for who finds nothing.

        Raises:
            PromiseAbandoned: as :meth:`write`.
            redis.RedisError: as :meth:`write`.
        """
        base = self.base(lineage)
        return self._send(self.delete_commands(key, base, fulfils), base, fulfils)

    def _send(self, commands: list[Command], base: Lineage, fulfils: Promise | None) -> Lineage:
        sent = Sent()
        with self._connection() as connection:
            try:
                replies = self._written(connection, commands, sent, fulfils)
            except BaseException as error:
                self.failed(error, sent=sent.sent)
                if fulfils is not None:
                    connection.disconnect()  # Whoever gets it next watches nothing.
                raise
            self._note_log(connection, replies[-1])
        return self.written(replies, base)

    def _written(
        self, connection: Any, commands: list[Command], sent: Sent, fulfils: Promise | None
    ) -> list[Any]:
        """The replies to a write, which may have to fulfil a promise.

        Raises:
            PromiseAbandoned: it was given up.
            WatchError: (of redis-py) its record changes all the time.
        """
        if fulfils is None:
            return self._attempts(connection, commands, on_send=sent)

        def attempt() -> list[Any]:
            drive(asking(connection), None)  # After WATCH it would come too late.
            watching = watch_record(fulfils, self.prefix)
            self.watched(fulfils, exchange(connection, watching))
            return self._asked(connection, commands, on_send=sent)

        for _ in range(FULFILMENTS):
            replies = self._retried(connection, attempt)
            if replies[-2] is not None:
                return replies
            sent.sent = False  # Another record came first: nothing was written.
        raise watch_error()(f"the record of {fulfils} changes all the time")

    @recorded("read")
    def read(self, key: Key) -> tuple[Any, Lineage]:
        """The value of *key*, None when there is none, and what it depends on.

        One round trip. Under a floor, the read is held back until it is met.

        Returns:
            The value as the client decodes it, and its stored lineage with a covering
            position; merged into the current scope unless ``on_read="ignore"``.

        Raises:
            UnmetError: a floor was not met.
            redis.RedisError: as redis-py does.
        """
        stale = StaleRead()
        held = self.floor(stale)
        commands = self.read_commands(key, held)
        again = Repeated(self, self._places)
        try:
            while (replies := self._attempted(commands, held, again)) is None:
                again.pause()
        finally:
            again.end()
        value, lineage = self.seen(replies)
        stale.answered()
        return (None if value is None else self._client.get_encoder().decode(value)), lineage

    def _attempted(
        self, commands: list[Command], held: Floor | None, again: Repeated
    ) -> list[Any] | None:
        """The replies to a read; None where its connection does not show *held* yet."""
        with self._connection() as connection:
            replies = self._shown(connection, commands, held)
            final = False
            while held is not None and not self.judge(held, replies, final=final):
                if not again.look(held, self._look(held, connection)):
                    return None
                replies = self._shown(connection, commands, held)
                final = True
            return replies

    def _shown(self, connection: Any, commands: list[Command], held: Floor | None) -> list[Any]:
        """The replies to a read; under a floor they come in its time.

        Raises:
            BarrierTimeout: they do not.
        """
        if held is None:
            return self._attempts(connection, commands)
        if self.by_sentinels:
            self.locate(held, connection)
        try:
            return self._attempts(connection, commands, timeout_s=held.poll_s)
        except Unreachable as away:
            held.expire(away)
            raise timed_out(away) from away

    def _look(self, held: Floor, connection: Any) -> Callable[[float], Observation]:
        def observe(timeout_s: float) -> Observation:
            steps = polling(connection, held, self.look_for(held), timeout_s=timeout_s)
            return drive(steps, None)

        return observe

    def _attempts(self, connection: Any, commands: list[Command], **options: Any) -> list[Any]:
        return self._retried(connection, lambda: self._asked(connection, commands, **options))

    def _asked(self, connection: Any, commands: list[Command], **options: Any) -> list[Any]:
        """The replies to a packet that ends with ``INFO``, or why that may not be asked."""
        refusal = drive(asking(connection, timeout_s=options.get("timeout_s")), None)
        sent = self.allowed(commands, refusal)
        replies = exchange(connection, sent, **options)
        return replies if sent is commands else [*replies, refusal]

    def _retried(self, connection: Any, attempt: Callable[[], list[Any]]) -> list[Any]:
        """What *attempt* returns, repeated as the client is configured to."""
        replies: list[Any] = connection.retry.call_with_retry(
            attempt, lambda _error: connection.disconnect()
        )
        return replies

    def _note_log(self, connection: Any, reply: Any) -> None:
        commands = self.log_commands(reply)
        if commands:
            try:
                exchange(connection, commands)
            except link_errors():
                pass  # The write is done; replicas learn of the log from another writer.

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        pool = self._client.connection_pool
        connection = take_connection(pool)
        try:
            yield connection
        finally:
            pool.release(connection)

    def close(self) -> None:
        """Unregister and release every connection of the shim's own. Idempotent."""
        super().close()
        if self._owned:
            self._client.close()


class RedisAsyncShim(RedisTable2):
    """Table 2 of one Redis server over asyncio. Made by :func:`shim_async`."""

    def __init__(
        self, datastore: str, client: Any, settings: ServerSettings, *, owned: bool, **options: Any
    ) -> None:
        """Use the pool of *client*; an *owned* client is closed by :meth:`aclose`."""
        super().__init__(datastore, settings, **options)
        self._client = client
        self._owned = owned
        self._places = places_of(client.connection_pool)

    @recorded("write", expires=("ex", "px"))
    async def write(
        self,
        key: Key,
        value: Value,
        lineage: Lineage | None = None,
        *,
        ex: Expiry | None = None,
        px: Expiry | None = None,
        fulfils: Promise | None = None,
    ) -> Lineage:
        """As :meth:`RedisShim.write`; cancelled in flight, the scope becomes ``incomplete``."""
        base = self.base(lineage)
        encoded = bytes(self._client.get_encoder().encode(value))
        commands = self.write_commands(key, encoded, base, ex=ex, px=px, fulfils=fulfils)
        return await self._send(commands, base, fulfils)

    @recorded("delete")
    async def delete(
        self, key: Key, lineage: Lineage | None = None, *, fulfils: Promise | None = None
    ) -> Lineage:
        """As :meth:`RedisShim.delete`."""
        base = self.base(lineage)
        return await self._send(self.delete_commands(key, base, fulfils), base, fulfils)

    async def _send(
        self, commands: list[Command], base: Lineage, fulfils: Promise | None
    ) -> Lineage:
        sent = Sent()
        pool = self._client.connection_pool
        connection = await take_connection(pool)
        try:
            try:
                replies = await self._written(connection, commands, sent, fulfils)
            except BaseException as error:
                self.failed(error, sent=sent.sent)
                if fulfils is not None:
                    await connection.disconnect()  # Whoever gets it next watches nothing.
                raise
            await self._note_log(connection, replies[-1])
        finally:
            await pool.release(connection)
        return self.written(replies, base)

    async def _written(
        self, connection: Any, commands: list[Command], sent: Sent, fulfils: Promise | None
    ) -> list[Any]:
        if fulfils is None:
            return await self._attempts(connection, commands, on_send=sent)

        async def attempt() -> list[Any]:
            await drive_async(asking(connection), None)  # After WATCH it would come too late.
            watching = watch_record(fulfils, self.prefix)
            self.watched(fulfils, await exchange_async(connection, watching))
            return await self._asked(connection, commands, on_send=sent)

        for _ in range(FULFILMENTS):
            replies = await self._retried(connection, attempt)
            if replies[-2] is not None:
                return replies
            sent.sent = False  # Another record came first: nothing was written.
        raise watch_error()(f"the record of {fulfils} changes all the time")

    @recorded("read")
    async def read(self, key: Key) -> tuple[Any, Lineage]:
        """As :meth:`RedisShim.read`."""
        stale = StaleRead()
        held = self.floor(stale)
        commands = self.read_commands(key, held)
        again = Repeated(self, self._places)
        try:
            while (replies := await self._attempted(commands, held, again)) is None:
                await again.pause_async()
        finally:
            again.end()
        value, lineage = self.seen(replies)
        stale.answered()
        return (None if value is None else self._client.get_encoder().decode(value)), lineage

    async def _attempted(
        self, commands: list[Command], held: Floor | None, again: Repeated
    ) -> list[Any] | None:
        """As :meth:`RedisShim._attempted`."""
        pool = self._client.connection_pool
        connection = await take_connection(pool)
        try:
            replies = await self._shown(connection, commands, held)
            final = False
            while held is not None and not self.judge(held, replies, final=final):
                if not await again.look_async(held, self._look(held, connection)):
                    return None
                replies = await self._shown(connection, commands, held)
                final = True
            return replies
        finally:
            await pool.release(connection)

    async def _shown(
        self, connection: Any, commands: list[Command], held: Floor | None
    ) -> list[Any]:
        if held is None:
            return await self._attempts(connection, commands)
        if self.by_sentinels:
            self.locate(held, connection)
        try:
            return await self._attempts(connection, commands, timeout_s=held.poll_s)
        except Unreachable as away:
            held.expire(away)
            raise timed_out(away) from away

    def _look(self, held: Floor, connection: Any) -> Callable[[float], Awaitable[Observation]]:
        async def observe(timeout_s: float) -> Observation:
            steps = polling(connection, held, self.look_for(held), timeout_s=timeout_s)
            return await drive_async(steps, None)

        return observe

    async def _attempts(
        self, connection: Any, commands: list[Command], **options: Any
    ) -> list[Any]:
        return await self._retried(connection, lambda: self._asked(connection, commands, **options))

    async def _asked(self, connection: Any, commands: list[Command], **options: Any) -> list[Any]:
        """As :meth:`RedisShim._asked`."""
        steps = asking(connection, timeout_s=options.get("timeout_s"))
        refusal = await drive_async(steps, None)
        sent = self.allowed(commands, refusal)
        replies = await exchange_async(connection, sent, **options)
        return replies if sent is commands else [*replies, refusal]

    async def _retried(
        self, connection: Any, attempt: Callable[[], Awaitable[list[Any]]]
    ) -> list[Any]:
        replies: list[Any] = await connection.retry.call_with_retry(
            attempt, lambda _error: connection.disconnect()
        )
        return replies

    async def _note_log(self, connection: Any, reply: Any) -> None:
        commands = self.log_commands(reply)
        if commands:
            try:
                await exchange_async(connection, commands)
            except link_errors():
                pass  # The write is done; replicas learn of the log from another writer.

    async def aclose(self) -> None:
        """Unregister and release every connection of the shim's own. Idempotent."""
        self.close()
        if self._owned:
            close = getattr(self._client, "aclose", None) or self._client.close
            await close()


def shim(
    datastore: str,
    client: Any,
    *,
    reads_from: ReadsFrom = "primary",
    on_read: OnRead = "merge",
    prefix: str = "ap:",
    log_history: bool = False,
    one_server: bool | None = None,
) -> RedisShim:
    """Register Table 2's ``write``, ``read`` and ``wait`` for one Redis server.

    Args:
        datastore: the name that every service spells alike.
        client: a ``redis.Redis``, or the URL of a server.
        reads_from: whether that server is a primary or a replica.
        on_read: ``merge`` adds what a read finds to the current scope; ``ignore`` does not.
        prefix: of companion keys, alike in every service.
        log_history: after a promotion, note in ``antipode:log`` where the old log ended.
        one_server: as for :func:`instrument_client`.

    Raises:
        ConfigurationError: a cluster or asyncio client, a bad option, or redis-py is missing.
    """
    redis = redis_module()
    owned = isinstance(client, str)
    used = plain_client(client, redis.Redis.from_url)
    if check_client(used):
        _refuse("shim", "shim_async", "an asyncio")
    made = RedisShim(
        datastore,
        used,
        settings_of(used, reads_from),
        owned=owned,
        reads_from=reads_from,
        on_read=on_read,
        prefix=prefix,
        log_history=log_history,
        one_server=one_server,
    )
    register(made)
    return made


def shim_async(
    datastore: str,
    client: Any,
    *,
    reads_from: ReadsFrom = "primary",
    on_read: OnRead = "merge",
    prefix: str = "ap:",
    log_history: bool = False,
    one_server: bool | None = None,
) -> RedisAsyncShim:
    """The asyncio twin of :func:`shim`: ``write``, ``read`` and ``delete`` are coroutines.

    Close it with ``await aclose()``.

    Raises:
        ConfigurationError: as :func:`shim`.
    """
    redis = redis_module()
    owned = isinstance(client, str)
    used = plain_client(client, redis.asyncio.Redis.from_url)
    if not check_client(used):
        _refuse("shim_async", "shim", "a synchronous")
    made = RedisAsyncShim(
        datastore,
        used,
        settings_of(used, reads_from),
        owned=owned,
        reads_from=reads_from,
        on_read=on_read,
        prefix=prefix,
        log_history=log_history,
        one_server=one_server,
    )
    register(made)
    return made


def _refuse(called: str, other: str, what: str) -> None:
    from antipode import ConfigurationError

    msg = f"redis.{called}() got {what} client: use redis.{other}()"
    raise ConfigurationError(msg)


def plain_client(client: Any, make: Callable[[str], Any]) -> Any:
    """The client of a Table 2 shim, made of a URL by *make* or given."""
    if isinstance(client, str):
        return own_client(lambda: make(client))
    named_client(client)
    return client
