"""Reads that are made at the primary instead: with which client, and cursors that stay there."""

from __future__ import annotations

import threading
import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from antipode.shim import primary_place

if TYPE_CHECKING:
    from antipode import UnmetError
    from antipode_shims.redis._shim.base import BaseRedisShim

#: Why the read that is made here now was moved: a server that is no primary does not answer it.
MOVED: ContextVar[UnmetError | None] = ContextVar("antipode_redis_moved", default=None)
#: The commands whose replies begin with a cursor, and where that is among their arguments.
_CURSORS = {"SCAN": 1, "SSCAN": 2, "HSCAN": 2, "ZSCAN": 2}
#: The same as applications may spell them.
SCANS = frozenset(
    spelled
    for name in _CURSORS
    for text in (name, name.lower())
    for spelled in (text, text.encode())
)
#: Above every cursor of a server: what is more is a cursor of the primary.
AT_PRIMARY = 1 << 64
#: What two clients must have alike for one command to have one reply, with what is the default.
_AGREEING = {
    "db": 0,
    "decode_responses": False,
    "encoding": "utf-8",
    "encoding_errors": "strict",
    "protocol": 2,
    "legacy_responses": True,
}
#: Of a pool alone.
_OWN = ("maint_notifications", "orig_")


def difference(one: Any, other: Any) -> str | None:
    """The first setting in which two pools do not agree, so that replies would differ."""
    ours, theirs = one.connection_kwargs, other.connection_kwargs
    for name, default in _AGREEING.items():
        if _value(ours, name, default) != _value(theirs, name, default):
            return name
    return None


def _value(given: Any, name: str, default: Any) -> Any:
    found = given.get(name)
    return default if found is None else type(default)(found)


class Primaries:
    """The clients of primaries by the pools of the replicas that they stand in for."""

    def __init__(self) -> None:
        """None yet."""
        self._of: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def of(self, shim: BaseRedisShim, pool: Any) -> Any:
        """A client of the primary that rules name, like those on *pool*; None without one.

        It connects with what *pool* connects with, but to another address.
        """
        with self._lock:
            found = self._of.get(pool)
        if found is None and (made := _made(shim, pool)) is not None:
            with self._lock:
                found = self._of.setdefault(pool, made)
        return found


#: Of this process.
PRIMARIES = Primaries()


def _made(shim: BaseRedisShim, pool: Any) -> Any:
    arguments = pool.connection_kwargs
    if getattr(pool, "service_name", "") or "host" not in arguments:
        return None  # Sentinels and sockets say no address that could be another's.
    place = primary_place(shim.datastore, str(arguments.get("db") or 0))
    if place is None or not place[1]:
        return None
    kept = {name: value for name, value in arguments.items() if not name.startswith(_OWN)}
    kept |= {"host": place[0], "port": place[1]}
    is_async = "asyncio" in type(pool).__module__
    module = _module(is_async=is_async)
    client = module.Redis(
        connection_pool=module.ConnectionPool(
            connection_class=pool.connection_class, max_connections=pool.max_connections, **kept
        )
    )
    held = getattr(client, "_antipode", None)
    if held is None or (held.shim.datastore, held.shim.reads_from) != (shim.datastore, "primary"):
        return None
    _close_with(pool, client.connection_pool, is_async=is_async)
    return client


def _module(*, is_async: bool) -> Any:
    import redis
    import redis.asyncio

    return redis.asyncio if is_async else redis


def _close_with(pool: Any, other: Any, *, is_async: bool) -> None:
    """Have *other* close its connections when *pool* does."""
    original, weak = type(pool).disconnect, weakref.ref(pool)

    def disconnect(*args: Any, **options: Any) -> Any:
        other.disconnect(*args, **options)
        return original(weak(), *args, **options)

    async def disconnect_async(*args: Any, **options: Any) -> Any:
        await other.disconnect(*args, **options)
        return await original(weak(), *args, **options)

    pool.disconnect = disconnect_async if is_async else disconnect


def is_scan(args: Any) -> bool:
    """Whether a command's reply begins with a cursor."""
    return isinstance(args[0], (str, bytes)) and args[0] in SCANS


def cursor_of(args: Any) -> int:
    """The cursor of a command of :data:`SCANS`; 0 where it begins."""
    try:
        return int(args[_position(args)])
    except (IndexError, TypeError, ValueError):
        return 0  # The server refuses it.


def _position(args: Any) -> int:
    name = args[0].decode() if isinstance(args[0], bytes) else args[0]
    return _CURSORS[name.upper()]


def without_mark(args: Any) -> Any:
    """The command with its cursor as the primary gave it."""
    position = _position(args)
    return [*args[:position], cursor_of(args) - AT_PRIMARY, *args[position + 1 :]]


def marked(reply: Any) -> Any:
    """A reply of the primary whose cursor says that it is of the primary."""
    cursor, found = reply
    return type(reply)((int(cursor) + AT_PRIMARY, found)) if int(cursor) else reply
