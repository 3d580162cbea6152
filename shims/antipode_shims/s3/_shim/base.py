"""What every S3 shim of this process has: versions, and the buckets that have copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import WriteId
from antipode_shims._aws.shim import RegionShim
from antipode_shims.s3._endpoint import S3Regions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_shims._aws.botocore import Settings
    from antipode_shims.s3._position import Place


class BaseS3Shim(RegionShim):
    """The buckets of one region."""

    def __init__(
        self,
        datastore: str,
        settings: Settings,
        *,
        regions: Mapping[str, str],
        buckets: Mapping[str, str],
        **options: Any,
    ) -> None:
        """Adopt the options; connects to nothing.

        Args:
            datastore: the name that every service spells alike.
            settings: how to reach the client's region.
            regions: endpoint URLs of the other regions, where they are not AWS's own.
            buckets: for buckets of other regions, the one here that has their copies.
            options: as `RegionShim`.

        Raises:
            ConfigurationError: an option is not one of its values.
        """
        super().__init__(datastore, settings, S3Regions(settings, regions, buckets), **options)

    def written(self, place: Place, version: str) -> WriteId:
        """The write that made *version* of the object at *place*."""
        return WriteId(self.datastore, place.named, version, self.clock.hour())
