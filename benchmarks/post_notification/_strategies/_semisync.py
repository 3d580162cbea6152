"""What MySQL and MariaDB have in common in semi-synchronous replication: an operator sets it up."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from antipode_testing import wait_until

from ._none import Unprotected

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._none import Administer

_TIMEOUT_S = 30.0


class SemiSynchronous(Unprotected):
    """The primary acknowledges a commit once the replica has received it, applied or not.

    The application is as without protection. A replica that does not answer for ten seconds turns
    the primary back to asynchronous replication, silently.
    """

    INSTALL: ClassVar[tuple[tuple[str, str], ...]] = ()
    ON: ClassVar[str] = ""
    OFF: ClassVar[str] = ""
    #: How many replicas acknowledge.
    CLIENTS: ClassVar[str] = ""

    @classmethod
    def install(cls, administer: Administer) -> None:
        """Let the replica connect anew, ready to acknowledge; return once it has."""

        def taking_part() -> bool:
            (row,) = administer("writer", f"SHOW GLOBAL STATUS LIKE '{cls.CLIENTS}'")
            return int(row["Value"]) > 0

        for place, statement in cls.INSTALL:
            administer(place, statement)
        wait_until(taking_part, what="semi-synchronous replication", timeout_s=_TIMEOUT_S)

    @classmethod
    @contextmanager
    def arranged(cls, administer: Administer) -> Iterator[None]:
        """Turn it on at the primary; off at the end: posts to update are not written slowly."""
        administer("writer", cls.ON)
        yield
        administer("writer", cls.OFF)
