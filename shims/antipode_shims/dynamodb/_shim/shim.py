"""Table 2 over boto3: items with their lineage beside the value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode.shim import StaleRead, recorded, register, shared_watcher
from antipode_shims._aws import is_async
from antipode_shims._aws.botocore import Settings, own_call
from antipode_shims.dynamodb._clients.botocore import low_level
from antipode_shims.dynamodb._promises import TABLE
from antipode_shims.dynamodb._table2 import DynamoDBTable2

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import Lineage, Promise
    from antipode.shim import OnRead, ReadsFrom


class DynamoDBShim(DynamoDBTable2):
    """Table 2 of one table, synchronous. Made by :func:`shim`."""

    def __init__(self, datastore: str, client: Any, **options: Any) -> None:
        """Use *client*."""
        super().__init__(datastore, settings=Settings.of(client), **options)
        self._client = client

    @recorded("write")
    def write(
        self,
        key: str,
        value: Any,
        lineage: Lineage | None = None,
        *,
        fulfils: Promise | str | None = None,
    ) -> Lineage:
        """Put the item *key* with *value*, its lineage beside it, in one request.

        Whatever else was in the item goes.

        Args:
            key: the value of the partition key.
            value: what boto3's ``TypeSerializer`` takes: text, bytes, ``Decimal``, lists, maps.
            lineage: what the value depends on; default the current lineage.
            fulfils: a promise, or its ``token``, that is fulfilled in the same transaction.

        Returns:
            The lineage with this write in it; it enters the current scope as well.

        Raises:
            botocore.exceptions.ClientError: the service refused it, and nothing was written.
            botocore.exceptions.BotoCoreError: without an answer the scope becomes ``incomplete``.
            TypeError: *key* is no text, or *value* nothing that an attribute can hold.
        """
        base = self.base(lineage)
        request, write = self.put(key, value, base)
        if fulfils is not None:
            request = self.keeping(request, write, fulfils)
            return self._send(self._client.transact_write_items, request, write, base)
        return self._send(self._client.put_item, request, write, base)

    @recorded("delete")
    def delete(self, key: str, lineage: Lineage | None = None) -> Lineage:
        """Delete the item *key*, in one request. Nothing stays: who finds no item depends on none.

        Raises:
            botocore.exceptions.ClientError: as :meth:`write`.
            botocore.exceptions.BotoCoreError: as :meth:`write`.
        """
        base = self.base(lineage)
        request, write = self.removal(key, base)
        return self._send(self._client.delete_item, request, write, base)

    def _send(self, call: Any, request: dict[str, Any], write: Any, base: Lineage) -> Lineage:
        try:
            with own_call():
                call(**request)
        except BaseException as error:
            self.failed(error)
            raise
        return self.done(write, base)

    @recorded("read")
    def read(self, key: str) -> tuple[Any, Lineage]:
        """The value of *key*, None when there is none, and what it depends on.

        One consistent request in the client's region. Under a floor it is held back until that
        region shows the floor.

        Returns:
            The value, and the lineage stored beside it with the write that it shows; merged into
            the current scope unless ``on_read="ignore"``.

        Raises:
            UnmetError: a floor was not met.
            botocore.exceptions.ClientError: as boto3 does.
        """
        request = self.asked(key)
        stale = StaleRead()
        if (held := self.held(stale)) is not None:
            held.hold(lambda _: self.observing(held), watcher=shared_watcher(self))
        with own_call():
            told = self._client.get_item(**request)
        stale.answered()
        return self.seen(key, told.get("Item"))


def shim(
    datastore: str,
    client: Any,
    *,
    table: str,
    key: str = "id",
    field: str = "value",
    reads_from: ReadsFrom = "primary",
    on_read: OnRead = "merge",
    regions: Mapping[str, str] | None = None,
    promise_table: str = TABLE,
) -> DynamoDBShim:
    """Register Table 2's ``write``, ``read`` and ``wait`` for one table.

    Args:
        datastore: the name that every service spells alike.
        client: a client of boto3, ``boto3.client("dynamodb")``, or a resource.
        table: the table's name; it has no sort key.
        key: the name of its partition key, of type ``S``.
        field: the attribute in which values are.
        reads_from: ``replica`` where what it reads is written in other regions, else ``primary``.
        on_read: ``merge`` adds what a read finds to the current scope; ``ignore`` does not.
        regions: endpoint URLs of the other regions by their names, where they are not AWS's own.
        promise_table: where records of promises are.

    Raises:
        ConfigurationError: an asyncio client, a bad option, or boto3 is missing.
    """
    made = DynamoDBShim(
        datastore,
        plain_of(client, asynchronous=False),
        table=table,
        key=key,
        field=field,
        reads_from=reads_from,
        on_read=on_read,
        regions=regions or {},
        promise_table=promise_table,
    )
    register(made)
    return made


def plain_of(client: Any, *, asynchronous: bool) -> Any:
    """The low-level client of *client*.

    Raises:
        ConfigurationError: it is none of DynamoDB, or of the other API.
    """
    found = low_level(client)
    if is_async(found) != asynchronous:
        called, other = ("shim", "shim_async")[:: -1 if asynchronous else 1]
        msg = f"dynamodb.{called}() got a client of the other API: use dynamodb.{other}()"
        raise ConfigurationError(msg)
    return found
