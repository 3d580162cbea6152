"""``instrument_client``: existing code keeps its client and its calls."""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from antipode import ConfigurationError
from antipode.shim import (
    adopt,
    config,
    has_primary,
    named_client,
    register,
    shims_of,
    stored_names,
    switchable,
)

from ._clients.clients import AsyncClient, SyncClient
from ._clients.hooks import AsyncHooks, SyncHooks
from ._clients.primary import difference
from ._clients.redis_py import check_client
from ._clients.sentinel import settings_of
from ._shim.base import BaseRedisShim

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from antipode.shim import Barriers, OnRead, ReadsFrom

ClientT = TypeVar("ClientT")


class InstrumentedShim(BaseRedisShim):
    """What an instrumented client registers, or all those that one rule names."""

    #: What it was made of, for a client that is made alike once this one's is gone.
    made_of: object = None

    def store_lineages(self, patterns: tuple[str, ...]) -> None:
        """Store lineages with the values of the keys that *patterns* name."""
        from ._stored.lineages import StoredLineages

        reading = self.on_read == "merge"
        self.stored = StoredLineages(self.datastore, patterns, prefix=self.prefix, reading=reading)


#: Clients that are instrumented because of their address or pool: a call for one of them is new.
implied: weakref.WeakSet[Any] = weakref.WeakSet()
#: Pools of clients that were instrumented by a call.
pools: weakref.WeakKeyDictionary[Any, InstrumentedShim] = weakref.WeakKeyDictionary()


@switchable
def instrument_client(
    client: ClientT,
    *,
    datastore: str,
    reads_from: ReadsFrom = "primary",
    lineage: Literal["none", "beside"] = "none",
    keys: Collection[str] = (),
    on_read: OnRead = "merge",
    log_history: bool = False,
    one_server: bool | None = None,
    prefix: str = "ap:",
    barriers: Barriers | None = None,
    primary: Any = None,
) -> ClientT:
    """Let the writes of *client* enter the current lineage, and its reads wait for floors.

    Covered writes (:data:`COVERED_WRITES`), pipelines and transactions get ``INFO replication``
    in their own packet; results and exceptions stay redis-py's. A read under a floor is checked
    in its own round trip, and made again once the floor is met. What may write, scripts and
    unknown commands among it, is taken for a write. Later clients of its pool are like it.

    Args:
        client: a ``redis.Redis`` or ``redis.asyncio.Redis`` of redis-py 5 or later.
        datastore: the name that every service spells alike.
        reads_from: where its reads go.
        lineage: ``beside`` stores the current lineage in a companion key for each of *keys*,
            and lets their reads take it up; ``none`` does neither.
        keys: with ``beside``, Redis's own glob patterns, such as ``["post:*"]``, alike everywhere.
        on_read: ``merge`` adds what reads of *keys* find to the scope, ``ignore`` does not.
        log_history: after a promotion, note in ``antipode:log`` where the old log ended.
        one_server: whether its connections all go to one server, where ``at="now"`` can poll;
            None: as its pool shows. Say False where the address is a balancer or a proxy.
        prefix: of companion keys, whose changes the server pushes to waiting barriers.
        barriers: ``auto`` or ``explicit``, for this client; None: as configured.
        primary: for ``on_stale="primary"``, its instrumented client, alike; None: as rules say.

    Returns:
        The same object. Instrumenting it again changes nothing.

    Raises:
        ConfigurationError: a cluster client, ``beside`` without *keys* or the other way round,
            another datastore than before, or redis-py is missing.
    """
    is_async = check_client(client)
    names = stored_names(lineage, keys, datastore=datastore, option="keys")
    if _instrumented(client, datastore):
        return client
    options = _Options(reads_from, on_read, prefix, log_history, one_server, barriers, names)
    shim = _shim_of(client, datastore, options, primary)
    _lead(attach(client, shim, is_async=is_async), shim)
    return client


@dataclass(frozen=True, slots=True)
class _Options:
    """What one client is told otherwise than another, as for :func:`instrument_client`."""

    reads_from: ReadsFrom
    on_read: OnRead
    prefix: str
    log_history: bool
    one_server: bool | None
    barriers: Barriers | None
    names: tuple[str, ...]


def _shim_of(client: Any, datastore: str, options: _Options, primary: Any) -> InstrumentedShim:
    """The shim of one that is gone and was like *client*, else a new one."""
    settings = settings_of(client, options.reads_from)
    made_of = settings, options
    if primary is None and (left := _left(datastore, made_of)) is not None:
        return left
    made = InstrumentedShim(
        datastore,
        settings,
        reads_from=options.reads_from,
        on_read=options.on_read,
        prefix=options.prefix,
        log_history=options.log_history,
        one_server=options.one_server,
    )
    made.wait_by(options.barriers)
    made.primary = _primary_of(made, client, primary)
    if primary is None:
        made.made_of = made_of
    if options.names:
        made.store_lineages(options.names)
    register(made)
    return made


