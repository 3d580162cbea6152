"""One server of a topology with one primary, and what a test has done to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import Address
    from antipode_testing._proxy import LagProxy
    from antipode_testing._topology import Server


@dataclass
class Node(ABC):
    """A server, whether it is frozen, and its settings.

    Attributes:
        server: the process.
        suspended: whether its process is frozen.
        changed: settings to restore, with the values they had.
    """

    server: Server
    suspended: bool = field(default=False, kw_only=True)
    changed: dict[str, Any] = field(default_factory=dict[str, Any], kw_only=True)

    @property
    def address(self) -> Address:
        """Where clients connect."""
        return self.server.address

    @abstractmethod
    def settings(self, *names: str) -> dict[str, Any]:
        """Read settings."""

    @abstractmethod
    def apply(self, settings: Mapping[str, Any]) -> None:
        """Change settings."""

    def change(self, settings: Mapping[str, Any]) -> None:
        """Change settings until `restore`."""
        self.changed = self.settings(*settings) | self.changed
        self.apply(settings)

    def restore(self) -> None:
        """Undo what `change` did."""
        self.apply(self.changed)
        self.changed = {}

    def suspend(self) -> None:
        """Freeze the process."""
        self.server.suspend()
        self.suspended = True

    def resume(self) -> None:
        """Let a frozen process run again."""
        self.server.resume_process()
        self.suspended = False

    def restart(self, *, graceful: bool, wipe: bool = False) -> None:
        """Start the process again at its address, with the settings it began with."""
        self.server.restart(graceful=graceful, wipe=wipe)
        self.suspended = False
        self.changed = {}

    @abstractmethod
    def close(self) -> None:
        """Stop the server and its proxy."""

    def _require_awake(self) -> None:
        """Refuse to ask a frozen process, which would never answer."""
        if self.suspended:
            raise ConfigurationError(f"the server at {self.address} is suspended: resume it first")


@dataclass
class FedNode(Node):
    """A server that copies through a proxy of its own.

    Attributes:
        feed: that proxy; None for a primary that never was a replica.
    """

    feed: LagProxy | None = field(default=None, kw_only=True)

    @abstractmethod
    def position(self) -> Any:
        """How far its history reaches, all it has copied included."""

    @abstractmethod
    def await_following(self, primary: Any, *, timeout_s: float) -> None:
        """Return once this replica follows that very primary."""

    @abstractmethod
    def await_position(self, position: Any, *, timeout_s: float) -> None:
        """Return once this replica has applied its primary's history up to a position."""

    def close(self) -> None:
        """Stop the server and its proxy."""
        if self.feed is not None:
            self.feed.close()
        self.server.close()
