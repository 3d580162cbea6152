"""What both APIs of Table 2, synchronous and asyncio, have in common: receipts and messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, Lineage
from antipode.shim import Endpoint, OnRead, ReadsFrom, Shim, Unreachable, record_read
from antipode_shims._messages.consumed import deliver, fulfilled_by
from antipode_shims._messages.headers import received
from antipode_shims._messages.ledger import Ledger
from antipode_shims._messages.receipts import ReceiptsEndpoint

from ._endpoint.tap import Receipts, Tap

if TYPE_CHECKING:
    from antipode_shims._messages.publisher import SequenceBy


@dataclass(frozen=True, slots=True)
class Delivery:
    """One consumed message.

    Attributes:
        value: its body.
        lineage: what it depends on, itself included.
        key: the routing key it was published with.
        redelivered: whether it was delivered before and not acknowledged.
    """

    value: bytes
    lineage: Lineage
    key: str
    redelivered: bool


class BaseRabbitMQShim(Shim):
    """One broker as one process sees it, without the connections of its writes and reads.

    Attributes:
        exchange: where it publishes.
        queue: what it reads from, unless named.
        ledger: the receipts; None where the datastore has none.
    """

    def __init__(
        self,
        datastore: str,
        connection: Any,
        *,
        exchange: str = "",
        queue: str | None = None,
        receipts: Receipts | bool | None = None,
        sequence_by: SequenceBy = "exchange",
        reads_from: ReadsFrom = "primary",
        on_read: OnRead = "merge",
    ) -> None:
        """Adopt the options, and listen if receipts are wanted; registers nothing."""
        super().__init__(datastore, reads_from=reads_from)
        if on_read not in ("merge", "ignore"):
            msg = f"on_read must be 'merge' or 'ignore', not {on_read!r}"
            raise ConfigurationError(msg)
        self.exchange = exchange
        self.queue = queue
        self._merges = on_read == "merge"
        self._sequence_by: SequenceBy = sequence_by
        given: object = receipts
        if given is not None and not isinstance(given, (bool, Receipts)):
            msg = f"receipts must be True, None or Receipts(...), not {receipts!r}"
            raise ConfigurationError(msg)
        self.ledger: Ledger | None = None
        self._tap: Tap | None = None
        self._listen(connection, Receipts() if receipts is True else receipts or None)

    def _listen(self, connection: Any, wanted: Receipts | None) -> None:
        self.waitable = self.can_poll = self.promises = wanted is not None
        if wanted is None:
            return
        self.ledger = Ledger(gap_age_s=wanted.gap_age_s)
        if wanted.tap:
            self._tap = Tap(
                connection,
                exchange=self.exchange,
                bindings=tuple(wanted.bindings),
                ledger=self.ledger,
                datastore=self.datastore,
            )
            self._tap.start()

    def hears(self, exchange: str) -> bool:
        """Whether the receipts can show what is published to *exchange*."""
        return self._tap is None or exchange == self.exchange

    def _take(self, headers: Any) -> Lineage:
        """What the consumer of a message depends on, the message itself included.

        Only the receipts of this very broker learn of it: another region's may be registered
        under the same name.
        """
        lineage, write = received(headers, self.datastore)
        fulfilled_by(headers, self.ledger, self.datastore)
        if write is None:
            return lineage
        deliver(self.ledger, write, lineage)
        return lineage.append(write)

    def _read(self, headers: Any) -> Lineage:
        """What a ``read`` gives for a message, after merging it into the scope."""
        lineage = self._take(headers)
        if self._merges:
            record_read(lineage)
        return lineage

    def _queue_name(self, queue: str | None) -> str:
        name = queue or self.queue
        if not name:
            msg = f"which queue of {self.datastore!r}? pass it, or queue=... to shim()"
            raise ConfigurationError(msg)
        return name

    def open_endpoint(self, *, timeout_s: float) -> Endpoint:  # noqa: ARG002
        """What barriers poll; opens nothing."""
        if self.ledger is None:
            msg = f"{self.datastore!r} has no receipts"
            raise Unreachable(msg)
        return ReceiptsEndpoint(self.ledger, self._tap)

    def close(self) -> None:
        """Unregister and end the tap. Idempotent."""
        super().close()
        if self._tap is not None:
            self._tap.close()
