"""Synchronous replication with PostgreSQL: commits that the standby has replayed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from antipode_testing import wait_until

from ._none import Unprotected

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._none import Administer

_TIMEOUT_S = 30.0
_SETTINGS = {"synchronous_standby_names": "'*'", "synchronous_commit": "'remote_apply'"}


class Synchronous(Unprotected):
    """The primary acknowledges a commit once the standby shows it to its readers.

    The application is as without protection. While the standby does not answer no commit ends.
    """

    @classmethod
    @contextmanager
    def arranged(cls, administer: Administer) -> Iterator[None]:
        """Turn it on at the primary; off at the end: posts to update are not written slowly."""

        def taking_part() -> bool:
            (row,) = administer(
                "writer", "SELECT count(*) AS n FROM pg_stat_replication WHERE sync_state = 'sync'"
            )
            return int(row["n"]) > 0

        for name, value in _SETTINGS.items():
            administer("writer", f"ALTER SYSTEM SET {name} = {value}")
        administer("writer", "SELECT pg_reload_conf()")
        wait_until(taking_part, what="synchronous replication", timeout_s=_TIMEOUT_S)
        yield
        for name in _SETTINGS:
            administer("writer", f"ALTER SYSTEM RESET {name}")
        administer("writer", "SELECT pg_reload_conf()")
