"""Lineages between services, for who sends and receives requests without our integrations."""

from __future__ import annotations

from ._lineage.grammar import MEMBER
from ._propagation.events import event_headers, event_scope
from ._propagation.extraction import members, stripped
from ._propagation.headers import (
    BAGGAGE,
    RESPONSE_HEADER,
    SENT_HEADER,
    has_member,
    strip,
    with_member,
    without_member,
)
from ._propagation.propagator import (
    AntipodeBaggagePropagator,
    AntipodePropagator,
    instrument,
    uninstrument,
)
from ._propagation.responses import extract_response, inject_response

__all__ = [
    "BAGGAGE",
    "MEMBER",
    "RESPONSE_HEADER",
    "SENT_HEADER",
    "AntipodeBaggagePropagator",
    "AntipodePropagator",
    "event_headers",
    "event_scope",
    "extract_response",
    "has_member",
    "inject_response",
    "instrument",
    "members",
    "strip",
    "stripped",
    "uninstrument",
    "with_member",
    "without_member",
]


def __dir__() -> list[str]:
    return __all__
