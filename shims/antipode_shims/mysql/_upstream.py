"""Asking the server that a replica follows, with the same user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode.shim import Unreachable

from ._flavor import Refused
from ._settings import execute, pymysql_module

if TYPE_CHECKING:
    from ._flavor import Ask, Rows
    from ._settings import ServerSettings

#: Seconds that asking may take: the look that needs it is itself bounded.
_ASK_S = 0.5


def ask_upstream(settings: ServerSettings, ask: Ask) -> Rows:
    """The answer of ``ask.server``, which is not the server at hand.

    Raises:
        Refused: it could not be asked; passing where it does not answer now.
    """
    if ask.server is None:
        msg = "no server to ask"
        raise Refused(msg)
    try:
        connection = settings.at(*ask.server).connect(timeout_s=_ASK_S)
    except Unreachable as error:
        raise Refused(str(error), passing=True) from error
    except pymysql_module().err.Error as error:
        raise Refused(str(error)) from error
    try:
        return execute(connection, ask.sql)
    except Unreachable as error:
        raise Refused(str(error), passing=True) from error
    finally:
        connection.close()
