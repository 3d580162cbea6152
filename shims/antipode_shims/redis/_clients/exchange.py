"""Round trips on a connection that is held already, synchronous and asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode.shim import Unreachable, drive, unless_cancelled
from antipode_shims.redis._look import patient
from antipode_shims.redis._position import INFO, InfoError, refused

from .asked import Asked
from .redis_py import link_errors, link_of, response_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from antipode.shim import Floor, Observation, Steps
    from antipode_shims.redis._commands import Command
    from antipode_shims.redis._look import Look


def nothing() -> None:
    """Do nothing; for who does not care when the request leaves."""


def exchange(
    connection: Any,
    commands: Sequence[Command],
    *,
    timeout_s: float | None = None,
    on_send: Callable[[], None] = nothing,
) -> list[Any]:
    """Send *commands* as one packet; their replies, undecoded, errors among them as values.

    Args:
        connection: of redis-py.
        commands: what to send.
        timeout_s: the longest to wait for the first reply; None: as the connection is set up.
        on_send: called when it is connected and before the first byte leaves.

    Raises:
        Unreachable: no reply within *timeout_s*; the connection is closed.
        Exception: as redis-py does when the connection fails, which is then closed.
    """
    connection.connect()
    on_send()
    connection.send_packed_command(connection.pack_commands(commands))
    if timeout_s is not None and not connection.can_read(timeout_s):
        connection.disconnect()
        raise Unreachable(f"no reply within {timeout_s:.3f} s")
    return [_reply(connection) for _ in commands]


def _reply(connection: Any) -> Any:
    try:
        return connection.read_response(disable_decoding=True)
    except response_error() as error:
        return error


class Exchange:
    """A step of a conversation: a round trip on a connection."""

    __slots__ = ("_commands", "_connection", "_timeout_s")

    def __init__(
        self, connection: Any, commands: Sequence[Command], timeout_s: float | None = None
    ) -> None:
        """Send *commands*, as :func:`exchange` does."""
        self._connection, self._commands, self._timeout_s = connection, commands, timeout_s

    def do(self, client: object) -> list[Any]:
        """The replies."""
        del client
        return exchange(self._connection, self._commands, timeout_s=self._timeout_s)

    def do_async(self, client: object) -> Awaitable[list[Any]]:
        """The same by asyncio."""
        del client
        return exchange_async(self._connection, self._commands, timeout_s=self._timeout_s)


class Connect:
    """A step of a conversation: a connection that is not connected yet."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Any) -> None:
        """Of redis-py."""
        self._connection = connection

    def do(self, client: object) -> None:
        """Connect."""
        del client
        self._connection.connect()

    def do_async(self, client: object) -> Awaitable[None]:
        """Connect by asyncio."""
        del client
        return unless_cancelled(self._connection.connect())


def polling(connection: Any, held: Floor, look: Look, *, timeout_s: float) -> Steps[Observation]:
    """One poll on a connection of the application, for a floor."""
    try:
        commands = next(look)
        while True:
            commands = look.send((yield Exchange(connection, commands, timeout_s)))
    except StopIteration as end:
        return patient(end.value)
    except InfoError as error:
        return refused(held.writes, error, held.promises)


def asking(
    connection: Any, *, strict: bool = False, timeout_s: float | None = None
) -> Steps[Exception | None]:
    """Why ``INFO`` may not ride with commands on *connection*, which is asked where need be.

    Args:
        connection: of redis-py.
        strict: it watches keys: where it is closed, the caller has to know.
        timeout_s: as of :func:`exchange`.

    Raises:
        Unreachable: as :func:`exchange`.
        Exception: as redis-py does when the connection fails, otherwise than closed at ``INFO``.
    """
    asked = Asked.of(connection)
    while not asked.settled(connection):
        if link_of(connection) is None:
            yield Connect(connection)
            continue
        try:
            asked.answered(connection, (yield Exchange(connection, [INFO], timeout_s))[0])
        except link_errors() as error:
            if not asked.failed(error) or strict:
                raise
    return asked.refusal


def asked_first(connection: Any, question: Command) -> Any:
    """The reply to *question*, an ``INFO``, on a new connection of the library's own.

    Raises:
        ConfigurationError: the address does not pass ``INFO``.
        Exception: as :func:`exchange`.
    """
    asked = Asked.of(connection)
    try:
        reply = exchange(connection, [question])[0]
    except link_errors() as error:
        if asked.failed(error) and (refusal := drive(asking(connection), None)) is not None:
            raise refusal from error
        raise
    asked.answered(connection, reply)
    if isinstance(asked.refusal, ConfigurationError):
        raise asked.refusal
    return reply


async def exchange_async(
    connection: Any,
    commands: Sequence[Command],
    *,
    timeout_s: float | None = None,
    on_send: Callable[[], None] = nothing,
) -> list[Any]:
    """The asyncio twin of :func:`exchange`.

    Cancelled in flight, the connection is closed, or all that was asked is read.
    """
    return await unless_cancelled(_exchange_async(connection, commands, timeout_s, on_send))


async def _exchange_async(
    connection: Any,
    commands: Sequence[Command],
    timeout_s: float | None,
    on_send: Callable[[], None],
) -> list[Any]:
    import asyncio

    await connection.connect()
    on_send()
    await connection.send_packed_command(connection.pack_commands(commands))
    if timeout_s is None:
        return await _replies_async(connection, len(commands))
    # Not wait_for: before Python 3.12 it swallows a cancellation that meets the reply.
    # The client's own limit does not apply, as in the other API.
    reading = asyncio.ensure_future(_replies_async(connection, len(commands), timeout_s + 1))
    try:
        done, _ = await asyncio.wait({reading}, timeout=timeout_s)
    finally:
        if not reading.done():
            reading.cancel()  # redis-py then closes the connection: a reply is on its way.
            await asyncio.gather(reading, return_exceptions=True)
    if not done:
        raise Unreachable(f"no reply within {timeout_s:.3f} s")
    return reading.result()


async def _replies_async(connection: Any, count: int, timeout_s: float | None = None) -> list[Any]:
    replies = [await _reply_async(connection, timeout_s)]
    while len(replies) < count:
        replies.append(await _reply_async(connection))
    return replies


async def _reply_async(connection: Any, timeout_s: float | None = None) -> Any:
    try:
        return await connection.read_response(disable_decoding=True, timeout=timeout_s)
    except response_error() as error:
        return error
