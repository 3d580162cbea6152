"""Two regions of one store under a test's control, whatever runs the servers."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from antipode import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from ._address import Address
    from ._proxy import LagProxy


class Server(Protocol):
    """One running server and the control over its process.

    Attributes:
        address: where clients connect.
        endpoints: further ports by name, such as ``management``.
    """

    address: Address
    endpoints: Mapping[str, Address]

    @property
    def running(self) -> bool:
        """Whether its process exists, suspended included."""
        ...

    def suspend(self) -> None:
        """Freeze it: connections stay and nothing answers."""
        ...

    def resume_process(self) -> None:
        """Let it run again after `suspend`."""
        ...

    def stop(self) -> None:
        """End it politely; its address and data are kept for `restart`."""
        ...

    def kill(self) -> None:
        """End it at once; its address and data are kept for `restart`."""
        ...

    def restart(self, *, graceful: bool = True, wipe: bool = False) -> None:
        """Start it again at the same address, ended politely or at once before.

        Args:
            graceful: end it politely if it runs.
            wipe: throw its data away in between.
        """
        ...

    def run_tool(self, *command: str) -> str:
        """Run a tool that comes with the store, next to the server; what it printed.

        Args:
            command: the tool, such as ``rabbitmqctl``, and its arguments.

        Raises:
            ServerFailed: the tool failed.
        """
        ...

    def close(self) -> None:
        """End it for good and remove its data."""
        ...


class Provider(Protocol):
    """What runs servers: processes of this machine, or anything else with addresses."""

    @property
    def host(self) -> str:
        """The address of this machine that its servers reach, once one was started."""
        ...

    def start(self, store: str, name: str, config: Mapping[str, str]) -> Server:
        """Start one server and return once it answers.

        Args:
            store: by the name of its shim, such as ``redis``.
            name: of the server in its topology, for messages.
            config: settings in the store's own words, over the provider's defaults.

        Raises:
            ServerMissing: nothing here can run this store.
            ServerFailed: it did not start.
        """
        ...

    def link(self, upstream: Address) -> LagProxy:
        """Make a proxy to one of its servers, at an address that its other servers reach."""
        ...


class Topology(Protocol):
    """Two regions of one store: writes go to the primary and reach the replica after the lag.

    A context manager: the servers run inside the ``with`` block. `set_lag` and the faults touch
    replication alone, for clients connect straight to the servers. A place is an address, or a file
    where the store is one.
    """

    store: ClassVar[str]

    @property
    @abstractmethod
    def primary(self) -> Address | Path:
        """Where writes go now. Ask again after `failover` and `reset`."""

    @property
    @abstractmethod
    def replica(self) -> Address | Path:
        """Where the other region reads. Ask again after `failover` and `reset`."""

    @abstractmethod
    def url(self, server: Any = None) -> str:
        """How the store's clients name *server*, a place of this topology; default the primary."""

    @abstractmethod
    def start(self) -> None:
        """Start the servers; return once replication runs."""

    @abstractmethod
    def set_lag(self, ms: float) -> None:
        """Delay replication by this many milliseconds, what is on its way included."""

    @abstractmethod
    def pause(self) -> None:
        """Hold replication; its connections stay open."""

    @abstractmethod
    def resume(self) -> None:
        """Let what `pause` held go on."""

    @abstractmethod
    def cut(self) -> None:
        """Partition the regions: connections are closed and new ones refused."""

    @abstractmethod
    def heal(self) -> None:
        """End the partition; the replica connects again automatically, soon."""

    @abstractmethod
    def failover(self, *, lose_unreplicated: bool = True) -> None:
        """Make the replica the primary; return when it is.

        Args:
            lose_unreplicated: whether the writes still on their way are lost with the link, or
                first waited for.
        """

    @abstractmethod
    def reseed(self) -> None:
        """Throw the replica's data away and have it copied again."""

    @abstractmethod
    def reset(self) -> None:
        """Undo every fault for the next test; after a failover the servers are built again."""

    @abstractmethod
    def close(self) -> None:
        """Stop every server and remove its data. Idempotent."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether no server of this topology runs any more."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:  # an interrupt as well: nothing is left
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class ServerTopology(Topology):
    """A topology of servers, which are delayed as they were at the beginning after each `reset`."""

    _lag_ms: float = 0.0

    def _lag_from(self, lag_ms: float) -> None:
        """Begin with a lag of *lag_ms* milliseconds, and return to it at `reset`.

        Raises:
            ConfigurationError: it is no lag.
        """
        if not 0 <= lag_ms < float("inf"):
            raise ConfigurationError(f"a lag is a number of milliseconds, 0 or more: {lag_ms!r}")
        self._lag_ms = lag_ms

    def _lag_as_begun(self) -> None:
        """Delay replication as at the beginning, once it runs undisturbed."""
        if self._lag_ms:
            self.set_lag(self._lag_ms)