def _left(datastore: str, made_of: object) -> InstrumentedShim | None:
    """The shim of a client like this that is gone with its pool; None where there is none.

    Where each request makes a client of its own, those that live at a time have a shim each.
    """
    for shim in shims_of(datastore):
        if isinstance(shim, InstrumentedShim) and shim.made_of == made_of and not _leads(shim):
            return shim
    return None


def _leads(shim: InstrumentedShim) -> bool:
    """Whether a pool is left whose clients are of *shim*."""
    return any(each is shim for each in tuple(pools.values()))


def _primary_of(shim: InstrumentedShim, client: Any, primary: Any) -> Any:
    """The client for reads that would be stale at the replica of *shim*; None without one.

    Raises:
        ConfigurationError: it is no client of that primary, its replies differ, or it is missing
            where it is needed.
    """
    name = shim.datastore
    if primary is None:
        automatic = (shim.barriers or config().barriers) == "auto"
        moves = automatic and shim.reads_from == "replica" and config().on_stale == "primary"
        if moves and not has_primary(name):
            msg = f"on_stale='primary' needs primary=, an instrumented client of {name!r}'s primary"
            shim.close()
            raise ConfigurationError(msg)
        return None
    held = getattr(primary, "_antipode", None)
    same = held is not None and (held.shim.datastore, held.shim.reads_from) == (name, "primary")
    if (
        shim.reads_from != "replica"
        or not same
        or check_client(primary) is not check_client(client)
    ):
        msg = (
            f"primary= takes an instrumented client of {name!r} with reads_from='primary', of the "
            "same API, for a client with reads_from='replica'"
        )
        shim.close()
        raise ConfigurationError(msg)
    if differs := difference(primary.connection_pool, client.connection_pool):
        shim.close()
        msg = f"primary= differs from the client of the replica of {name!r} in {differs}="
        raise ConfigurationError(msg)
    return primary


def _lead(pool: Any, shim: InstrumentedShim) -> None:
    """Have clients that are made on *pool* instrumented, too."""
    pools[pool] = shim
    for listener in pool_listeners:
        listener()


#: Called when a pool was added.
pool_listeners: list[Callable[[], None]] = []


def attach(client: Any, shim: InstrumentedShim, *, is_async: bool) -> Any:
    """Let *client* record for *shim*; returns its pool."""
    pool = client.connection_pool
    if is_async:
        adopt(client, AsyncClient, AsyncHooks(shim, client))
    else:
        adopt(client, SyncClient, SyncHooks(shim, client))
    named_client(client)
    if "get_connection" not in vars(pool):
        pool.get_connection = _watched(pool, shim)
    return pool


#: Whose calls take connections for clients, which are instrumented.
_CLIENTS_OWN = ("redis.", "antipode_shims.redis.")


def _watched(pool: Any, shim: InstrumentedShim) -> Callable[..., Any]:
    """``pool.get_connection``, which notes who takes a connection without a client."""
    original, weak = type(pool).get_connection, weakref.ref(pool)

    def get_connection(*args: Any, **options: Any) -> Any:
        caller = sys._getframe(1).f_globals.get("__name__", "")  # noqa: SLF001
        if not caller.startswith(_CLIENTS_OWN):
            shim.unsampled("a connection was taken from the pool, of which nothing is seen")
        return original(weak(), *args, **options)

    return get_connection


def _instrumented(client: Any, datastore: str) -> bool:
    """Whether *client* is instrumented for *datastore*; not for a shim that was unregistered.

    Raises:
        ConfigurationError: it is, for another one.
    """
    held = getattr(client, "_antipode", None)
    if held is not None and client in implied:
        implied.discard(client)
        detach(client)
        return False
    if held is not None and held.shim.datastore != datastore:
        msg = f"this client is instrumented as {held.shim.datastore!r} already"
        raise ConfigurationError(msg)
    if held is not None and held.shim not in shims_of(datastore):
        uninstrument_client(client)
        return False
    return held is not None


def uninstrument_client(client: Any) -> None:
    """Undo :func:`instrument_client`. A client that is not instrumented stays as it is.

    So do those that were made on its pool meanwhile.
    """
    hooks = getattr(client, "_antipode", None)
    if hooks is None:
        return
    detach(client)
    if client in implied:
        implied.discard(client)
        return
    pools.pop(client.connection_pool, None)
    for other in [each for each in implied if each._antipode.shim is hooks.shim]:  # noqa: SLF001
        detach(other)
        implied.discard(other)
    if not _leads(hooks.shim):
        hooks.shim.close()


def detach(client: Any) -> None:
    """Undo :func:`attach`, once no read waits on *client*."""
    client._antipode.staying.leave()  # noqa: SLF001
