"""What is counted and logged of a read that is not shown all that its request depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode._lineage.unmet_errors import IncompleteLineage
from antipode._runtime import observers
from antipode._runtime.metrics import count, log_seldom

from .registry import server_of

if TYPE_CHECKING:
    from antipode._lineage.errors import ServerName, StaleSnapshot
    from antipode._lineage.unmet_errors import UnmetError


class StaleRead:
    """What a read is counted for once it is answered: it may be stale.

    A client that knows when its reads are answered gives one to :func:`floor` and says so with
    :meth:`answered`. A read that raises instead was served to nobody, and is not counted.

    Attributes:
        served: by datastore, why it may be stale; None where there is nothing to count.
    """

    __slots__ = ("served",)

    def __init__(self) -> None:
        """Nothing so far."""
        self.served: dict[str, UnmetError | StaleSnapshot] | None = None

    def serve(self, datastore: str, error: UnmetError | StaleSnapshot) -> None:
        """Note that a read of *datastore* may go although *error* says it is stale.

        Once for each datastore, however many attempts the client makes.
        """
        if self.served is None:
            self.served = {}
        self.served.setdefault(datastore, error)

    def __bool__(self) -> bool:
        """Whether there is anything to count."""
        return self.served is not None

    def answered(self) -> None:
        """Count it: the reply has begun, and is no error. Idempotent."""
        if self.served is not None:
            served, self.served = self.served, None
            for datastore, error in served.items():
                serve(datastore, error)

    def failed(self) -> None:
        """Forget it: the read raised, or another one begins."""
        self.served = None


def serve(datastore: str, error: UnmetError | StaleSnapshot) -> None:
    """Say that a read of *datastore* is answered although *error* says that it is stale."""
    count("served_stale", datastore)
    observers.telemetry.served(datastore, error.code, error.server)
    message = "a read of %r%s was answered although its request depends on more: %s"
    where, attributes = _where(error.server)
    log_seldom("served_stale", datastore, message, datastore, where, error, attributes=attributes)


def refused(error: UnmetError) -> UnmetError:
    """The *error* that ends a read, logged; not where the read may be made at the primary."""
    if not error.at_primary:
        tell_of_unmet("read", error)
    return error


def tell_of_unmet(what: str, error: UnmetError) -> None:
    """Log what a ``barrier`` or ``read`` did not get: each datastore and outcome now and then."""
    found = {(each.write.datastore, each.status.value) for each in error.unmet}
    if isinstance(error, IncompleteLineage):
        found |= {(mark.subject, mark.reason) for mark in error.result.incomplete}
    message = "a %s did not see all that it depends on in %r%s (%s). It ended with %s: %s"
    for datastore, outcome in sorted(found):
        where, attributes = _where(error.server or server_of(datastore))
        told = what, datastore, where, outcome, error.code, error
        log_seldom(f"unmet_{outcome}", datastore, message, *told, attributes=attributes)


def _where(server: ServerName | None) -> tuple[str, dict[str, str | int]]:
    """A server as a line of the log names it, and the attributes of its record."""
    return ("", {}) if server is None else (f", {server}", server.attributes())
