"""What a program does with the current lineage by itself (Table 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._codec import decode
from ._lineage import Lineage
from ._scope import Scope, scope_in
from ._unscoped import unscoped

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from ._write_id import WriteId


def append(write: WriteId, *, context: Context | None = None) -> Lineage:
    """Add a dependency to the current lineage (Table 2's ``append``).

    An entry without a mint hour gets the current one.

    Raises:
        ConfigurationError: there is no scope, and ``on_unscoped="raise"``.
    """
    held = scope_in(context)
    if held is None:
        unscoped("append", write.datastore)
        return Lineage([write])
    return held.append(write)


def remove(write: WriteId, *, context: Context | None = None) -> Lineage:
    """Drop a dependency from the current lineage (Table 2's ``remove``)."""
    held = scope_in(context)
    return held.remove(write) if held is not None else Lineage()


def transfer(source: Lineage | str | Scope, *, target: Lineage | Scope | None = None) -> Lineage:
    """Add the dependencies of *source* to *target* (Table 2's ``transfer``).

    Args:
        source: the lineage, its text or its scope.
        target: a scope, which changes; a lineage, which does not; default the current scope.

    Returns:
        The lineage with both.

    Raises:
        LineageDecodeError: *source* is a text and no lineage.
        ConfigurationError: there is no current scope, and ``on_unscoped="raise"``.
    """
    if isinstance(source, str):
        source = decode(source)
    elif isinstance(source, Scope):
        source = source.lineage
    if isinstance(target, Lineage):
        return target.merge(source)
    held = target if target is not None else scope_in()
    if held is None:
        unscoped("transfer", "")
        return source
    return held.merge(source)
