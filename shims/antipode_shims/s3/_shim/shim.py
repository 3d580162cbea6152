"""Table 2 over boto3: objects with their lineage beside the value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError, Lineage
from antipode.shim import StaleRead, recorded, register, shared_watcher
from antipode_shims._aws import is_async
from antipode_shims._aws.botocore import Settings, own_call
from antipode_shims.s3._clients.botocore import low_level
from antipode_shims.s3._table2 import S3Table2

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode.shim import OnRead, ReadsFrom


class S3Shim(S3Table2):
    """Table 2 of one bucket, synchronous. Made by :func:`shim`."""

    def __init__(self, datastore: str, client: Any, **options: Any) -> None:
        """Use *client*."""
        super().__init__(datastore, settings=Settings.of(client), **options)
        self._client = client

    @recorded("write")
    def write(self, key: str, value: bytes | str, lineage: Lineage | None = None) -> Lineage:
        """Put the object *key* with *value*, its lineage in the metadata, in one request.

        Args:
            key: of the object.
            value: its content; a text is stored as UTF-8.
            lineage: what the value depends on; default the current lineage.

        Returns:
            The lineage with this write in it; it enters the current scope as well. Where the bucket
            is not versioned, both are ``incomplete`` instead.

        Raises:
            botocore.exceptions.ClientError: the service refused it, and nothing was written.
            botocore.exceptions.BotoCoreError: without an answer the scope becomes ``incomplete``.
            TypeError: *key* is no text, or *value* has no bytes.
        """
        base = self.base(lineage)
        return self._send(self._client.put_object, self.put(key, value, base), base)

    @recorded("delete")
    def delete(self, key: str, lineage: Lineage | None = None) -> Lineage:
        """Delete the object *key*: its bucket gets a delete marker, for which readers can wait.

        A marker has no metadata: who finds no object depends on none.

        Raises:
            botocore.exceptions.ClientError: as :meth:`write`.
            botocore.exceptions.BotoCoreError: as :meth:`write`.
        """
        base = self.base(lineage)
        return self._send(self._client.delete_object, self.named(key), base)

    def _send(self, call: Any, request: dict[str, Any], base: Lineage) -> Lineage:
        try:
            with own_call():
                reply = call(**request)
        except BaseException as error:
            self.failed(error)
            raise
        return self.done(request["Key"], reply, base)

    @recorded("read")
    def read(self, key: str) -> tuple[bytes | None, Lineage]:
        """The content of the object *key*, None when there is none, and what it depends on.

        One request in the client's region. Under a floor it is held back until that region shows
        the floor.

        Returns:
            The content, and the lineage stored beside it with the write that it shows; merged into
            the current scope unless ``on_read="ignore"``.

        Raises:
            UnmetError: a floor was not met.
            botocore.exceptions.ClientError: as boto3 does.
        """
        request = self.named(key)
        stale = StaleRead()
        if (held := self.held(stale)) is not None:
            held.hold(lambda _: self.observing(held), watcher=shared_watcher(self))
        try:
            with own_call():
                reply = self._client.get_object(**request)
                value = reply["Body"].read()
        except Exception as error:
            if not self.is_absent(error):
                raise
            stale.answered()
            return None, Lineage()
        stale.answered()
        return self.seen(key, value, reply)


def shim(
    datastore: str,
    client: Any,
    *,
    bucket: str,
    reads_from: ReadsFrom = "primary",
    on_read: OnRead = "merge",
    regions: Mapping[str, str] | None = None,
    buckets: Mapping[str, str] | None = None,
) -> S3Shim:
    """Register Table 2's ``write``, ``read`` and ``wait`` for one bucket.

    Args:
        datastore: the name that every service spells alike.
        client: a client of boto3, ``boto3.client("s3")``, or a resource.
        bucket: its name; it is versioned.
        reads_from: ``replica`` where what it reads is written in other regions, else ``primary``.
        on_read: ``merge`` adds what a read finds to the current scope; ``ignore`` does not.
        regions: endpoint URLs of the other regions by their names, where they are not AWS's own.
        buckets: for buckets of other regions by their names, the one here that has their copies.

    Raises:
        ConfigurationError: an asyncio client, a bad option, or boto3 is missing.
    """
    made = S3Shim(
        datastore,
        plain_of(client, asynchronous=False),
        bucket=bucket,
        reads_from=reads_from,
        on_read=on_read,
        regions=regions or {},
        buckets=buckets or {},
    )
    register(made)
    return made


def plain_of(client: Any, *, asynchronous: bool) -> Any:
    """The low-level client of *client*.

    Raises:
        ConfigurationError: it is none of S3, or of the other API.
    """
    found = low_level(client)
    if is_async(found) != asynchronous:
        called, other = ("shim", "shim_async")[:: -1 if asynchronous else 1]
        msg = f"s3.{called}() got a client of the other API: use s3.{other}()"
        raise ConfigurationError(msg)
    return found
