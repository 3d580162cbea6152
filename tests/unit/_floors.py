"""Floors as barriers that were called leave them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode._barrier.decisions import Policies
from antipode._barrier.demands import Demand, demanded_in, leave
from antipode._runtime.clock import Allowance
from antipode.shim import SYSTEM_CLOCK, Floor

if TYPE_CHECKING:
    from antipode import Promise, WriteId
    from antipode._runtime.clock import Clock
    from antipode.shim import Scope

RAISING = Policies("raise", "raise", "raise", horizon_h=168, hour=500_000)


def floor_of(
    datastore: str,
    *wanted: WriteId | Promise,
    timeout_s: float = 1,
    policies: Policies = RAISING,
    proved_on: str = "",
    clock: Clock = SYSTEM_CLOCK,
) -> Floor:
    """What one barrier demands, which the server *proved_on* has just shown, where it is given."""
    proved = {proved_on: clock.monotonic()} if proved_on else {}
    asked = Demand(wanted, policies=policies, allowance=Allowance(timeout_s), proved=proved)
    return Floor(datastore, [asked], clock=clock)


def set_floor(scope: Scope, floor: Floor) -> None:
    """Leave *floor* to the reads of *scope*, as a barrier does."""
    for each in floor.demands:
        leave(scope, floor.datastore, each)


def floor_in(scope: Scope, datastore: str) -> Floor | None:
    """What barriers left to the reads of *scope*."""
    left = demanded_in(scope, datastore)
    return None if left is None else Floor(datastore, [left])
