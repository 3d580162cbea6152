"""Asking the server that a replica follows, with the same user."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from antipode.shim import Unreachable
from antipode_shims.mysql._position.flavor import Refused

from .settings import execute, pymysql_module

if TYPE_CHECKING:
    from antipode_shims.mysql._position.flavor import Rows

    from .settings import ServerSettings

#: Seconds that asking may take: the poll that needs it is itself bounded.
_ASK_S = 0.5
#: Seconds for which a server that did not answer is not asked again: polls are shared, and who
#: waits for something else must not be held up.
_QUIET_S = 2.0


class Upstream:
    """The servers above the one at hand, asked on connections of a moment."""

    def __init__(self) -> None:
        """Have asked nobody."""
        self._silent: dict[tuple[str, int], tuple[float, str]] = {}

    def ask(
        self, settings: ServerSettings, server: tuple[str, int], sql: str, *, left_s: float = _ASK_S
    ) -> Rows:
        """The answer of *server* to *sql*; not asked where less time is left than it may take.

        Raises:
            Refused: it could not be asked; passing where it does not answer now.
        """
        if left_s < _ASK_S:
            raise Refused("no time left to ask the source", passing=True)
        until_s, cause = self._silent.get(server, (0.0, ""))
        if time.monotonic() < until_s:
            raise Refused(cause, passing=True)
        try:
            connection = settings.at(*server).connect(timeout_s=_ASK_S)
            try:
                return execute(connection, sql)
            finally:
                connection.close()
        except Unreachable as error:
            self._silent[server] = time.monotonic() + _QUIET_S, str(error)
            raise Refused(str(error), passing=True) from error
        except pymysql_module().Error as error:
            raise Refused(str(error)) from error
