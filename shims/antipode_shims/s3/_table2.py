"""What writing and reading with the lineage beside the value mean, without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, Lineage, current
from antipode.shim import (
    config,
    count,
    floor,
    lineage_not_stored,
    mark_incomplete,
    record_read,
    record_shown,
    record_write,
)
from antipode_shims._aws.botocore import client_error, code_of, in_doubt

from ._format import labelled, lineage_in
from ._position import NO_VERSION, Place
from ._shim.base import BaseS3Shim

if TYPE_CHECKING:
    from antipode import WriteId
    from antipode.shim import Floor, StaleRead

_MISSING = "NoSuchKey"


class S3Table2(BaseS3Shim):
    """What the synchronous and the asyncio shim share."""

    def __init__(self, datastore: str, *, bucket: str, **options: Any) -> None:
        """Store values as objects of *bucket*.

        Raises:
            ConfigurationError: it is no bucket's name, such as an ARN.
        """
        super().__init__(datastore, **options)
        if Place.of(bucket, "key", self.region) is None:
            msg = f"bucket must be the name of a bucket, not {bucket!r}"
            raise ConfigurationError(msg)
        self.keyspace = bucket

    def base(self, lineage: Lineage | None) -> Lineage:
        """What a write stores: *lineage*, default the current one."""
        return current() if lineage is None else lineage

    def named(self, key: object) -> dict[str, Any]:
        """The parameters that name the object of *key*.

        Raises:
            TypeError: *key* is no text.
        """
        if not isinstance(key, str):
            msg = f"key must be a str, not {type(key).__name__}"
            raise TypeError(msg)
        return {"Bucket": self.keyspace, "Key": key}

    def put(self, key: str, value: bytes | str, lineage: Lineage) -> dict[str, Any]:
        """The request that writes."""
        body = value.encode() if isinstance(value, str) else bytes(value)
        request = {**self.named(key), "Body": body}
        # A recorder of histories puts a note into the text.
        if not lineage.empty or config().history_dir is not None:
            metadata = labelled({}, lineage)
            if metadata is None:
                lineage_not_stored(self.datastore, "write")
            else:
                request["Metadata"] = metadata
        return request

    def done(self, key: str, reply: dict[str, Any], lineage: Lineage) -> Lineage:
        """*lineage* with the write in it that *reply* confirms, which enters the scope as well."""
        version = reply.get("VersionId", NO_VERSION)
        if version == NO_VERSION:
            count("uncovered_write", self.datastore)
            mark_incomplete(self.datastore, "unsampled")
            return lineage.merge(Lineage(incomplete=[(self.datastore, "unsampled")]))
        write = self.written(self._place(key), version)
        record_write(write)
        return lineage.append(write)

    def failed(self, error: BaseException) -> None:
        """Take in that a write ended without a reply, or with a refusal."""
        if in_doubt(error):
            mark_incomplete(self.datastore, "in_doubt")

    def held(self, stale: StaleRead) -> Floor | None:
        """What the read that *stale* is of must see and this region was not just seen to show."""
        found = floor(self, stale=stale)
        if found is not None and self.is_proved(found):
            found.passed()
            return None
        return found

    def is_absent(self, error: Exception) -> bool:
        """Whether *error* says that there is no object, which a deleted one is not either."""
        is_refusal = isinstance(error, client_error())
        return is_refusal and code_of(getattr(error, "response", {})) == _MISSING

    def seen(self, key: str, value: bytes, reply: dict[str, Any]) -> tuple[bytes, Lineage]:
        """*value*, and what it depends on."""
        lineage = lineage_in(reply.get("Metadata"), self.datastore)
        version = reply.get("VersionId", NO_VERSION)
        if version != NO_VERSION:
            write = self._shown(self._place(key), version)
            record_shown(self, write)
            lineage = lineage.append(write)
        if self.on_read == "merge":
            record_read(lineage)
        return value, lineage

    def _shown(self, place: Place, version: str) -> WriteId:
        """The write that a read showed, by the name that its request knows, if it does."""
        return next(
            (each for each in current().only(self.datastore) if each.version == version),
            self.written(place, version),
        )

    def _place(self, key: str) -> Place:
        return Place(self.keyspace, key, self.region)
