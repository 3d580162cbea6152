"""The lineage of an event that the store emits: a change that a change stream reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from antipode import Lineage, WriteId
from antipode.shim import SYSTEM_CLOCK, of_an_event, positions_now, shims_of

from ._position.timestamps import log_key
from ._shim.base import BaseMongoShim

if TYPE_CHECKING:
    from typing_extensions import TypeIs

_MOST = 2**32 - 1


@of_an_event
def lineage(datastore: str, change: Mapping[str, Any], *, timeout: float = 5.0) -> Lineage:
    """What an event of a change stream depends on: the write that it reports.

    A change stream reports what a majority has, so that its time alone is a position, whatever the
    term. The name of the replica set is asked of the primary, unless a client here knows it.

    Args:
        datastore: the name that every service spells alike.
        change: the event, with its ``clusterTime``: a BSON timestamp, or one of extended JSON
            (``{"$timestamp": {"t": ..., "i": ...}}``).
        timeout: seconds that the primary may take.

    Returns:
        The write; incomplete (``unsampled``) where the primary does not answer. One of before the
        replica set was initiated has an entry that barriers refuse (``unknown_log``).

    Raises:
        ValueError: *change* has no ``clusterTime``.
        ConfigurationError: no client here knows the set's name, nor reaches its primary.
    """
    version = _version(change)
    if not (name := _set_name(datastore)):
        found = positions_now(datastore, timeout_s=timeout)
        if found is None or not (name := _set_name(datastore)):
            return Lineage(incomplete=[(datastore, "unsampled")])
    return Lineage([WriteId(datastore, log_key(name, None), version, SYSTEM_CLOCK.hour())])


def _set_name(datastore: str) -> str:
    """The replica set's name as a client here learnt it; empty where none did."""
    shims = (each for each in shims_of(datastore) if isinstance(each, BaseMongoShim))
    return next((each.set_name for each in shims if each.set_name), "")


def _version(change: object) -> int:
    """The time of a change as one number.

    Raises:
        ValueError: it has none.
    """
    told: Any = change.get("clusterTime") if isinstance(change, Mapping) else None
    if isinstance(told, Mapping):
        parts: Any = told.get("$timestamp")
        time_s, count = (parts.get("t"), parts.get("i")) if isinstance(parts, Mapping) else (0, 0)
    else:
        time_s, count = getattr(told, "time", 0), getattr(told, "inc", 0)
    if not (_fits(time_s) and _fits(count) and time_s):
        msg = f"the event of a change stream has its clusterTime, a timestamp; here it is {told!r}"
        raise ValueError(msg)
    return time_s << 32 | count


def _fits(number: object) -> TypeIs[int]:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= _MOST
