"""Antipode: cross-service causal consistency (SOSP '23) for services that exist already.

A lineage of write identifiers travels with each request in OpenTelemetry baggage;
:func:`barrier` blocks until it is visible where the caller is about to read.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from . import _startup  # noqa: F401 # pyright: ignore[reportUnusedImport] - says who observes
from ._barrier.barrier import (
    barrier,
    barrier_async,
    barrier_callback,
    check,
    check_async,
)
from ._barrier.promise import abandon, abandon_async, promise
from ._lineage.errors import (
    AntipodeError,
    ConfigurationError,
    LineageDecodeError,
    LineageTooLarge,
    PromiseAbandoned,
    StaleSnapshot,
)
from ._lineage.lineage import Lineage
from ._lineage.outcomes import BarrierResult, Status
from ._lineage.unmet_errors import (
    BarrierTimeout,
    DependencyLost,
    IncompleteLineage,
    UnknownDatastore,
    UnmetError,
    VisibilityCheckError,
)
from ._lineage.write_id import Promise, WriteId
from ._request.fulfilling import fulfilling
from ._request.table2 import (
    append,
    current,
    deserialize,
    remove,
    root,
    scope,
    serialize,
    stop,
    transfer,
    uncommitted,
)
from ._runtime.config import configure

if TYPE_CHECKING:
    from . import propagation as propagation
    from . import shim as shim
    from . import telemetry as telemetry
    from ._barrier.as_of_now import as_of_now, as_of_now_async
    from ._barrier.automatic import barriers
    from ._barrier.routing import reads_from, reads_from_async
    from ._propagation.propagator import instrument
    from ._request.background import branch
    from ._request.together import together
    from ._setup.setup import setup, teardown

__all__ = [
    "AntipodeError",
    "BarrierResult",
    "BarrierTimeout",
    "ConfigurationError",
    "DependencyLost",
    "IncompleteLineage",
    "Lineage",
    "LineageDecodeError",
    "LineageTooLarge",
    "Promise",
    "PromiseAbandoned",
    "StaleSnapshot",
    "Status",
    "UnknownDatastore",
    "UnmetError",
    "VisibilityCheckError",
    "WriteId",
    "abandon",
    "abandon_async",
    "append",
    "as_of_now",
    "as_of_now_async",
    "barrier",
    "barrier_async",
    "barrier_callback",
    "barriers",
    "branch",
    "check",
    "check_async",
    "configure",
    "current",
    "deserialize",
    "fulfilling",
    "instrument",
    "promise",
    "reads_from",
    "reads_from_async",
    "remove",
    "root",
    "scope",
    "serialize",
    "setup",
    "stop",
    "teardown",
    "together",
    "transfer",
    "uncommitted",
]


def __dir__() -> list[str]:
    return [*__all__, *_MODULES]


_MODULES = frozenset({"propagation", "shim", "telemetry"})
#: What few programs use, and where it is.
_LATER = {
    "as_of_now": "._barrier.as_of_now",
    "as_of_now_async": "._barrier.as_of_now",
    "barriers": "._barrier.automatic",
    "branch": "._request.background",
    "instrument": ".propagation",
    "reads_from": "._barrier.routing",
    "reads_from_async": "._barrier.routing",
    "setup": "._setup.setup",
    "teardown": "._setup.setup",
    "together": "._request.together",
}


def __getattr__(name: str) -> object:
    """Load the other public modules, and what few programs use, when they are used."""
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name in _LATER:
        return getattr(import_module(f"{__name__}{_LATER[name]}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
