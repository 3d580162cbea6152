"""What every open shim and client of an agent can do, and what those of stores have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tests.agent._values import Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from antipode import Lineage, Promise


class OpenShim(Protocol):
    """A shim by which the agent writes and reads texts."""

    shim: Any

    def write(self, key: str, value: str, lineage: Lineage | None, fulfils: Promise | None) -> Any:
        """Write; the lineage with the new write, None for a plain command."""
        ...

    def delete(self, key: str, lineage: Lineage | None) -> Any:
        """Delete; as `write`."""
        ...

    def read(self, key: str) -> tuple[str | None, Any]:
        """The value and its lineage, None for a plain command."""
        ...

    async def read_async(self, key: str) -> tuple[str | None, Any]:
        """As `read`, by the store's asynchronous client."""
        ...

    def rolled_back(self, key: str, value: str, fulfils: Promise) -> None:
        """Write and fulfil in a transaction that is rolled back."""
        ...

    def close(self) -> None:
        """Unregister, and close what was opened."""
        ...


class Table2:
    """A shim with the calls of Table 2."""

    def __init__(
        self,
        shim: Any,
        open_async: Callable[[], Any] | None = None,
        roll_back: Callable[[str, bytes, Promise], None] | None = None,
        also: Callable[[], object] = lambda: None,
    ) -> None:
        self.shim = shim
        self._open_async = open_async
        self._roll_back = roll_back
        self._also = also

    def write(self, key: str, value: str, lineage: Lineage | None, fulfils: Promise | None) -> Any:
        return self.shim.write(key, value.encode(), lineage, fulfils=fulfils)

    def delete(self, key: str, lineage: Lineage | None) -> Any:
        return self.shim.delete(key, lineage)

    def read(self, key: str) -> tuple[str | None, Any]:
        return _text(self.shim.read(key))

    async def read_async(self, key: str) -> tuple[str | None, Any]:
        if self._open_async is None:
            return _text(await self.shim.read_async(key))
        shim = self._open_async()
        try:
            return _text(await shim.read(key))
        finally:
            await shim.aclose()

    def rolled_back(self, key: str, value: str, fulfils: Promise) -> None:
        if self._roll_back is None:
            msg = "no transaction that is rolled back"
            raise Unsupported(msg)
        self._roll_back(key, value.encode(), fulfils)

    def close(self) -> None:
        self.shim.close()
        self._also()


class Client:
    """Plain commands of an instrumented client.

    Args:
        write: stores a value.
        delete: deletes it; None where the store has no deletes.
        read: finds it; None where there is none.
        close: gives the client back.
    """

    shim = None

    def __init__(
        self,
        *,
        write: Callable[[str, str], object],
        delete: Callable[[str], object] | None,
        read: Callable[[str], str | bytes | None],
        close: Callable[[], object],
    ) -> None:
        self._write = write
        self._delete = delete
        self._read = read
        self._close = close

    def write(self, key: str, value: str, lineage: Lineage | None, fulfils: Promise | None) -> None:
        if lineage is not None or fulfils is not None:
            msg = "a client stores no lineage and fulfils no promise"
            raise Unsupported(msg)
        self._write(key, value)

    def delete(self, key: str, lineage: Lineage | None) -> None:
        del lineage
        if self._delete is None:
            msg = "nothing can be deleted"
            raise Unsupported(msg)
        self._delete(key)

    def read(self, key: str) -> tuple[str | None, None]:
        return _text((self._read(key), None))

    async def read_async(self, key: str) -> tuple[str | None, None]:
        msg = f"no asynchronous client for {key}"
        raise Unsupported(msg)

    def rolled_back(self, key: str, value: str, fulfils: Promise) -> None:
        del key, value, fulfils
        raise Unsupported("a client fulfils no promise")

    def close(self) -> None:
        self._close()


def options(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a request says of a shim, as Python's functions take it."""
    return {name: given[name] for name in ("reads_from", "on_read") if name in given}


def _text(found: tuple[Any, Any]) -> tuple[str | None, Any]:
    value, lineage = found
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = bytes(value).decode()
    return value, lineage
