"""Antipode: cross-service causal consistency (SOSP '23) for services that exist already.

A lineage of write identifiers travels with each request in OpenTelemetry baggage;
:func:`barrier` blocks until it is visible where the caller is about to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _startup  # noqa: F401 - first: it says who observes
from ._barrier.barrier import (
    Cancellable,
    barrier,
    barrier_async,
    barrier_callback,
    check,
    check_async,
)
from ._barrier.promise import abandon, abandon_async, promise
from ._barrier.registry import register, unregister
from ._lineage.errors import (
    AntipodeError,
    ConfigurationError,
    LineageDecodeError,
    LineageTooLarge,
    PromiseAbandoned,
    StaleSnapshot,
)
from ._lineage.lineage import Lineage
from ._lineage.outcomes import BarrierResult, Outcome, Status
from ._lineage.unmet_errors import (
    BarrierTimeout,
    DependencyLost,
    IncompleteLineage,
    UnknownDatastore,
    UnmetError,
    VisibilityCheckError,
)
from ._lineage.write_id import Incomplete, Promise, WriteId
from ._propagation.headers import strip
from ._request.background import branch
from ._request.fulfilling import fulfilling
from ._request.recording import mark_incomplete
from ._request.scope import Scope
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
)
from ._runtime.config import Config, config, configure
from ._runtime.metrics import Metric, metrics

if TYPE_CHECKING:
    from ._propagation.propagator import AntipodePropagator, instrument, uninstrument
    from ._propagation.responses import extract_response, inject_response

__all__ = [
    "AntipodeError",
    "AntipodePropagator",
    "BarrierResult",
    "BarrierTimeout",
    "Cancellable",
    "Config",
    "ConfigurationError",
    "DependencyLost",
    "Incomplete",
    "IncompleteLineage",
    "Lineage",
    "LineageDecodeError",
    "LineageTooLarge",
    "Metric",
    "Outcome",
    "Promise",
    "PromiseAbandoned",
    "Scope",
    "StaleSnapshot",
    "Status",
    "UnknownDatastore",
    "UnmetError",
    "VisibilityCheckError",
    "WriteId",
    "abandon",
    "abandon_async",
    "append",
    "barrier",
    "barrier_async",
    "barrier_callback",
    "branch",
    "check",
    "check_async",
    "config",
    "configure",
    "current",
    "deserialize",
    "extract_response",
    "fulfilling",
    "inject_response",
    "instrument",
    "mark_incomplete",
    "metrics",
    "promise",
    "register",
    "remove",
    "root",
    "scope",
    "serialize",
    "stop",
    "strip",
    "transfer",
    "uninstrument",
    "unregister",
]


def __dir__() -> list[str]:
    return __all__


_PROPAGATION = frozenset(
    {
        "AntipodePropagator",
        "extract_response",
        "inject_response",
        "instrument",
        "uninstrument",
    }
)


def __getattr__(name: str) -> object:
    """Load what needs OpenTelemetry's propagators when it is first used."""
    if name in _PROPAGATION:
        from . import propagation

        return getattr(propagation, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
