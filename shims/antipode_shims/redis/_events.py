"""The lineage of an event that the store emits: what was read from its replication stream."""

from __future__ import annotations

from antipode import Lineage, WriteId
from antipode.shim import SYSTEM_CLOCK, of_an_event, positions_now

from ._position import REPLID

_MOST_OFFSET = 2**63 - 1


@of_an_event
def lineage(
    datastore: str, *, offset: int, replid: str | None = None, timeout: float = 5.0
) -> Lineage:
    """What an event depends on that was read from the replication stream, as replicas read it.

    Keyspace events, messages of Pub/Sub and entries of a stream name no position: they take
    ``antipode.as_of_now()``.

    Args:
        datastore: the name that every service spells alike.
        offset: how many bytes of the replication stream there were after the command.
        replid: the replication id that they are counted in, as the answer to ``PSYNC`` has it;
            None: the primary's, which is asked for each event.
        timeout: seconds that the primary may take.

    Returns:
        The write; incomplete (``unsampled``) where the primary does not answer, or has no replica.
        One of another history has an entry that barriers refuse (``unknown_log``, ``lost``).

    Raises:
        ValueError: *offset* or *replid* is none.
        ConfigurationError: *replid* is not given, and no client here reaches the primary.
    """
    if isinstance(offset, bool) or not isinstance(offset, int) or not 0 < offset <= _MOST_OFFSET:
        raise ValueError(f"offset must be a number of bytes, not {offset!r}")
    if replid is None:
        found = positions_now(datastore, timeout_s=timeout) or ()
        logs = {write.key for write in found}
        if len(logs) != 1:
            return Lineage(incomplete=[(datastore, "unsampled")])
        (replid,) = logs
    elif not isinstance(replid, str) or not REPLID.fullmatch(replid):
        raise ValueError(f"replid must be 40 hexadecimal digits, not {replid!r}")
    return Lineage([WriteId(datastore, replid, offset, SYSTEM_CLOCK.hour())])
