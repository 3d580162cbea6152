"""How a store instruments one connection of a client: what its engines and Django's aliases use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import weakref


class Connections(Protocol):
    """A store's module ``_instrument``.

    Attributes:
        implied: connections that are instrumented because of their address.
    """

    implied: weakref.WeakSet[Any]

    def attach(self, connection: Any, shim: Any) -> None:
        """Let *connection* record for *shim*."""

    def detach(self, connection: Any) -> None:
        """Undo :meth:`attach`."""

    def release(self, connection: Any) -> None:
        """Undo what the address of *connection* implied."""

    def is_instrumented(self, connection: Any, datastore: str) -> bool:
        """Whether *connection* is instrumented for *datastore*.

        Raises:
            ConfigurationError: it is, for another one.
        """
        raise NotImplementedError

    def is_open(self, connection: Any) -> bool:
        """Whether *connection* is open still."""
        raise NotImplementedError
