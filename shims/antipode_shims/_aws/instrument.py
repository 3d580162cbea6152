"""How a client gets its handlers, and loses them."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode.shim import adopt, disown, register, shims_of

from . import is_async
from .hooks import SyncClient, SyncHooks

if TYPE_CHECKING:
    from antipode.shim import Barriers, Shim

    from .call import BaseCalls
    from .shim import RegionShim

#: The attribute of an instrumented client that has its hooks.
_ATTRIBUTE = "_antipode"
#: Clients that are instrumented because of their address: a call for one of them is new.
implied: weakref.WeakSet[Any] = weakref.WeakSet()
#: By datastore: what was registered for a client, and that client while it lives.
_registered: dict[str, list[tuple[Shim, weakref.ref[Any]]]] = {}
_lock = threading.Lock()


def register_for(client: Any, shim: Shim) -> None:
    """Register *shim* while *client* lives: some programs make one for each request.

    What was registered for clients that are gone is closed here, except what polls for the others:
    a barrier may be waiting at it.
    """
    register(shim)
    gone: list[Shim] = []
    with _lock:
        kept = [(shim, weakref.ref(client))]
        for each, made_for in _registered.get(shim.datastore, ()):
            polls = each.can_poll and each in shims_of(shim.datastore)
            if polls or made_for() is not None:
                kept.append((each, made_for))
            else:
                gone.append(each)
        _registered[shim.datastore] = kept
    for each in gone:
        each.close()


def is_instrumented(client: Any, datastore: str) -> bool:
    """Whether *client* is instrumented for *datastore*; not for a shim that was unregistered.

    Raises:
        ConfigurationError: it is, for another one.
    """
    if client in implied:
        uninstrument(client)
    held = vars(client).get(_ATTRIBUTE)
    if held is None:
        return False
    if held.shim.datastore != datastore:
        msg = f"this client is instrumented as {held.shim.datastore!r} already"
        raise ConfigurationError(msg)
    if held.shim not in shims_of(datastore):
        uninstrument(client)
        return False
    return True


def instrument(
    client: Any, shim: RegionShim, calls: BaseCalls[Any, Any], *, barriers: Barriers | None
) -> None:
    """Register *shim*, and let *calls* follow those of *client*.

    Raises:
        ConfigurationError: *barriers* is none of its values.
    """
    shim.wait_by(barriers)
    register_for(client, shim)
    mixin, hooks_class = _classes(client)
    hooks = hooks_class(shim, client, calls)
    hooks.register()
    adopt(client, mixin, hooks)


def _classes(client: Any) -> tuple[type, type]:
    """What is mixed into the class of *client*, and what its hooks are."""
    if is_async(client):
        from .async_hooks import AsyncClient, AsyncHooks

        return AsyncClient, AsyncHooks
    return SyncClient, SyncHooks


def uninstrument(client: Any) -> None:
    """Undo :func:`instrument`. A client that is not instrumented stays as it is."""
    implied.discard(client)
    hooks = vars(client).get(_ATTRIBUTE)
    if hooks is not None:
        disown(client, _classes(client)[0])
        hooks.unregister()
        hooks.shim.close()
