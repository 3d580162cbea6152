"""What a shim answers: one server, and what it shows of some writes."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from antipode._lineage.outcomes import Status
from antipode._lineage.write_id import Promise, WriteId

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from antipode._lineage.write_id import Dependency
    from antipode._runtime.wake import Wake

#: The key of what :func:`following` demands; no log has such a name.
PRIMARY_KEY = "~primary"


def following(datastore: str, primary: str) -> WriteId:
    """The demand that a server follows *primary* at the time of the poll, or is that server.

    A primary's position stands for writes that are missing only as long as it is the primary: one
    that was replaced may still answer. So a fence of a store in which that can happen has this
    entry with the positions. It is judged again at each poll, and is in no lineage.

    Args:
        datastore: the logical name.
        primary: as the store names a primary, such as MySQL's ``server_uuid``.
    """
    return WriteId(datastore, PRIMARY_KEY, primary, covering=True)


@dataclass(frozen=True, slots=True)
class Observation:
    """What one server showed of some writes and promises at one poll.

    Attributes:
        server: the server's *incarnation*: changes whenever its history may have (MySQL
            server_uuid, Redis run id and replication id), and never is an address.
        statuses: for each write asked for, its outcome; one that is left out is ``not_yet``.
        eta_s: seconds until the last of them may be visible, if the store can estimate it.
        causes: for a person, why a write has its outcome.
        promises: for each promise asked for, ``visible`` where its record says fulfilled,
            ``abandoned`` where it says so, and ``not_yet`` without a record.
        promise_causes: for a person, why a promise has its outcome.
        caveat: for a person, what is to be said of everything that is visible there.
    """

    server: str
    statuses: Mapping[WriteId, Status]
    eta_s: float | None = None
    causes: Mapping[WriteId, str] = field(default_factory=dict)
    promises: Mapping[Promise, Status] = field(default_factory=dict)
    promise_causes: Mapping[Promise, str] = field(default_factory=dict)
    caveat: str = ""

    def of(self, dependency: Dependency) -> tuple[Status, str]:
        """The outcome of *dependency*, and its cause. For the core."""
        if isinstance(dependency, Promise):
            status = self.promises.get(dependency, Status.NOT_YET)
            return status, self.promise_causes.get(dependency, "")
        status = self.statuses.get(dependency, Status.NOT_YET)
        said = self.caveat if status is Status.VISIBLE else ""
        return status, self.causes.get(dependency, said)


class Endpoint(ABC):
    """A connection of the library's own to the one server where the caller will read.

    Used by one thread at a time, except :meth:`interrupt`.

    Attributes:
        pinned: whether the server's history cannot have changed under the live connection. As
            long as that is so, positions seen once stay known until the connection is closed, and
            a barrier with nothing to wait for costs no round trip. False for Redis, whose
            connections survive a promotion and a full resync.
        blocks: whether the server ends :meth:`pause` once what the last poll missed may be
            visible. Then a pause lasts up to a second instead of being paced. May change from
            poll to poll: False where a wait on the server could not be started.
        hazard: for a person, what no poll of its server can show; the doctor says it.
    """

    pinned: bool = False
    blocks: bool = False
    pushes_promises: bool = False
    hazard: str = ""

    @abstractmethod
    def observe(self, writes: Collection[WriteId], *, timeout_s: float) -> Observation:
        """Poll once, without waiting for the writes.

        *writes* all belong to this shim's datastore and are not empty.

        Args:
            writes: what to judge.
            timeout_s: the longest the poll itself may take, in seconds.

        Raises:
            Unreachable: the poll failed and is worth repeating.
            Exception: anything else means that polling again cannot help.
        """

    def promised(self, promises: Collection[Promise], *, timeout_s: float) -> Observation:
        """Ask once for the records of *promises*, which are not empty; as :meth:`observe`.

        Called only where :attr:`Shim.promises` is True. What is returned has the incarnation and
        the promises alone; absence of a record, or of the table for them, is ``not_yet``, never
        ``lost``. The core judges by the clock which of these are abandoned.

        Raises:
            Unreachable: as :meth:`observe`.
            Exception: as :meth:`observe`.
        """
        del promises, timeout_s
        msg = f"{type(self).__name__} cannot ask for promises"
        raise NotImplementedError(msg)

    def follows(self, *, timeout_s: float) -> bool:
        """Whether its server says that it is a replica. For dry runs and the doctor; no wait.

        So they find a client that was given no ``reads_from="replica"``. False where the server
        does not say so; the default.

        Raises:
            Exception: as :meth:`observe`.
        """
        del timeout_s
        return False

    def pause(self, timeout_s: float, wake: Wake) -> None:
        """Wait for *timeout_s* seconds, until *wake*, or until the server pushes something.

        The default waits for time or *wake* alone. A store that can push or block on the
        server overrides it; it must return at once when *wake* is set, and may return early.
        Where it blocks, it waits for the smallest position that the last poll missed, and what
        waits on the server ends with :meth:`rest` or :meth:`close` at the latest.
        """
        wake.wait(timeout_s)

    def rest(self) -> None:  # noqa: B027 - optional
        """Nobody waits any more: end what the server pushes until the next :meth:`pause`."""

    def interrupt(self) -> None:  # noqa: B027 - optional
        """Make a poll that another thread is in fail soon. Thread-safe; may do nothing."""

    @abstractmethod
    def close(self) -> None:
        """Release the connection. Idempotent."""


class Unreachable(Exception):  # noqa: N818 - the name is fixed by the specification
    """A poll failed in a way that a later poll may not: refused, reset, timed out, loading."""


#: How clients word it where they keep no error of the system's.
_NOBODY = (
    "connection refused",
    "could not translate host name",
    "failed to resolve host",
    "name or service not known",
    "no address associated with hostname",
)
_MOST_CAUSES = 10


def is_absent(error: BaseException) -> bool:
    """Whether *error* says that no server is there: refused, or a host or socket without address.

    A client that has another way to go then takes it at once. Errors name the system's own as
    their cause, or in their text.
    """
    found: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if found is None:
            return False
        if isinstance(found, (ConnectionRefusedError, FileNotFoundError, socket.gaierror)):
            return True
        text = str(found).lower()
        if any(each in text for each in _NOBODY):
            return True
        found = found.__cause__ or found.__context__
    return False
