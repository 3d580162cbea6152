"""The wire of one connection, for one operation of a client that stores lineages in documents.

Everything that PyMongo sends and receives goes by a connection's ``send_message`` and
``receive_message``. What the application, its monitors and PyMongo itself see is as without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode_shims.mongodb._clients.pymongo import asked, asked_async
from antipode_shims.mongodb._look import converse, converse_async

from .bson import Message
from .lineages import Exchange
from .wire_old import WIRED, redirected

if TYPE_CHECKING:
    from contextvars import Token

    from typing_extensions import Self

    from antipode_shims.mongodb._look import Question

    from .lineages import StoredLineages

_OP_MSG = 2013
_HEADER_BYTES = 16
_ID_BYTES = slice(4, 8)
#: How much the lineages of one bulk write may add to a message.
_GROWTH_BYTES = 8_000_000
_ONE_BYTES = 1_300


class Wire:
    """What the two kinds of connections share."""

    def __init__(self, stored: StoredLineages, connection: Any, bulk: Any) -> None:
        """Observe *connection* within a ``with``; *bulk* is PyMongo's bulk write, if it is one."""
        self._exchange = Exchange(stored)
        self._connection = connection
        self._bulk = bulk
        self._compression: Any = None
        self._kept: dict[str, Any] = {}
        self._token: Token[Any] | None = None

    def expect(self, operation: Any) -> None:
        """Take what comes without being asked for the next batch of a cursor."""
        self._exchange.expect(operation.db, operation.coll, operation.cursor_id)

    def __enter__(self) -> Self:
        """Observe everything that goes by."""
        connection = self._connection
        if redirected():
            self._token = WIRED.set(connection)
        self._set("send_message", self.send)
        self._set("receive_message", self.receive)
        self._compression = connection.compression_context
        self._set("compression_context", None)
        if self._bulk is not None:
            self._set("max_message_size", connection.max_message_size - _GROWTH_BYTES)
            most = min(connection.max_write_batch_size, _GROWTH_BYTES // _ONE_BYTES)
            self._set("max_write_batch_size", most)
        return self

    def _set(self, name: str, value: Any) -> None:
        held = vars(self._connection)
        self._kept[name] = held.get(name, self)
        setattr(self._connection, name, value)

    def __exit__(self, *_exception: object) -> None:
        """Let the connection be as it was."""
        held = vars(self._connection)
        for name, value in self._kept.items():
            if value is self:
                held.pop(name, None)
            else:
                held[name] = value
        self._kept.clear()
        if self._token is not None:
            WIRED.reset(self._token)

    def packed(self, message: bytes) -> bytes:
        """*message*, compressed as the connection does; its number stays."""
        if self._compression is None or not _compressible(message):
            return message
        from pymongo import message as messages

        _, made = messages._compress(  # noqa: SLF001 - PyMongo offers it nowhere else
            _OP_MSG, message[_HEADER_BYTES:], self._compression
        )
        return made[: _ID_BYTES.start] + message[_ID_BYTES] + made[_ID_BYTES.stop :]

    send: Any
    receive: Any


class SyncWire(Wire):
    """Of a synchronous connection."""

    def send(self, message: bytes, max_doc_size: int) -> None:
        """Send what *message* becomes."""
        connection = self._connection
        changed = converse(self._ask, self._exchange.outgoing(message))
        type(connection).send_message(connection, self.packed(changed), max_doc_size)

    def receive(self, request_id: int | None) -> Any:
        """Receive a reply, and give what the application may see of it."""
        connection = self._connection
        reply = type(connection).receive_message(connection, request_id)
        if not self._exchange.awaits:
            return reply
        payload = bytes(reply.payload_document)
        reply.payload_document = converse(self._ask, self._exchange.incoming(payload))
        return reply

    def _ask(self, question: Question) -> Any:
        return asked(self._connection, *question)


class AsyncWire(Wire):
    """The asyncio twin of :class:`SyncWire`."""

    async def send(self, message: bytes, max_doc_size: int) -> None:
        """Send what *message* becomes."""
        connection = self._connection
        changed = await converse_async(self._ask, self._exchange.outgoing(message))
        await type(connection).send_message(connection, self.packed(changed), max_doc_size)

    async def receive(self, request_id: int | None) -> Any:
        """Receive a reply, and give what the application may see of it."""
        connection = self._connection
        reply = await type(connection).receive_message(connection, request_id)
        if not self._exchange.awaits:
            return reply
        payload = bytes(reply.payload_document)
        changed = await converse_async(self._ask, self._exchange.incoming(payload))
        reply.payload_document = changed
        return reply

    async def _ask(self, question: Question) -> Any:
        return await asked_async(self._connection, *question)


def _compressible(message: bytes) -> bool:
    """Whether the command of *message* may be compressed: those of authentication may not."""
    from pymongo.compression_support import _NO_COMPRESSION

    sent = Message.of(message)
    return sent is not None and sent.body[0].name.decode().lower() not in _NO_COMPRESSION
