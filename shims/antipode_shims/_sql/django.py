"""The connections of Django's database aliases.

Django opens a connection for each thread and announces each by a signal; its ORM, transactions and
tests stay as they are.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from antipode import ConfigurationError
from antipode.shim import register, shims_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .connections import Connections

ShimT = TypeVar("ShimT", bound=Any)


class AliasHooks(Generic[ShimT]):
    """What listens to the connections of one alias.

    Attributes:
        shim: what they record for.
    """

    def __init__(self, alias: str, shim: ShimT, connections: Connections) -> None:
        """Listen to nothing yet."""
        self.shim = shim
        self._alias = alias
        self._connections = connections
        self._held: list[Any] = []

    def created(self, sender: Any, connection: Any, **more: Any) -> None:
        """Django has opened a connection."""
        del sender, more
        if connection.alias == self._alias:
            self.take(connection.connection)

    def take(self, connection: Any) -> None:
        """Instrument a connection, and forget those that are closed."""
        ours = self._connections
        ours.release(connection)
        if not ours.is_instrumented(connection, self.shim.datastore):
            ours.attach(connection, self.shim)
        still = [one for one in self._held if ours.is_open(one) and one is not connection]
        self._held = [*still, connection]

    def release(self) -> None:
        """Leave all of them as they were."""
        for connection in self._held:
            self._connections.detach(connection)
        self._held = []


class Aliases(Generic[ShimT]):
    """The aliases of one store that this process has instrumented."""

    def __init__(self, store: str, vendor: str, connections: Connections) -> None:
        """None yet.

        Args:
            store: what its databases are called.
            vendor: what Django calls them.
            connections: how a connection of the store is instrumented.
        """
        self._store = store
        self._vendor = vendor
        self._connections = connections
        self._hooks: dict[str, tuple[AliasHooks[ShimT], Callable[[], None]]] = {}

    def wrapper(self, alias: str) -> Any:
        """Django's connection of *alias* in this thread, open or not.

        Raises:
            ConfigurationError: Django is missing, or the alias is of another store.
        """
        try:
            connections: Any = import_module("django.db").connections
        except ImportError as error:
            msg = "instrument_django needs Django: pip install Django"
            raise ConfigurationError(msg) from error
        wrapper: Any = connections[alias]
        if wrapper.vendor != self._vendor:
            msg = f"Django's {alias!r} is a database of {wrapper.vendor}, not of {self._store}"
            raise ConfigurationError(msg)
        return wrapper

    def instrument(
        self,
        alias: str,
        datastore: str,
        make: Callable[[], ShimT],
        begin: Callable[[], Callable[[], None]] = lambda: lambda: None,
    ) -> None:
        """Let *alias* record for what *make* returns, unless it does for *datastore*.

        Args:
            alias: of ``settings.DATABASES``.
            datastore: its name.
            make: what it records for.
            begin: changes the alias for connections that are opened from now on; what it returns
                undoes that.

        Raises:
            ConfigurationError: it does for another datastore.
        """
        wrapper = self.wrapper(alias)
        held = self._hooks.get(alias)
        if held is not None:
            shim = held[0].shim
            if shim.datastore != datastore:
                msg = f"Django's {alias!r} is instrumented as {shim.datastore!r} already"
                raise ConfigurationError(msg)
            if shim in shims_of(datastore):
                return
            self.uninstrument(alias)
        shim = make()
        register(shim)
        hooks = AliasHooks(alias, shim, self._connections)
        self._hooks[alias] = hooks, begin()
        _created().connect(hooks.created, weak=False, dispatch_uid=("antipode", alias))
        if wrapper.connection is not None:
            hooks.take(wrapper.connection)

    def uninstrument(self, alias: str) -> None:
        """Undo :meth:`instrument`. An alias that is not instrumented stays as it is."""
        hooks, undo = self._hooks.pop(alias, (None, None))
        if hooks is not None and undo is not None:
            _created().disconnect(dispatch_uid=("antipode", alias))
            hooks.release()
            undo()
            hooks.shim.close()


def _created() -> Any:
    """Django's signal of connections that are opened."""
    return import_module("django.db.backends.signals").connection_created
