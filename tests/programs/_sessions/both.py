"""One source of steps for both kinds of clients: a synchronous one is called as if awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Generator
    from types import TracebackType

#: Values that are awaited as they are; the others are parts of the client.
_PLAIN = (type(None), bool, int, float, str, bytes, tuple, list, dict, set)


class Awaited:
    """A part of a synchronous client, whose calls may be awaited and whose blocks entered.

    A call runs when it is made, and raises there.
    """

    def __init__(self, part: Any) -> None:
        self.part = part

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.part, name)
        if not callable(found):
            return found
        return lambda *args, **options: Awaited(
            found(*map(_bare, args), **{key: _bare(value) for key, value in options.items()})
        )

    def __await__(self) -> Generator[Any, None, Any]:
        return self._value()
        yield  # pragma: no cover - makes it a generator

    def _value(self) -> Any:
        return self.part if isinstance(self.part, _PLAIN) else self

    async def __aenter__(self) -> Any:
        entered = self.part.__enter__()
        return entered if isinstance(entered, _PLAIN) else Awaited(entered)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return bool(self.part.__exit__(kind, error, trace))

    async def aclose(self) -> None:
        """Leave a generator of rows."""
        self.part.close()

    async def __aiter__(self) -> AsyncIterator[Any]:
        for each in self.part:
            yield each


def _bare(value: Any) -> Any:
    return value.part if isinstance(value, Awaited) else value


def run_awaited(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run what waits for nothing, for its client is synchronous: no event loop is needed."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()
    raise RuntimeError("a step of a synchronous client waits for an event loop")
