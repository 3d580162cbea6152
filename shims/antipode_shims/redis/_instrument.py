"""``instrument_client``: existing code keeps its client and its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

from antipode import ConfigurationError
from antipode.shim import adopt, disown, register, shims_of, stored_names, switchable

from ._clients.async_hooks import AsyncClient, AsyncHooks
from ._clients.hooks import SyncClient, SyncHooks
from ._clients.redis_py import check_client
from ._clients.sentinel import settings_of
from ._shim.base import BaseRedisShim

if TYPE_CHECKING:
    from collections.abc import Collection

    from antipode.shim import Barriers, OnRead, ReadsFrom

ClientT = TypeVar("ClientT")


class InstrumentedShim(BaseRedisShim):
    """What an instrumented client registers."""

    def store_lineages(self, patterns: tuple[str, ...]) -> None:
        """Store lineages with the values of the keys that *patterns* name."""
        from ._stored.lineages import StoredLineages

        reading = self.on_read == "merge"
        self.stored = StoredLineages(self.datastore, patterns, prefix=self.prefix, reading=reading)


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
) -> ClientT:
    """Let the writes of *client* enter the current lineage, and its reads wait for floors.

    Covered writes (:data:`COVERED_WRITES`), pipelines and transactions get ``INFO replication``
    in their own packet; results and exceptions stay redis-py's. A read under a floor is checked
    in its own round trip, and made again once the floor is met. What may write, scripts and
    unknown commands among it, is taken for a write.

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
    instrumented = InstrumentedShim(
        datastore,
        settings_of(client, reads_from),
        reads_from=reads_from,
        on_read=on_read,
        prefix=prefix,
        log_history=log_history,
        one_server=one_server,
    )
    instrumented.wait_by(barriers)
    if names:
        instrumented.store_lineages(names)
    register(instrumented)
    _adopt(client, instrumented, is_async=is_async)
    return client


def _adopt(client: Any, shim: InstrumentedShim, *, is_async: bool) -> None:
    if is_async:
        adopt(client, AsyncClient, AsyncHooks(shim, client.connection_pool))
    else:
        adopt(client, SyncClient, SyncHooks(shim, client.connection_pool))


def _instrumented(client: Any, datastore: str) -> bool:
    """Whether *client* is instrumented for *datastore*; not for a shim that was unregistered.

    Raises:
        ConfigurationError: it is, for another one.
    """
    held = getattr(client, "_antipode", None)
    if held is not None and held.shim.datastore != datastore:
        msg = f"this client is instrumented as {held.shim.datastore!r} already"
        raise ConfigurationError(msg)
    if held is not None and held.shim not in shims_of(datastore):
        uninstrument_client(client)
        return False
    return held is not None


def uninstrument_client(client: Any) -> None:
    """Undo :func:`instrument_client`. A client that is not instrumented stays as it is."""
    hooks = getattr(client, "_antipode", None)
    if hooks is None:
        return
    disown(client, AsyncClient if isinstance(hooks, AsyncHooks) else SyncClient)
    hooks.shim.close()
