"""What writing and reading with the lineage beside the value mean, without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, Lineage, WriteId, current
from antipode.shim import (
    config,
    floor,
    mark_incomplete,
    record_read,
    record_shown,
    record_write,
    stored_text,
)
from antipode_shims._aws.botocore import in_doubt

from ._format import LINEAGE, OURS, STAMP, lineage_in, stamp_of
from ._position import hour_of, item_of
from ._promises import naming, record
from ._shim.base import BaseDynamoDBShim

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import Promise
    from antipode.shim import Floor, StaleRead

    from ._position import Item


class DynamoDBTable2(BaseDynamoDBShim):
    """What the synchronous and the asyncio shim share."""

    def __init__(self, datastore: str, *, table: str, key: str, field: str, **options: Any) -> None:
        """Store values in the attribute *field* of the items of *table*, by the string *key*.

        Raises:
            ConfigurationError: the two are one, or are ours.
        """
        super().__init__(datastore, **options)
        if key == field or not key or not field or OURS & {key, field}:
            msg = f"key and field must be two names other than {STAMP!r} and {LINEAGE!r}"
            raise ConfigurationError(msg)
        self.keyspace = table
        self._key, self._field = key, field

    def base(self, lineage: Lineage | None) -> Lineage:
        """What a write stores: *lineage*, default the current one."""
        return current() if lineage is None else lineage

    def put(self, key: str, value: Any, lineage: Lineage) -> tuple[dict[str, Any], WriteId]:
        """The request that writes, and the write that it will have been."""
        stamp = self.stamp(lineage.merge(current()))
        item = {
            self._key: {"S": key},
            self._field: _serialized(value),
            STAMP: {"N": str(stamp)},
        }
        # A recorder of histories puts a note into the text.
        if not lineage.empty or config().history_dir is not None:
            item[LINEAGE] = {"S": stored_text(lineage)}
        return {"TableName": self.keyspace, "Item": item}, self.written(self._item(key), stamp)

    def keeping(
        self, request: dict[str, Any], write: WriteId, promise: Promise | str
    ) -> dict[str, Any]:
        """The transaction that makes the put of *request*, and fulfils *promise*.

        Raises:
            LineageDecodeError: *promise* is a text and no token.
        """
        kept = naming(record(promise, table=self.promise_table), [write])
        return {"TransactItems": [{"Put": request}, {"Put": kept}]}

    def removal(self, key: str, lineage: Lineage) -> tuple[dict[str, Any], WriteId]:
        """The request that deletes, and the write that it will have been."""
        item = self._item(key)
        stamp = self.stamp(lineage.merge(current()), deleted=True)
        return {"TableName": self.keyspace, "Key": item.wire}, self.written(item, stamp)

    def done(self, write: WriteId, lineage: Lineage) -> Lineage:
        """*lineage* with *write* in it, which enters the scope as well."""
        record_write(write)
        return lineage.append(write)

    def failed(self, error: BaseException) -> None:
        """Take in that a write ended without a reply, or with a refusal."""
        if in_doubt(error):
            mark_incomplete(self.datastore, "in_doubt")

    def asked(self, key: str) -> dict[str, Any]:
        """The request that reads."""
        return {"TableName": self.keyspace, "Key": self._item(key).wire, "ConsistentRead": True}

    def held(self, stale: StaleRead) -> Floor | None:
        """What the read that *stale* is of must see and this region was not just seen to show."""
        found = floor(self, stale=stale)
        if found is not None and self.is_proved(found):
            found.passed()
            return None
        return found

    def seen(self, key: str, item: Mapping[str, Any] | None) -> tuple[Any, Lineage]:
        """The value of *item*, and what it depends on."""
        if item is None:
            return None, Lineage()
        lineage = lineage_in(item, self.datastore)
        stamp = stamp_of(item.get(STAMP))
        if stamp is not None:
            write = self._shown(self._item(key), stamp)
            record_shown(self, write)
            lineage = lineage.append(write)
        if self.on_read == "merge":
            record_read(lineage)
        return _value(item.get(self._field)), lineage

    def _shown(self, item: Item, stamp: int) -> WriteId:
        """The write that a read showed, by the name that its request knows, if it does."""
        named = item.named("")
        for held in current().only(self.datastore):
            if held.version == stamp and held.key.startswith(named):
                return held
        return WriteId(self.datastore, item.named(self.region), stamp, hour_of(stamp))

    def _item(self, key: str) -> Item:
        """The item of *key*.

        Raises:
            TypeError: *key* is no text.
        """
        found = item_of(self.keyspace, {self._key: key}) if isinstance(key, str) else None
        if found is None:
            msg = f"key must be a str, not {type(key).__name__}"
            raise TypeError(msg)
        return found


def _serialized(value: Any) -> Any:
    from boto3.dynamodb.types import TypeSerializer

    return TypeSerializer().serialize(value)


def _value(attribute: Any) -> Any:
    """What an attribute holds; bytes as bytes."""
    if attribute is None:
        return None
    if "B" in attribute:
        return bytes(attribute["B"])
    from boto3.dynamodb.types import TypeDeserializer

    return TypeDeserializer().deserialize(attribute)
