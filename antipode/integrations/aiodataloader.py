"""aiodataloader: what several requests load at once is loaded in a scope that depends on all.

A loader of one request loads in a scope that depends on what that does. One that requests share
loads once for all of them; each depends on what the load added, and on nothing of the others. A
cached value keeps what it depends on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode._runtime.switch import switchable

from ._loaders import Integration, Loaders

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Hashable

__all__ = ["instrument", "uninstrument"]


def __dir__() -> list[str]:
    return __all__


class _Loaders(Loaders):
    def futures_of(self, batch: Any) -> list[asyncio.Future[Any]]:
        return [each.future for each in batch]

    def cached(self, loader: Any, key: Any) -> asyncio.Future[Any] | None:
        cache = loader._cache  # noqa: SLF001 - it has no other way to ask
        return cache.get(loader.get_cache_key(key)) if loader.cache else None


_integration = Integration(
    "aiodataloader",
    "aiodataloader",
    "aiodataloader",
    lambda module: _Loaders(module, "dispatch_queue_batch", "batch_load_fn"),
)


@switchable
def instrument(*, key: Callable[[Any], Hashable] | None = None) -> None:
    """Share what all data loaders load, those that exist already, too. Idempotent.

    Args:
        key: called with what is loaded, by who loads it: requests load together where it is
            equal, such as of one tenant. None: as their loader has it.

    Raises:
        ConfigurationError: aiodataloader is not installed.
    """
    _integration.instrument(key)


def uninstrument() -> None:
    """Undo :func:`instrument`. Idempotent; what is being loaded is loaded to its end."""
    _integration.uninstrument()


def is_instrumented() -> bool:
    """Whether :func:`instrument` is in force."""
    return _integration.active
