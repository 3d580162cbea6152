"""The lineage of an event that the store emits: a transaction that was read from a binary log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from antipode import Lineage
from antipode.shim import SYSTEM_CLOCK, of_an_event, positions_now, shims_of

from ._position.flavor import Flavor, minted
from ._position.gtid import GtidError, Runs
from ._shim.base import BaseMySQLShim

if TYPE_CHECKING:
    from antipode import WriteId

_MARIADB = re.compile(r"\s*[0-9]+-[0-9]+-[0-9]+\s*(?:,\s*[0-9]+-[0-9]+-[0-9]+\s*)*")
#: The largest number of a transaction of MySQL's.
_MOST_NUMBER = 2**63 - 2


@of_an_event
def lineage(datastore: str, *, gtid: str, timeout: float = 5.0) -> Lineage:
    """What an event depends on that was read from a binary log: the transaction that emitted it.

    MySQL's numbers may have gaps: where they begin is asked of the primary, unless a client here
    knows it already. MariaDB's name their place alone. An event without a GTID, such as one of a
    trigger's, takes ``antipode.as_of_now()``.

    Args:
        datastore: the name that every service spells alike.
        gtid: of the transaction, as ``SHOW BINLOG EVENTS`` and readers of binary logs spell it:
            MySQL's ``uuid:number`` or ``uuid:tag:number``, MariaDB's ``domain-server-number``. A
            set of several stands for all of them.
        timeout: seconds that the primary may take.

    Returns:
        The transaction; incomplete (``unsampled``) where the primary does not answer. One of
        another history has an entry that barriers refuse (``unknown_log``, ``lost``).

    Raises:
        ValueError: *gtid* is none.
        ConfigurationError: the numbers may have gaps, and no client here reaches the primary.
    """
    if not isinstance(gtid, str):
        raise GtidError(f"gtid must be a text, not {gtid!r}")
    if _MARIADB.fullmatch(gtid):
        return Lineage(_checked(Flavor.MARIADB, gtid, Runs(), datastore))
    _checked(Flavor.MYSQL, gtid, Runs(), datastore)  # Before anybody is asked.
    if (runs := _known(datastore)) is None:
        found = positions_now(datastore, timeout_s=timeout)
        if found is None or (runs := _known(datastore)) is None:
            return Lineage(incomplete=[(datastore, "unsampled")])
    return Lineage(_checked(Flavor.MYSQL, gtid, runs, datastore))


def _checked(flavor: Flavor, gtid: str, runs: Runs, datastore: str) -> tuple[WriteId, ...]:
    """The writes of *gtid*.

    Raises:
        GtidError: it names none.
    """
    found = minted(flavor, gtid, runs, datastore=datastore, hour=SYSTEM_CLOCK.hour())
    numbers = [int(write.version) for write in found]
    most = _MOST_NUMBER if flavor is Flavor.MYSQL else 2**64 - 1
    if not numbers or not all(0 < number <= most for number in numbers):
        raise GtidError(f"{gtid[:80]!r} names no transaction")
    return found


def _known(datastore: str) -> Runs | None:
    """Where runs of numbers begin, as a client here found; of the primary where there is one."""
    shims = [each for each in shims_of(datastore) if isinstance(each, BaseMySQLShim)]
    shims.sort(key=lambda each: each.reads_from != "primary")
    return next((each.runs for each in shims if each.runs.known), None)
