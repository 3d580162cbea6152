"""What the consumer of a message depends on, and what its receipts learn by it. No I/O."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .headers import own_promise, received

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from antipode import Lineage, WriteId

    from .ledger import Ledger


def taken(
    headers: Mapping[str, Any], datastore: str, ledgers: Iterable[Ledger | None]
) -> tuple[Lineage, WriteId | None]:
    """What a message depends on without itself, and its own write; *ledgers* learn of both."""
    lineage, write = received(headers, datastore)
    for ledger in ledgers:
        fulfilled_by(headers, ledger, datastore)
        if write is not None:
            deliver(ledger, write, lineage)
    return lineage, write


def fulfilled_by(headers: Mapping[str, Any] | None, ledger: Ledger | None, datastore: str) -> None:
    """Inform the receipts of *datastore* which promise a message fulfils that was received here."""
    if ledger is None:
        return
    with suppress(ValueError):  # Counted where the tap sees it.
        promise = own_promise(headers)
        if promise is not None and promise.datastore == datastore:
            ledger.fulfil(promise)


def deliver(ledger: Ledger | None, write: WriteId, lineage: Lineage) -> None:
    """Inform the receipts that a message was received here, so that it is met."""
    if ledger is None:
        return
    earlier = (
        int(other.version)
        for other in lineage
        if (other.datastore, other.key) == (write.datastore, write.key)
        and isinstance(other.version, int)
    )
    ledger.deliver(write, after=max(earlier, default=0))
