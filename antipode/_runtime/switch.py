"""The kill switch: ``ANTIPODE_DISABLED=true`` leaves a process as it would be without the library.

It is read once, as the process starts. Whatever patches, sends, asks or waits reads it here.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")

VARIABLE = "ANTIPODE_DISABLED"


def is_set(text: str) -> bool:
    """Whether *text* says that the library is disabled, by OpenTelemetry's rule for booleans.

    Only ``true`` is, in any case. Anything but ``false`` is noted besides.
    """
    word = text.strip().lower()
    if word not in ("", "true", "false"):
        message = "%s=%s is neither true nor false: the library is not disabled"
        logging.getLogger("antipode").warning(message, VARIABLE, text)
    return word == "true"


#: Whether clients send what costs less, where they know two ways to the same.
flat = os.environ.get("ANTIPODE_FLAT", "").strip() != "0"
#: Whether this process runs without the library.
disabled = is_set(os.environ.get(VARIABLE, ""))


def is_disabled() -> bool:
    """Whether this process runs without the library."""
    return disabled


def takes_short_ways() -> bool:
    """Whether clients send what costs less, where they know two ways to the same.

    ``ANTIPODE_FLAT=0`` in the environment says no: for tests, and where a short way is suspected.
    """
    return flat


def switchable(function: Callable[_Args, _Result]) -> Callable[_Args, _Result]:
    """Make an instrumentation return its first argument untouched where the library is disabled.

    For every public ``instrument_*``: one that takes nothing, or returns nothing, returns None.
    """
    signature = inspect.signature(function)
    first = next((n for n, p in signature.parameters.items() if p.kind is not p.KEYWORD_ONLY), None)
    returns = signature.return_annotation not in (None, "None")

    @functools.wraps(function)
    def call(*args: _Args.args, **kwargs: _Args.kwargs) -> _Result:
        if not disabled:
            return function(*args, **kwargs)
        if first is None or not returns:
            return cast("_Result", None)
        given: Any = args[0] if args else kwargs.get(first)
        return cast("_Result", given)

    return call
