"""What the shims of AWS's services share: which client of boto3 or aiobotocore one is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection


def client_of(client: Any, services: Collection[str], expected: str) -> Any:
    """The low-level client of *client*, which may be a resource of boto3.

    Args:
        client: what an application has.
        services: of which it may be, as botocore names them.
        expected: for the message, what it should have been.

    Raises:
        ConfigurationError: it is no client of one of these.
    """
    meta = getattr(client, "meta", None)
    found = getattr(meta, "client", None) or client
    model = getattr(getattr(found, "meta", None), "service_model", None)
    name = getattr(model, "service_name", None)
    if name not in services:
        what = f"a client of {name}" if name else type(client).__name__
        msg = f"expected {expected}, not {what}"
        raise ConfigurationError(msg)
    return found


def is_async(client: Any) -> bool:
    """Whether *client* is one of aiobotocore."""
    modules = (each.__module__.partition(".")[0] for each in type(client).__mro__)
    return "aiobotocore" in modules
