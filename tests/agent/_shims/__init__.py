"""Shims and instrumented clients of real stores, opened as a request describes them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tests.agent._values import Unsupported

from ._open import OpenShim

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OpenShim", "open_shim", "stores"]

#: Where the functions of each store are: `open_shim`, and `open_client` where it has clients.
_MODULES = {
    "embedded": "embedded",
    "mariadb": "mysql",
    "mongodb": "mongodb",
    "mysql": "mysql",
    "postgresql": "postgresql",
    "rabbitmq": "rabbitmq",
    "redis": "redis",
}


def open_shim(store: str, given: Mapping[str, Any]) -> OpenShim:
    """Open what *given* describes.

    Raises:
        Unsupported: there is no such store here, or no client of it.
    """
    kind = "client" if given.get("client") else "shim"
    module = import_module(f"{__name__}.{_MODULES[store]}") if store in _MODULES else None
    opens = getattr(module, f"open_{kind}", None)
    if opens is None:
        msg = f"no {kind} of {store!r}"
        raise Unsupported(msg)
    opened: OpenShim = opens(given)
    return opened


def stores() -> list[str]:
    """The stores of which there are shims."""
    return sorted(_MODULES)
