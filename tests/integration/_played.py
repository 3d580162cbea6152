"""A session of a database, step by step: what an application and others see of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: The modes in which a session is compared with the plain client's, and whether it is in a scope.
MODES = (("off", True), ("off", False), ("enforce", True))


class Session(Protocol):
    """A connection of one client.

    Attributes:
        heard: the notices of its server.
    """

    heard: list[str]

    def execute(self, statement: str) -> Any:
        """What the client returns for a statement."""

    def state(self) -> Any:
        """How it says that its session stands."""

    def close(self) -> None:
        """Close the connection."""


def played(session: Session, steps: Iterable[str], look: Callable[[], Any]) -> list[Any]:
    """After each step: its result or error, the session's state, what others see, and notices."""
    script = []
    for step in steps:
        try:
            outcome = session.execute(step)
        except Exception as error:  # noqa: BLE001 - whatever the client raises
            code = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
            outcome = type(error), code, str(error)
        script.append((step, outcome, session.state(), look(), list(session.heard)))
    return script
