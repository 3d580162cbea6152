"""How a client gets its handlers, and loses them."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode.shim import register, shims_of

from . import is_async
from .hooks import SyncHooks

if TYPE_CHECKING:
    from antipode.shim import Barriers

    from .call import BaseCalls
    from .shim import RegionShim

#: The attribute of an instrumented client that has its hooks.
_ATTRIBUTE = "_antipode"
#: Clients that are instrumented because of their address: a call for one of them is new.
implied: weakref.WeakSet[Any] = weakref.WeakSet()


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
    register(shim)
    if is_async(client):
        from .async_hooks import AsyncHooks

        hooks: Any = AsyncHooks(shim, client, calls)
    else:
        hooks = SyncHooks(shim, client, calls)
    hooks.register()
    setattr(client, _ATTRIBUTE, hooks)


def uninstrument(client: Any) -> None:
    """Undo :func:`instrument`. A client that is not instrumented stays as it is."""
    implied.discard(client)
    hooks = vars(client).pop(_ATTRIBUTE, None)
    if hooks is not None:
        hooks.unregister()
        hooks.shim.close()
