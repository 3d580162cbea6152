"""Which shims this process has, and which of them checks a server."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from antipode._lineage.errors import ConfigurationError
from antipode._runtime.config import config
from antipode._runtime.metrics import log_once

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from antipode._lineage.errors import ServerName
    from antipode._runtime.observers import Client

    from .store import Store
    from .watcher import Watcher

_lock = threading.Lock()
_shims: dict[str, tuple[Store, ...]] = {}


def register(shim: Store) -> None:
    """Make *shim* known to barriers. Registering it again changes nothing.

    A primary and a replica of one datastore may both be registered: barriers wait at the
    replica. With two replicas ``barrier(at="now")`` is a :class:`ConfigurationError`, because
    nobody could say which of them the next read asks. A warning says once for each datastore that
    automatic barriers, where they are configured, hold none of its reads.
    """
    with _lock:
        held = _shims.get(shim.datastore, ())
        if shim not in held:
            _shims[shim.datastore] = (*held, shim)
    if not shim.floors and config().barriers == "auto":
        message = (
            "no read of %r waits automatically: its clients hold none, whatever barriers= says"
        )
        log_once("automatic", shim.datastore, None, message, shim.datastore)


def unregister(datastore: str) -> None:
    """Forget the shims of *datastore* and close what they hold. Unknown names change nothing."""
    for shim in shims_of(datastore):
        shim.close()


_retiring: ContextVar[bool] = ContextVar("antipode_retiring", default=False)


@contextmanager
def retiring() -> Iterator[None]:
    """Let those who wait at shims that are closed within wait on, until they are done."""
    token = _retiring.set(True)
    try:
        yield
    finally:
        _retiring.reset(token)


def unregister_shim(shim: Store) -> None:
    """Forget *shim* and stop watching for it, without closing it."""
    with _lock:
        left = tuple(other for other in _shims.get(shim.datastore, ()) if other is not shim)
        if left:
            _shims[shim.datastore] = left
        else:
            _shims.pop(shim.datastore, None)
    if _retiring.get():
        shim.watcher.retire()
    else:
        shim.watcher.close()


def shims_of(datastore: str) -> tuple[Store, ...]:
    """The registered shims of *datastore*, in the order of their registration."""
    return _shims.get(datastore, ())


def registered() -> tuple[str, ...]:
    """The names of all datastores with a shim, sorted."""
    return tuple(sorted(_shims))


def holds_any() -> bool:
    """Whether the reads of any registered client can be held back."""
    return any(shim.floors for shims in tuple(_shims.values()) for shim in shims)


def waits_for_any() -> bool:
    """Whether there is any datastore whose writes this process can wait for."""
    return any(shim.waitable for shims in tuple(_shims.values()) for shim in shims)


def primaries_of(datastore: str) -> tuple[Store, ...]:
    """The shims that reach a primary of *datastore*, one for each server.

    Several where a fail-over left a client at the old primary, which may still answer as one.
    """
    found: dict[Hashable, Store] = {}
    for shim in shims_of(datastore):
        if shim.fences:
            found.setdefault(shim if shim.claimed is None else shim.claimed, shim)
    return tuple(found.values())


def looking_shim(datastore: str) -> Store | None:
    """The shim to wait at for ``at="now"``: the replica where there is one, else the primary.

    None where no shim of *datastore* can poll.

    Raises:
        ConfigurationError: two replicas are registered under one name, or two primaries and no
            replica.
    """
    shims = [shim for shim in shims_of(datastore) if shim.can_poll]
    replicas = [shim for shim in shims if shim.reads_from == "replica"]
    servers = replicas or shims
    if len(servers) > 1:
        kind, advice = ("replicas", "")
        if not replicas:
            kind, advice = "primaries", "say reads_from='replica' where one is a replica, "
        if len({shim.server_name or shim for shim in servers}) == 1:
            # Positions are the server's; promises are records in one of its databases.
            kind, advice = "databases of one server", ""
        msg = (
            f"{len(servers)} {kind} are registered as {datastore!r}: at='now' cannot know which "
            f"one the next read asks; {advice}use at='read', or give each its own datastore name"
        )
        raise ConfigurationError(msg)
    return next(iter(servers), None)


def reads_elsewhere(datastore: str) -> bool:
    """Whether a client here reads replicas of which only a read shows which one answers.

    Then what a primary shows proves nothing of them: their reads wait, by floors.
    """
    return any(
        shim.reads_from == "replica" and shim.floors and not shim.can_poll and shim.claimed is None
        for shim in shims_of(datastore)
    )


def is_seen_by_reads_alone(datastore: str) -> bool:
    """Whether it has such replicas, and no shim that polls one: only a primary could be asked."""
    if not reads_elsewhere(datastore):
        return False
    looking = looking_shim(datastore)
    return looking is not None and looking.reads_from != "replica"


def shared_watcher(client: Client) -> Watcher | None:
    """What polls the server that *client* reads from; None where another may be polled."""
    try:
        looking = looking_shim(client.datastore)
    except ConfigurationError:
        return None
    if looking is None:
        return None
    same = looking is client or (client.claimed is not None and client.claimed == looking.claimed)
    return looking.watcher if same else None


def server_of(datastore: str) -> ServerName | None:
    """Where barriers at ``now`` wait for *datastore*; None where that is not known."""
    try:
        looking = looking_shim(datastore)
    except ConfigurationError:
        return None
    return None if looking is None else looking.server_name


def follows(client: Client, *, timeout_s: float) -> bool:
    """Whether the server that *client* reads from says that it is a replica; False if unknown.

    Connects to it, and may block for about *timeout_s* seconds.
    """
    shim = next((shim for shim in shims_of(client.datastore) if shim is client), None)
    if shim is None:
        return False
    try:
        endpoint = shim.open_endpoint(timeout_s=timeout_s)
        try:
            return endpoint.follows(timeout_s=timeout_s)
        finally:
            endpoint.close()
    except Exception:  # noqa: BLE001 - whatever a client library raises, nothing is known then
        return False


_claims_lock = threading.Lock()
_claims: dict[Hashable, list[Store]] = {}


def claim(where: Hashable, shim: Store) -> None:
    """Let *shim* poll *where*, unless another one of this process does already.

    A service has a sync and an asyncio client of one replica, or a shim as well: for
    barriers they are one server, not several replicas under one name.
    """
    with _claims_lock:
        held = _claims.setdefault(where, [])
        held.append(shim)
        shim.can_poll = held[0] is shim


def release(where: Hashable, shim: Store) -> None:
    """Give the claim up; the next one polls. Idempotent."""
    with _claims_lock:
        held = _claims.get(where, [])
        if shim in held:
            held.remove(shim)
        if held:
            held[0].can_poll = True
        else:
            _claims.pop(where, None)
