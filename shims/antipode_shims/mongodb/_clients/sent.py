"""What is done while a server works: behind a command, before its reply is waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Sent:
    """Calls back whenever a connection begins to wait for a reply, until :meth:`remove`."""

    __slots__ = ("_connection", "_held")

    def __init__(self, connection: Any, tell: Callable[[], None]) -> None:
        """Call *tell* behind each command that *connection* sends."""
        self._connection = connection
        # What stores lineages in documents may look at what is received, too.
        self._held = vars(connection).get("receive_message")
        connection.receive_message = self._telling(connection.receive_message, tell)

    def remove(self) -> None:
        """Let the connection be as it was."""
        if self._held is None:
            del self._connection.receive_message
        else:
            self._connection.receive_message = self._held

    def _telling(self, receive: Any, tell: Callable[[], None]) -> Any:
        raise NotImplementedError


class SyncSent(Sent):
    """Of a synchronous connection."""

    __slots__ = ()

    def _telling(self, receive: Any, tell: Callable[[], None]) -> Any:
        def receive_message(*args: Any) -> Any:
            tell()
            return receive(*args)

        return receive_message


class AsyncSent(Sent):
    """The asyncio twin of :class:`SyncSent`."""

    __slots__ = ()

    def _telling(self, receive: Any, tell: Callable[[], None]) -> Any:
        async def receive_message(*args: Any) -> Any:
            tell()
            return await receive(*args)

        return receive_message
