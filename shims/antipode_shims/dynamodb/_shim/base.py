"""What every DynamoDB shim of this process has: a datastore, a region, its registration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode import Status, WriteId
from antipode.shim import Observation, ServerShim, Unreachable
from antipode_shims.dynamodb._endpoint import DynamoDBEndpoint, Regions
from antipode_shims.dynamodb._position import STAMPER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import Lineage
    from antipode.shim import Endpoint, Floor, OnRead, ReadsFrom
    from antipode_shims.dynamodb._clients.botocore import Settings
    from antipode_shims.dynamodb._position import Item

#: Seconds for which what a region showed counts for further reads of the same request.
PROVED_S = 2.0
#: Seconds for which a look that missed something counts for reads whose time is up.
RECENT_S = 0.05


class BaseDynamoDBShim(ServerShim):
    """One region of global tables, or of tables that are in one region alone.

    Attributes:
        region: its name.
        regions: the library's own clients.
    """

    def __init__(
        self,
        datastore: str,
        settings: Settings,
        *,
        regions: Mapping[str, str],
        reads_from: ReadsFrom = "primary",
        on_read: OnRead = "merge",
    ) -> None:
        """Take over the options; connects to nothing.

        Args:
            datastore: the name that every service spells alike.
            settings: how to reach the client's region.
            regions: endpoint URLs of the other regions, where they are not AWS's own.
            reads_from: ``primary`` or ``replica``.
            on_read: ``merge`` or ``ignore``.

        Raises:
            ConfigurationError: an option is not one of its values.
        """
        super().__init__(datastore, server=settings.where, reads_from=reads_from, on_read=on_read)
        self.fences = False  # Each item has its own versions: no position stands for all writes.
        self.region = settings.region
        self.regions = Regions(settings, regions)
        self._last: tuple[float, frozenset[WriteId], Observation] | None = None

    def open_endpoint(self, *, timeout_s: float) -> Endpoint:
        """Look at the region; connects at the first look."""
        del timeout_s
        return DynamoDBEndpoint(self.regions)

    def close(self) -> None:
        """Unregister and close the library's own clients. Idempotent."""
        super().close()
        self.regions.close()

    def stamp(self, lineage: Lineage, *, deleted: bool = False) -> int:
        """A stamp for a write of a request that depends on *lineage*: later than what it saw."""
        seen = (
            write.version
            for write in lineage.only(self.datastore)
            if isinstance(write.version, int)
        )
        return STAMPER.next(deleted=deleted, after=max(seen, default=0))

    def written(self, item: Item, stamp: int) -> WriteId:
        """The write of *item* that has *stamp*."""
        return WriteId(self.datastore, item.named(self.region), stamp, self.clock.hour())

    def is_proved(self, held: Floor) -> bool:
        """Whether this region showed all that *held* demands, a moment ago."""
        return held.proved(self.region, within_s=PROVED_S)

    def observing(self, held: Floor) -> Observation:
        """One look at what *held* demands; where its time is up, the last one, if it is recent.

        Reads that are answered stale, one after the other, need not pay for a look each.
        """
        now_s = self.clock.monotonic()
        if held.left_s <= 0 and self._last is not None:
            at_s, writes, observation = self._last
            if writes == held.writes and now_s - at_s < RECENT_S:
                return observation
        try:
            observation = self.regions.observe(held.writes)
        except Unreachable as error:  # Worth repeating, within the time of the read.
            statuses = dict.fromkeys(held.writes, Status.NOT_YET)
            causes = dict.fromkeys(held.writes, str(error))
            return Observation(self.region, statuses, causes=causes)
        self._last = now_s, held.writes, observation
        return observation
