"""The option ``readonly_functions``: the application's functions that write nothing. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from antipode import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection

_OPTION: Final = re.compile(r"[\w$]+(?:\.[\w$]+)?")


def declared(functions: Collection[str]) -> frozenset[str]:
    """The names that ``readonly_functions`` gives, in small letters.

    Raises:
        ConfigurationError: it is one text, or has what is no ``name`` or ``schema.name``.
    """
    if isinstance(functions, str) or not all(
        isinstance(each, str) and _OPTION.fullmatch(each) for each in functions
    ):
        msg = (
            "readonly_functions is a collection of names, each name or schema.name without quotes: "
            f"{functions!r}"
        )
        raise ConfigurationError(msg)
    return frozenset(each.lower() for each in functions)
