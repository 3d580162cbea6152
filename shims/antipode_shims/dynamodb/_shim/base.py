"""What every DynamoDB shim of this process has: stamps, and the regions of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import WriteId
from antipode_shims._aws.shim import RegionShim
from antipode_shims.dynamodb._endpoint import DynamoDBRegions
from antipode_shims.dynamodb._position import STAMPER
from antipode_shims.dynamodb._promises import TABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import Lineage
    from antipode_shims._aws.botocore import Settings
    from antipode_shims.dynamodb._position import Item


class BaseDynamoDBShim(RegionShim):
    """One region of global tables, or of tables that are in one region alone.

    Attributes:
        promise_table: where records of promises are.
    """

    promises = True
    system = "aws.dynamodb"

    def __init__(
        self,
        datastore: str,
        settings: Settings,
        *,
        regions: Mapping[str, str],
        promise_table: str = TABLE,
        **options: Any,
    ) -> None:
        """Adopt the options; connects to nothing.

        Args:
            datastore: the name that every service spells alike.
            settings: how to reach the client's region.
            regions: endpoint URLs of the other regions, where they are not AWS's own.
            promise_table: where records of promises are.
            options: as `RegionShim`.

        Raises:
            ConfigurationError: an option is not one of its values.
        """
        polled = DynamoDBRegions(settings, regions, promise_table=promise_table)
        super().__init__(datastore, settings, polled, **options)
        self.promise_table = promise_table

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
