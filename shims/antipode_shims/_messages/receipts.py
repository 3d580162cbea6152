"""What barriers ask: which publications were heard in this region."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from antipode import Status
from antipode.shim import Endpoint, Observation, Wake, count, log_once

from .headers import own_promise, own_write

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from antipode import Promise, WriteId

    from .ledger import Ledger

_NOT_RECEIVED = "no consumer of this process has received it"
_Item = TypeVar("_Item")


class Tap(Protocol):
    """What listens to a broker for receipts.

    Attributes:
        queue: what distinguishes the present connection from earlier ones; empty without one.
    """

    queue: str

    @property
    def deaf(self) -> str:
        """Why nothing is heard at present; empty while it listens."""
        ...

    @property
    def unseen(self) -> str:
        """Why a publication may not have been seen."""
        ...


def hear(ledger: Ledger, headers: Any, datastore: str) -> None:
    """Note a message that a tap of *datastore* was shown, by its *headers*."""
    try:
        promise = own_promise(headers)
    except ValueError as error:
        _unreadable(datastore, "promise", "which promise it fulfils", error)
    else:
        if promise is not None and promise.datastore == datastore:
            ledger.fulfil(promise)
    try:
        write = own_write(headers)
    except ValueError as error:
        _unreadable(datastore, "tap", "its own name", error)
        return
    if write is not None and write.datastore == datastore:
        ledger.see(write)


def _unreadable(datastore: str, subject: str, what: str, error: ValueError) -> None:
    count("unreadable", datastore)
    message = "a publication in %r states %s unreadably (%s)"
    log_once("unreadable", datastore, subject, message, datastore, what, error)


class ReceiptsEndpoint(Endpoint):
    """Judges by what was seen: polling costs no round trip, and what is seen wakes."""

    # ``pinned`` stays False: a publication that this process received is visible though those
    # before it may not be.

    def __init__(self, ledger: Ledger, tap: Tap | None) -> None:
        """Judge by *ledger*, which *tap* fills; without one consumers do."""
        self._ledger = ledger
        self._tap = tap
        self._changes = -1

    def observe(self, writes: Collection[WriteId], *, timeout_s: float) -> Observation:  # noqa: ARG002
        """Judge by what was seen; takes no time."""
        self._changes = self._ledger.changes
        judged = self._explained(self._ledger.judge(writes))
        return Observation(
            self._server,
            {write: status for write, (status, _) in judged.items()},
            causes={write: cause for write, (_, cause) in judged.items() if cause},
        )

    def promised(self, promises: Collection[Promise], *, timeout_s: float) -> Observation:  # noqa: ARG002
        """Search for what was seen to fulfil *promises*; takes no time."""
        self._changes = self._ledger.changes
        judged = self._explained(self._ledger.judge_promises(promises))
        return Observation(
            self._server,
            {},
            promises={promise: status for promise, (status, _) in judged.items()},
            promise_causes={promise: cause for promise, (_, cause) in judged.items() if cause},
        )

    def _explained(
        self, judged: Mapping[_Item, tuple[Status, str]]
    ) -> dict[_Item, tuple[Status, str]]:
        """*judged*, with the reasons that this endpoint knows: deaf, or listening elsewhere."""
        deaf, unseen = "", _NOT_RECEIVED
        if self._tap is not None:
            deaf, unseen = self._tap.deaf, self._tap.unseen

        def explained(status: Status, cause: str) -> tuple[Status, str]:
            if status is Status.VISIBLE:
                return status, ""
            if deaf:
                return Status.UNREACHABLE, deaf
            return status, unseen if status is Status.NOT_YET else cause

        return {item: explained(*found) for item, found in judged.items()}

    @property
    def _server(self) -> str:
        return "consumers" if self._tap is None else self._tap.queue

    def pause(self, timeout_s: float, wake: Wake) -> None:
        """Wait until something is seen, *wake*, or *timeout_s* seconds have passed."""
        self._ledger.subscribe(wake)
        try:
            if self._ledger.changes == self._changes:
                wake.wait(timeout_s)
        finally:
            self._ledger.unsubscribe(wake)

    def close(self) -> None:
        """Nothing to release: the tap belongs to the shim."""
