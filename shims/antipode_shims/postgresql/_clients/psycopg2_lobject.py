"""Large objects of psycopg2: they are read from the snapshot in which they were opened.

So they are what cursors of the server are. Import only where psycopg2 is.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any

from psycopg2 import extensions

if TYPE_CHECKING:
    from collections.abc import Callable

#: What does the same as their calls, which are no statements.
_OPENS = "DECLARE c CURSOR FOR TABLE pg_largeobject"
_READS = "FETCH c"
_WRITES = "UPDATE pg_largeobject SET data = ''"
_numbers = count()


class LargeObject:
    """Mixed into the class of a large object."""

    _antipode_connection: Any
    _antipode_name: str

    def read(self, *size: Any) -> Any:
        """Read from where it stands."""
        plain: Any = super()
        return self._antipode_call(_READS, lambda: plain.read(*size))

    def export(self, file_name: Any) -> Any:
        """Write all of it to a file."""
        plain: Any = super()
        return self._antipode_call(_READS, lambda: plain.export(file_name))

    def write(self, data: Any) -> Any:
        """Write where it stands."""
        plain: Any = super()
        return self._antipode_call(_WRITES, lambda: plain.write(data))

    def truncate(self, *size: Any) -> Any:
        """Cut it off."""
        plain: Any = super()
        return self._antipode_call(_WRITES, lambda: plain.truncate(*size))

    def unlink(self) -> Any:
        """Delete it."""
        plain: Any = super()
        return self._antipode_call(_WRITES, plain.unlink)

    def _antipode_call(self, text: str, send: Callable[[], Any]) -> Any:
        return self._antipode_connection._antipode_call(  # noqa: SLF001
            text, send, reads_by=self._antipode_name
        )


def opened(
    connection: Any,
    options: tuple[int, str | None, int, Any],
    make: Callable[[Any], Any],
    factory: Any = None,
) -> Any:
    """A large object of *connection*, whose calls are observed.

    Args:
        connection: that has it.
        options: its number, the mode, the number and the file of one that is made; as the client
            takes them.
        make: opens it, by a class.
        factory: the application's class; the client's own by default.
    """
    name = f"large object {next(_numbers)}"
    observed = _observed(factory or extensions.lobject)
    made = connection._antipode_call(  # noqa: SLF001
        _text(*options), lambda: make(observed), reads_by=name
    )
    made._antipode_connection, made._antipode_name = connection, name  # noqa: SLF001
    return made


def _text(oid: int, mode: str | None, new_oid: int, new_file: Any) -> str:
    """What opening does: it makes one, takes a snapshot to read from, or neither."""
    if not oid or new_oid or new_file:
        return _WRITES
    return "" if (mode or "r").startswith(("w", "n")) else _OPENS


@lru_cache(maxsize=64)
def _observed(base: Any) -> Any:
    """A class of large objects whose calls are observed, of *base*."""
    return type(base.__name__, (LargeObject, base), {"__module__": base.__module__})
