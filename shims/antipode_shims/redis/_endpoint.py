"""The library's own connection to the server where a process reads."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from typing import TYPE_CHECKING, Any

from antipode.shim import Endpoint, Observation, Unreachable, Wake

from ._clients.asked import Asked
from ._clients.exchange import asked_first, exchange
from ._clients.redis_py import ServerSettings, link_errors, redis_module, response_error, socket_of
from ._look import look
from ._position import INFO, InfoError, LogHistory, parse_info

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from types import ModuleType

    from antipode import Promise, WriteId

    from ._commands import Command

#: Pushes of a busy server come in faster than polls are worth; at most one poll in this time.
_LEAST_PUSH_S = 0.001


class RedisEndpoint(Endpoint):
    """Polls with ``INFO replication``; between polls, the server pushes that keys changed.

    The push is ``CLIENT TRACKING`` in broadcast mode on the prefix of companion keys (Redis
    manual, "Client-side caching"), on for as long as somebody waits: an idle connection that
    tracks would make the server buffer pushes without bound. Where the server has no RESP3
    or refuses tracking, polls are paced by time alone.
    """

    pinned = False

    def __init__(
        self, settings: ServerSettings, history: LogHistory, *, prefix: str, timeout_s: float
    ) -> None:
        """Connect within *timeout_s*.

        Raises:
            Unreachable: not now.
            ConfigurationError: the address does not pass ``INFO``.
            Exception: the server refuses this user.
        """
        self._history = history
        self._prefix = prefix
        self._tracking = False
        self._looked_s = 0.0
        redis = redis_module()
        try:
            self._connection, self._pushes = _connect(redis, settings, timeout_s)
        except redis.exceptions.AuthenticationError:
            raise
        except link_errors() as error:
            raise Unreachable(str(error)) from error
        self._socket = socket_of(self._connection)
        try:
            with self._reached():
                reply = asked_first(self._connection, ("INFO", "server"))
        except BaseException:
            self.close()
            raise
        self._refusal = Asked.of(self._connection).refusal
        # The process behind a live connection cannot change, so its run id is asked for once.
        self._run_id = "" if isinstance(reply, Exception) else _run_id(reply)

    def observe(self, writes: Collection[WriteId], *, timeout_s: float) -> Observation:
        """Poll once; one round trip, one more where a log is unknown.

        Raises:
            Unreachable: the connection failed, or the server is loading or busy.
            InfoError: the server does not let this user ask, or does not answer as Redis does.
        """
        return self._look(writes, (), timeout_s)

    def promised(self, promises: Collection[Promise], *, timeout_s: float) -> Observation:
        """Ask once for the records of *promises*, in one round trip; as :meth:`observe`.

        Raises:
            Unreachable: as :meth:`observe`.
            InfoError: as :meth:`observe`.
        """
        return self._look((), tuple(promises), timeout_s)

    def _look(
        self, writes: Collection[WriteId], promises: Sequence[Promise], timeout_s: float
    ) -> Observation:
        if self._refusal is not None:
            parse_info(self._refusal)  # Each question of a refused user would be logged there.
        deadline_s = time.monotonic() + timeout_s
        steps = look(
            writes, self._history, run_id=self._run_id, promises=promises, prefix=self._prefix
        )
        try:
            self._set_timeout(timeout_s)
            replies = self._exchange(next(steps))
            while True:
                asked = steps.send(replies)
                self._set_timeout(deadline_s - time.monotonic())
                replies = self._exchange(asked)
        except StopIteration as end:
            shown: Observation = end.value
        except InfoError as error:
            if error.passing:
                raise Unreachable(str(error)) from error
            raise
        self._looked_s = time.monotonic()
        return shown

    def follows(self, *, timeout_s: float) -> bool:
        """Whether the server has the role of a replica; one round trip.

        Raises:
            Unreachable: as :meth:`observe`.
            InfoError: as :meth:`observe`.
        """
        self._set_timeout(timeout_s)
        return not parse_info(self._exchange([INFO])[0]).primary

    def pause(self, timeout_s: float, wake: Wake) -> None:
        """Wait for time, *wake*, or a push that says that keys with the prefix changed."""
        if wake.is_set():
            return
        if self._pushes and not self._tracking:
            # A change between the last poll and this moment is not pushed: poll again at once.
            self._track(on=True)
            return
        if self._socket is None or not self._tracking:
            wake.wait(timeout_s)
            return
        wait_s = self._looked_s + _LEAST_PUSH_S - time.monotonic()
        if wait_s > 0:
            wake.wait(min(wait_s, timeout_s))
        if not wake.is_set() and not self._connection.can_read(0):
            left_s = max(timeout_s - max(wait_s, 0.0), 0.0)
            select.select([self._socket.fileno(), wake.fileno()], [], [], left_s)

    def rest(self) -> None:
        """End pushes: an idle connection that tracks would fill the server's buffers."""
        if self._tracking:
            self._track(on=False)

    def _track(self, *, on: bool) -> None:
        """Turn pushes on or off; a server that refuses is not asked again."""
        broadcast = ("ON", "BCAST", "PREFIX", self._prefix) if on else ("OFF",)
        reply = self._exchange([("CLIENT", "TRACKING", *broadcast)])[0]
        self._tracking = on and not isinstance(reply, Exception)
        if on and not self._tracking:
            self._pushes = False

    def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        with self._reached():
            return exchange(self._connection, commands)

    @contextlib.contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except redis_module().exceptions.AuthenticationError:
            raise
        except link_errors() as error:
            raise Unreachable(str(error) or type(error).__name__) from error

    def _set_timeout(self, timeout_s: float) -> None:
        if self._socket is not None and self._socket.gettimeout() != timeout_s:
            self._socket.settimeout(max(timeout_s, 0.001))

    def interrupt(self) -> None:
        """Shut the socket down: a poll in another thread then fails at once."""
        if self._socket is not None:
            with contextlib.suppress(OSError):  # It is closed already.
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Release the connection. Idempotent."""
        self._connection.disconnect()
        self._socket = None


def _connect(redis: ModuleType, settings: ServerSettings, timeout_s: float) -> tuple[Any, bool]:
    """A connection and whether it takes pushes: RESP3 where the server speaks it."""
    try:
        return settings.connect(protocol=3, timeout_s=timeout_s), True
    except redis.exceptions.AuthenticationError:
        raise
    except (response_error(), redis.exceptions.ConnectionError):
        # Servers before 6, and those where HELLO is renamed, refuse the handshake.
        return settings.connect(protocol=2, timeout_s=timeout_s), False


def _run_id(reply: object) -> str:
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else str(reply)
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == "run_id":
            return value
    return ""
