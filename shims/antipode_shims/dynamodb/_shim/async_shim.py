"""Table 2 over aiobotocore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode.shim import StaleRead, recorded, register
from antipode_shims._aws.async_hooks import hold
from antipode_shims._aws.botocore import Settings, own_call
from antipode_shims.dynamodb._promises import TABLE
from antipode_shims.dynamodb._table2 import DynamoDBTable2

from .shim import plain_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import Lineage, Promise
    from antipode.shim import OnRead, ReadsFrom


class DynamoDBAsyncShim(DynamoDBTable2):
    """Table 2 of one table over asyncio. Made by :func:`shim_async`."""

    def __init__(self, datastore: str, client: Any, **options: Any) -> None:
        """Use *client*."""
        super().__init__(datastore, settings=Settings.of(client), **options)
        self._client = client

    @recorded("write")
    async def write(
        self,
        key: str,
        value: Any,
        lineage: Lineage | None = None,
        *,
        fulfils: Promise | str | None = None,
    ) -> Lineage:
        """As ``DynamoDBShim.write``; cancelled in flight, the scope becomes ``incomplete``."""
        base = self.base(lineage)
        request, write = self.put(key, value, base)
        if fulfils is not None:
            request = self.keeping(request, write, fulfils)
            return await self._send(self._client.transact_write_items, request, write, base)
        return await self._send(self._client.put_item, request, write, base)

    @recorded("delete")
    async def delete(self, key: str, lineage: Lineage | None = None) -> Lineage:
        """As ``DynamoDBShim.delete``."""
        base = self.base(lineage)
        request, write = self.removal(key, base)
        return await self._send(self._client.delete_item, request, write, base)

    async def _send(self, call: Any, request: dict[str, Any], write: Any, base: Lineage) -> Lineage:
        try:
            with own_call():
                await call(**request)
        except BaseException as error:
            self.failed(error)
            raise
        return self.done(write, base)

    @recorded("read")
    async def read(self, key: str) -> tuple[Any, Lineage]:
        """As ``DynamoDBShim.read``."""
        request = self.asked(key)
        stale = StaleRead()
        if (held := self.held(stale)) is not None:
            await hold(self, held)
        with own_call():
            told = await self._client.get_item(**request)
        stale.answered()
        return self.seen(key, told.get("Item"))

    async def aclose(self) -> None:
        """Unregister and close the library's own clients; the application's stays. Idempotent."""
        self.close()


def shim_async(
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
) -> DynamoDBAsyncShim:
    """The asyncio twin of :func:`shim`, of a client of aiobotocore.

    Raises:
        ConfigurationError: as :func:`shim`.
    """
    made = DynamoDBAsyncShim(
        datastore,
        plain_of(client, asynchronous=True),
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
