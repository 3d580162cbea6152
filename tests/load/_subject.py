"""What load is put on: one store under the contract suite, and what is true of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from antipode_testing import ContractStore


class Subject(ABC):
    """One store, and a plain client of it that knows nothing of the library.

    Attributes:
        promotes: whether the reader's server can be made the primary, with writes lost.
        faults: what happens to replication and to the reader's connections.
        back_s: how long replication needs after a cut, in seconds: cut more often, it would never
            run, and no barrier would have the chance to pass early.
    """

    promotes: ClassVar[bool] = True
    faults: ClassVar[tuple[str, ...]] = ("held", "cut", "gone", "none")
    back_s: ClassVar[float] = 0.0

    @abstractmethod
    def open(self) -> AbstractContextManager[ContractStore]:
        """Two shims over the topology as it is now; closed with whatever they opened."""

    @abstractmethod
    def shown(self, key: str) -> int:
        """The number that the reader's server shows for *key* now, 0 where there is none.

        Asked by a plain client, past every proxy. Thread-safe.
        """

    def server_waits(self) -> int:
        """How many waits for barriers are left on the reader's server."""
        return 0

    def close(self) -> None:  # noqa: B027 - optional
        """Release the plain client."""
