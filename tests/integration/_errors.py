"""What an application sees of an exception, to compare a client with the instrumented one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def error_of(call: Callable[[], Any]) -> Any:
    """The type, arguments and attributes of what *call* raises; what it returns, if nothing."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - whatever the client raises
        return type(error), error.args, str(error), vars(error)
