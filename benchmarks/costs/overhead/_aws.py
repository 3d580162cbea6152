"""The clients of DynamoDB and S3, over emulators (ministack), not over AWS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode_shims import dynamodb, s3
from antipode_testing.servers.emulated import EmulatedTopology

from ._clients import DATASTORE, VALUE, versions

if TYPE_CHECKING:
    from antipode.shim import ReadsFrom

    from ._clients import Server

#: What every topology of either service has.
_PLACE = "posts"


def boto3_client(service: str, server: Server) -> Any:  # noqa: ANN401 - boto3 has no annotations
    """A plain client of the first region."""
    import boto3

    return boto3.client(
        service,
        region_name=EmulatedTopology.regions[0],
        endpoint_url=f"http://{server.address}",
        **EmulatedTopology.credentials,
    )


class DynamoDBClient:
    """boto3: ``PutItem`` and ``GetItem``."""

    def __init__(
        self, server: Server, *, instrumented: bool, reads_from: ReadsFrom = "primary"
    ) -> None:
        self._client = boto3_client("dynamodb", server)
        if instrumented:
            dynamodb.instrument_client(self._client, datastore=DATASTORE, reads_from=reads_from)

    def write(self, number: int) -> None:
        version = str(next(versions))
        item = {"id": {"S": f"{number}"}, "value": {"B": VALUE}, "version": {"N": version}}
        self._client.put_item(TableName=_PLACE, Item=item)

    def read(self, number: int) -> None:
        self._client.get_item(TableName=_PLACE, Key={"id": {"S": f"{number}"}})

    def close(self) -> None:
        dynamodb.uninstrument_client(self._client)
        self._client.close()


class S3Client:
    """boto3: ``PutObject`` and ``GetObject``."""

    def __init__(
        self, server: Server, *, instrumented: bool, reads_from: ReadsFrom = "primary"
    ) -> None:
        self._client = boto3_client("s3", server)
        if instrumented:
            s3.instrument_client(self._client, datastore=DATASTORE, reads_from=reads_from)

    def write(self, number: int) -> None:
        self._client.put_object(Bucket=_PLACE, Key=f"overhead-{number}", Body=VALUE)

    def read(self, number: int) -> None:
        self._client.get_object(Bucket=_PLACE, Key=f"overhead-{number}")["Body"].read()

    def close(self) -> None:
        s3.uninstrument_client(self._client)
        self._client.close()
