"""Messages of which it is not known yet whether the broker has them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from antipode import Lineage
from antipode.shim import count, log_once, unscoped

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode import WriteId
    from antipode.shim import Scope

#: Seconds that whoever uses a lineage waits for the confirm of a message in it.
CONFIRM_S = 1.0


class Unconfirmed:
    """One message, from when it is sent until something says what became of it. Thread-safe.

    Its request's scope defers it: the lineage that is used next waits for the confirm, and says
    that the message is in doubt where none comes in time. Where a wait would be of no use
    (*awaits*), the name enters as that of a message which asks for no confirm. Then it stays, also
    where it is refused later: it has superseded the names of those before.

    Attributes:
        scope: of the request; None without one.
        write: its name.
    """

    def __init__(self, scope: Scope | None, write: WriteId, *, awaits: Callable[[], bool]) -> None:
        """Nothing is deferred yet: see :meth:`sent`."""
        self.scope, self.write = scope, write
        self._awaits = awaits
        self._lineage = Lineage([write])
        self._over = threading.Event()

    def sent(self) -> None:
        """It is on its way from now on."""
        if self.scope is None:
            unscoped("write", self.write.datastore)
        else:
            self.scope.defer(self)

    def __call__(self) -> Lineage:
        """What is known of it: its name, nothing, or that it is in doubt."""
        if self._awaits() and not self._over.wait(CONFIRM_S):
            datastore = self.write.datastore
            message = "no confirm of a message to %r came in time: its lineage is in doubt"
            log_once("unconfirmed", datastore, None, message, datastore)
            self.doubt()
        return self._lineage

    def confirm(self) -> None:
        """The broker has it."""
        self._over.set()
        if self.scope is not None:
            self.scope.append(self.write)

    def refuse(self) -> None:
        """The broker does not have it."""
        self._lineage = Lineage()
        self._over.set()

    def doubt(self) -> None:
        """The broker may have it."""
        datastore = self.write.datastore
        self._lineage = Lineage(incomplete=[(datastore, "in_doubt")])
        self._over.set()
        count("incomplete", datastore)
        if self.scope is not None:
            self.scope.mark_incomplete(datastore, "in_doubt")
