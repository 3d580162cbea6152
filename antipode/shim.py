"""What a shim's author needs: the contract between the core and the datastores.

A shim says three things about its datastore: which :class:`~antipode.WriteId` a committed
write has (:func:`record_write`), which of some writes one server shows (:class:`Endpoint`), and,
for instrumented clients, whether a read may be answered (:class:`Floor`). The rest is the core's.
"""

from __future__ import annotations

from ._barrier.arguments import Names, names_of, one_of
from ._barrier.as_of_now import of_an_event, positions_now
from ._barrier.barrier import Cancellable
from ._barrier.contract import PRIMARY_KEY, Endpoint, Observation, Unreachable, following
from ._barrier.decisions import PROMISE_GRACE_S, Pacer
from ._barrier.floor import Floor
from ._barrier.guard import (
    Guarded,
    Send,
    Step,
    Steps,
    Verdict,
    drive,
    drive_async,
    guard,
    shown_outside,
)
from ._barrier.moved import move, stays
from ._barrier.places import Places
from ._barrier.pools import Repeated, wait_first, wait_first_async
from ._barrier.promise import record_seconds
from ._barrier.reads import floor, record_shown, record_uncommitted
from ._barrier.registry import register, registered, shared_watcher, shims_of, unregister
from ._barrier.served import StaleRead
from ._barrier.shim import OnRead, ServerShim, Shim, stored_names
from ._barrier.store import Barriers, ReadsFrom
from ._lineage.codec import decode, encode
from ._lineage.errors import ServerName
from ._lineage.grammar import is_of_writes
from ._lineage.outcomes import Outcome
from ._lineage.unmet_errors import error_of
from ._lineage.write_id import Incomplete
from ._request.background import unrecorded
from ._request.context import scope_in
from ._request.lineage_text import readable, unreadable
from ._request.recorded import recorded
from ._request.recording import (
    defer_read,
    lineage_not_read,
    lineage_not_stored,
    mark_incomplete,
    record_handled,
    record_read,
    record_sent,
    record_unlabelled,
    record_write,
    unscoped,
)
from ._request.scope import Scope
from ._request.stored import stored_lineage, stored_text, tell_of_stored, unlabelled
from ._request.table2 import begin_scope, end_scope
from ._runtime.adoption import adopt, disown
from ._runtime.cancellation import heed_cancellation, unless_cancelled
from ._runtime.clock import SYSTEM_CLOCK, UNTRACED, Clock
from ._runtime.config import Config, config
from ._runtime.datastores import (
    Datastores,
    Rule,
    connected_place,
    own_client,
    place_of,
    places_in,
    sentinel_place,
)
from ._runtime.datastores import named as named_client
from ._runtime.metrics import count, log_once, logger
from ._runtime.observers import own_time
from ._runtime.process_wide import ProcessWide
from ._runtime.ruled import has_primary, primary_place
from ._runtime.switch import switchable, takes_short_ways
from ._runtime.unnamed import tell_of_undeclared
from ._runtime.wake import Wake

__all__ = [
    "PRIMARY_KEY",
    "PROMISE_GRACE_S",
    "SYSTEM_CLOCK",
    "UNTRACED",
    "Barriers",
    "Cancellable",
    "Clock",
    "Config",
    "Datastores",
    "Endpoint",
    "Floor",
    "Guarded",
    "Incomplete",
    "Names",
    "Observation",
    "OnRead",
    "Outcome",
    "Pacer",
    "Places",
    "ProcessWide",
    "ReadsFrom",
    "Repeated",
    "Rule",
    "Scope",
    "Send",
    "ServerName",
    "ServerShim",
    "Shim",
    "StaleRead",
    "Step",
    "Steps",
    "Unreachable",
    "Verdict",
    "Wake",
    "adopt",
    "begin_scope",
    "config",
    "connected_place",
    "count",
    "decode",
    "defer_read",
    "disown",
    "drive",
    "drive_async",
    "encode",
    "end_scope",
    "error_of",
    "floor",
    "following",
    "guard",
    "has_primary",
    "heed_cancellation",
    "is_of_writes",
    "lineage_not_read",
    "lineage_not_stored",
    "log_once",
    "logger",
    "mark_incomplete",
    "move",
    "named_client",
    "names_of",
    "of_an_event",
    "one_of",
    "own_client",
    "own_time",
    "place_of",
    "places_in",
    "positions_now",
    "primary_place",
    "readable",
    "record_handled",
    "record_read",
    "record_seconds",
    "record_sent",
    "record_shown",
    "record_uncommitted",
    "record_unlabelled",
    "record_write",
    "recorded",
    "register",
    "registered",
    "scope_in",
    "sentinel_place",
    "shared_watcher",
    "shims_of",
    "shown_outside",
    "stays",
    "stored_lineage",
    "stored_names",
    "stored_text",
    "switchable",
    "takes_short_ways",
    "tell_of_stored",
    "tell_of_undeclared",
    "unlabelled",
    "unless_cancelled",
    "unreadable",
    "unrecorded",
    "unregister",
    "unscoped",
    "wait_first",
    "wait_first_async",
]


def __dir__() -> list[str]:
    return __all__
