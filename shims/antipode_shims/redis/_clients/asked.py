"""Whether ``INFO`` may ride with commands on a connection: asked alone, once, before it does.

There are proxies that close the connection at ``INFO``, or that answer it with nothing, and users
who may not call it. After a write it would make the client believe that the write failed, so that
it is made again; or fill the server's log of refusals.
"""

from __future__ import annotations

from typing import Any

from antipode import ConfigurationError
from antipode_shims.redis._position import PASSING

from .redis_py import closed_at, link_of

_ATTRIBUTE = "_antipode_asked"
#: How often a connection is closed at the question before that is no accident.
_TOO_OFTEN = 2


class Asked:
    """What is known of ``INFO`` on one connection, which may be connected again. Not thread-safe.

    Attributes:
        link: what the connection talked through when it was asked; another one has to be asked.
        refusal: why ``INFO`` may not ride there: the server's error reply, or that a proxy does
            not let it pass; None where it may.
    """

    __slots__ = ("_closed", "link", "refusal")

    def __init__(self) -> None:
        """Know nothing."""
        self.link: Any = None
        self.refusal: Exception | None = None
        self._closed = 0

    @classmethod
    def of(cls, connection: Any) -> Asked:
        """What is known of *connection*."""
        asked: Asked | None = getattr(connection, _ATTRIBUTE, None)
        if asked is None:
            asked = cls()
            setattr(connection, _ATTRIBUTE, asked)
        return asked

    def settled(self, connection: Any) -> bool:
        """Whether *connection* need not be asked, or asked any more."""
        link = link_of(connection)
        if link is None:
            return False
        if self._closed >= _TOO_OFTEN:
            self._take(connection, not_passed("it closes the connection there"))
        return self.link is link

    def answered(self, connection: Any, reply: Any) -> None:
        """Take in the reply to the question, an error as a value."""
        refusal = None
        if isinstance(reply, Exception):
            refusal = None if str(reply).startswith(PASSING) else reply  # The question got there.
        elif not reply:
            refusal = not_passed("it answers with nothing")
        self._take(connection, refusal)

    def failed(self, error: BaseException) -> bool:
        """Take in that the connection failed at the question; whether to ask on a new one."""
        if not closed_at(error):
            return False
        self._closed += 1
        return True

    def _take(self, connection: Any, refusal: Exception | None) -> None:
        self.link, self.refusal, self._closed = link_of(connection), refusal, 0


def not_passed(how: str) -> ConfigurationError:
    """What is wrong with an address that does not let ``INFO`` through."""
    return ConfigurationError(
        f"this address does not pass INFO: {how}; writes have no positions and reads cannot be "
        "checked behind a proxy that keeps it back: connect to the Redis server"
    )
