"""``instrument_client``: existing code keeps its client and its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

from antipode import ConfigurationError
from antipode.shim import switchable
from antipode_shims._aws.botocore import Settings
from antipode_shims._aws.instrument import instrument, is_instrumented, uninstrument

from ._clients.botocore import low_level
from ._clients.call import Calls
from ._clients.transfer import follow_transfers
from ._shim.base import BaseS3Shim

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode.shim import Barriers, ReadsFrom

ClientT = TypeVar("ClientT")


class InstrumentedShim(BaseS3Shim):
    """What an instrumented client registers."""


@switchable
def instrument_client(
    client: ClientT,
    *,
    datastore: str,
    lineage: Literal["none", "beside"] = "none",
    reads_from: ReadsFrom = "primary",
    regions: Mapping[str, str] | None = None,
    buckets: Mapping[str, str] | None = None,
    barriers: Barriers | None = None,
) -> ClientT:
    """Let the writes of *client* enter the current lineage, and its reads wait for floors.

    It works for whatever uses the client: a resource with its buckets and objects, paginators,
    waiters, and transfers (``upload_file``, ``copy``, ...), whose threads are of the request that
    started them. Buckets are versioned: a write's version is its ``VersionId``.

    Args:
        client: a client, a resource, a ``Bucket`` or an ``Object`` of boto3, or a client of
            aiobotocore.
        datastore: the name that every service spells alike.
        lineage: ``beside`` stores the current lineage in the metadata of each object that is put,
            and merges what lies in those that are read. A copy then asks for its source.
        reads_from: ``replica`` where what it reads is written in other regions, else ``primary``.
        regions: endpoint URLs of the other regions by their names, where they are not AWS's own.
        buckets: for buckets of other regions by their names, the one here that has their copies.
        barriers: ``auto`` or ``explicit``, for this client; None: as configured.

    Returns:
        The same object. Instrumenting it again changes nothing.

    Raises:
        ConfigurationError: no client of S3, another datastore than before, *lineage* is neither of
            the two, or boto3 is missing.
    """
    if lineage not in ("none", "beside"):
        msg = f"lineage must be 'none' or 'beside', not {lineage!r}"
        raise ConfigurationError(msg)
    plain = low_level(client)
    if is_instrumented(plain, datastore):
        return client
    follow_transfers()
    shim = InstrumentedShim(
        datastore,
        Settings.of(plain),
        regions=regions or {},
        buckets=buckets or {},
        reads_from=reads_from,
    )
    instrument(plain, shim, Calls(shim, stores=lineage == "beside"), barriers=barriers)
    return client


def uninstrument_client(client: Any) -> None:
    """Undo :func:`instrument_client`. A client that is not instrumented stays as it is."""
    uninstrument(low_level(client))
