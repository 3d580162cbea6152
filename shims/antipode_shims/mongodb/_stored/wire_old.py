"""PyMongo before 4.18, whose commands go past their connection's methods.

It sends them, and receives their replies, by functions of one module: these ask whose connection it
is. Nothing changes where no connection is observed.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import lru_cache
from typing import Any

#: The connection that is observed in this thread or task.
WIRED: ContextVar[Any] = ContextVar("antipode_mongodb_wired", default=None)

_DIRECT_SINCE = (4, 18)


@lru_cache(maxsize=1)
def direct() -> bool:
    """Whether commands go by their connection's methods."""
    import pymongo

    return tuple(pymongo.version_tuple[:2]) >= _DIRECT_SINCE


@lru_cache(maxsize=1)
def redirected() -> bool:
    """Let an older PyMongo use the methods of a connection that is observed; whether it is one."""
    if direct():
        return False
    from importlib import import_module

    _redirect(import_module("pymongo.synchronous.network"))
    _redirect_async(import_module("pymongo.asynchronous.network"))
    return True


def _is_link(link: Any, connection: Any) -> bool:
    """Whether *link* is what *connection* sends to: a socket, or what wraps one."""
    if connection is None:
        return False
    held = connection.conn
    return link is held or link is getattr(held, "get_conn", held)


def _redirect(module: Any) -> None:
    send, receive = module.sendall, module.receive_message

    def sendall(link: Any, data: bytes) -> None:
        connection = WIRED.get()
        if _is_link(link, connection):
            connection.send_message(data, 0)
        else:
            send(link, data)

    def receive_message(connection: Any, *args: Any) -> Any:
        if connection is WIRED.get():
            return connection.receive_message(args[0])
        return receive(connection, *args)

    module.sendall, module.receive_message = sendall, receive_message


def _redirect_async(module: Any) -> None:
    """The asyncio twin of :func:`_redirect`; PyMongo renamed the function in between."""
    name = "async_receive_message"
    name = name if hasattr(module, name) else "receive_message"
    send, receive = module.async_sendall, getattr(module, name)

    async def sendall(link: Any, data: bytes) -> None:
        connection = WIRED.get()
        if _is_link(link, connection):
            await connection.send_message(data, 0)
        else:
            await send(link, data)

    async def receive_message(connection: Any, *args: Any) -> Any:
        if connection is WIRED.get():
            return await connection.receive_message(args[0])
        return await receive(connection, *args)

    module.async_sendall = sendall
    setattr(module, name, receive_message)
