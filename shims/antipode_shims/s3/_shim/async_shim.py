"""Table 2 over aiobotocore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import Lineage
from antipode.shim import StaleRead, recorded, register
from antipode_shims._aws.async_hooks import hold
from antipode_shims._aws.botocore import Settings, own_call
from antipode_shims.s3._table2 import S3Table2

from .shim import plain_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode.shim import OnRead, ReadsFrom


class S3AsyncShim(S3Table2):
    """Table 2 of one bucket over asyncio. Made by :func:`shim_async`."""

    def __init__(self, datastore: str, client: Any, **options: Any) -> None:
        """Use *client*."""
        super().__init__(datastore, settings=Settings.of(client), **options)
        self._client = client

    @recorded("write")
    async def write(self, key: str, value: bytes | str, lineage: Lineage | None = None) -> Lineage:
        """As ``S3Shim.write``; cancelled in flight, the scope becomes ``incomplete``."""
        base = self.base(lineage)
        return await self._send(self._client.put_object, self.put(key, value, base), base)

    @recorded("delete")
    async def delete(self, key: str, lineage: Lineage | None = None) -> Lineage:
        """As ``S3Shim.delete``."""
        base = self.base(lineage)
        return await self._send(self._client.delete_object, self.named(key), base)

    async def _send(self, call: Any, request: dict[str, Any], base: Lineage) -> Lineage:
        try:
            with own_call():
                reply = await call(**request)
        except BaseException as error:
            self.failed(error)
            raise
        return self.done(request["Key"], reply, base)

    @recorded("read")
    async def read(self, key: str) -> tuple[bytes | None, Lineage]:
        """As ``S3Shim.read``."""
        request = self.named(key)
        stale = StaleRead()
        if (held := self.held(stale)) is not None:
            await hold(self, held)
        try:
            with own_call():
                reply = await self._client.get_object(**request)
                async with reply["Body"] as body:
                    value = await body.read()
        except Exception as error:
            if not self.is_absent(error):
                raise
            stale.answered()
            return None, Lineage()
        stale.answered()
        return self.seen(key, value, reply)

    async def aclose(self) -> None:
        """Unregister and close the library's own clients; the application's stays. Idempotent."""
        self.close()


def shim_async(
    datastore: str,
    client: Any,
    *,
    bucket: str,
    reads_from: ReadsFrom = "primary",
    on_read: OnRead = "merge",
    regions: Mapping[str, str] | None = None,
    buckets: Mapping[str, str] | None = None,
) -> S3AsyncShim:
    """The asyncio twin of :func:`shim`, of a client of aiobotocore.

    Raises:
        ConfigurationError: as :func:`shim`.
    """
    made = S3AsyncShim(
        datastore,
        plain_of(client, asynchronous=True),
        bucket=bucket,
        reads_from=reads_from,
        on_read=on_read,
        regions=regions or {},
        buckets=buckets or {},
    )
    register(made)
    return made
