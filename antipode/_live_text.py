"""The baggage member's value, which is rendered when it leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._scope import Scope


class LiveText(str):
    """The baggage member's value: a ``str`` whose text is rendered when it is injected.

    ``str()`` and ``format()``, which propagators use, give the lineage of that moment. Code that
    takes the characters themselves (``json``, ``pickle``, ``encode``, ``join``) gets a snapshot
    which says of itself that it is incomplete, never an empty lineage; bounded and filtered,
    because whoever takes it may send it.
    """

    __slots__ = ("scope",)
    #: Whose lineage it is. To be set by who makes one, of the scope's snapshot.
    scope: Scope

    def __str__(self) -> str:
        """The lineage of this moment, as it leaves the process."""
        return self.scope.text()

    def __format__(self, format_spec: str, /) -> str:
        """As :meth:`__str__`."""
        return format(self.scope.text(), format_spec)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as the snapshot: another process cannot share the scope."""
        return str, (str.__str__(self),)
