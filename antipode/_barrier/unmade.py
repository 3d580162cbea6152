"""Floors of datastores whose clients are not made yet, and what is said where no read meets one."""

from __future__ import annotations

from antipode._runtime.metrics import count, log_once
from antipode._runtime.ruled import holds_reads


class Awaited:
    """One floor that waits for a client to be made.

    Attributes:
        met: whether a read asked for it.
    """

    __slots__ = ("_datastore", "met")

    def __init__(self, datastore: str) -> None:
        """A barrier has left it for reads of *datastore*."""
        self._datastore = datastore
        self.met = False

    def ended(self) -> None:
        """Its request is over: count, and once for each name log, that no read met it."""
        if self.met:
            return
        self.met = True
        count("floor_unused", self._datastore)
        message = (
            "a barrier left %r to the reads of its request, and no instrumented client read there: "
            "where one did read it, no rule of ANTIPODE_DATASTORES names its address"
        )
        log_once("floor_unused", self._datastore, "", message, self._datastore)


def tell_of_unmade(datastore: str) -> None:
    """Count, and once for each name log, what a barrier at ``now`` could only leave to reads.

    Messages are left to nobody.
    """
    count("client_not_made", datastore)
    message = (
        "a barrier could not wait for %r, whose client is not made yet: its next reads wait. Make "
        "the client before, where the barrier guards what is no read"
    )
    if not holds_reads(datastore):
        message = (
            "a barrier did not wait for %r, whose client is not made yet: make it at start, as "
            "nothing hears its messages before"
        )
    log_once("client_not_made", datastore, "", message, datastore)
