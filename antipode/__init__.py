"""Antipode: cross-service causal consistency (SOSP '23) for services that exist already.

A lineage of write identifiers travels with each request in OpenTelemetry baggage;
:func:`barrier` blocks until it is visible where the caller is about to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._barrier import (
    barrier,
    barrier_async,
    barrier_callback,
    check,
    check_async,
)
from ._by_hand import append, remove, transfer
from ._cancellable import Cancellable
from ._config import Config, config, configure
from ._errors import (
    AntipodeError,
    BarrierTimeout,
    ConfigurationError,
    DependencyLost,
    IncompleteLineage,
    LineageDecodeError,
    LineageTooLarge,
    PromiseAbandoned,
    StaleSnapshot,
    UnknownDatastore,
    UnmetError,
    VisibilityCheckError,
)
from ._headers import strip
from ._lineage import Lineage
from ._metrics import Metric, metrics
from ._open_branch import branch
from ._outcomes import BarrierResult, Outcome, Status
from ._promise import abandon, abandon_async, fulfilling, promise
from ._recording import mark_incomplete
from ._registry import register, unregister
from ._scope import (
    Scope,
    current,
    root,
    scope,
    stop,
)
from ._text import deserialize, serialize
from ._write_id import Incomplete, Promise, WriteId

if TYPE_CHECKING:
    from ._propagation import (
        AntipodePropagator,
        extract_response,
        inject_response,
        instrument,
        uninstrument,
    )

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
        from . import _propagation

        return getattr(_propagation, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
