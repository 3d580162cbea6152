"""``instrument_client``: existing code keeps its client and its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from antipode.shim import switchable
from antipode_shims._aws.botocore import Settings
from antipode_shims._aws.instrument import instrument, is_instrumented, uninstrument

from ._clients.botocore import low_level
from ._clients.call import Calls
from ._promises import TABLE
from ._shim.base import BaseDynamoDBShim

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from antipode.shim import Barriers, ReadsFrom

ClientT = TypeVar("ClientT")


class InstrumentedShim(BaseDynamoDBShim):
    """What an instrumented client registers."""


@switchable
def instrument_client(
    client: ClientT,
    *,
    datastore: str,
    reads_from: ReadsFrom = "primary",
    regions: Mapping[str, str] | None = None,
    keys: Mapping[str, Sequence[str]] | None = None,
    promise_table: str = TABLE,
    barriers: Barriers | None = None,
) -> ClientT:
    """Let the writes of *client* enter the current lineage, and its reads wait for floors.

    It works for whatever uses the client: a resource and its tables, batch writers, paginators and
    waiters. A covered write (:data:`COVERED_WRITES`) costs no request more: it sets the attribute
    ``_ap`` of its item to a stamp, which replies to this client do not show. The first write that
    puts into a table asks for the table's key, once a process (``DescribeTable``).

    Args:
        client: a client, a resource or a ``Table`` of boto3, or a client of aiobotocore.
        datastore: the name that every service spells alike.
        reads_from: ``replica`` where what it reads is written in other regions, else ``primary``.
        regions: endpoint URLs of the other regions by their names, where they are not AWS's own.
        keys: the key attributes of tables by their names, where ``DescribeTable`` is not allowed.
        promise_table: where barriers look for records of promises; see :func:`fulfil`.
        barriers: ``auto`` or ``explicit``, for this client; None: as configured.

    Returns:
        The same object. Instrumenting it again changes nothing.

    Raises:
        ConfigurationError: no client of DynamoDB, another datastore than before, or boto3 is
            missing.
    """
    plain = low_level(client)
    if is_instrumented(plain, datastore):
        return client
    shim = InstrumentedShim(
        datastore,
        Settings.of(plain),
        regions=regions or {},
        promise_table=promise_table,
        reads_from=reads_from,
    )
    known = {table: tuple(names) for table, names in (keys or {}).items()}
    instrument(plain, shim, Calls(shim, known), barriers=barriers)
    return client


def uninstrument_client(client: Any) -> None:
    """Undo :func:`instrument_client`. A client that is not instrumented stays as it is."""
    uninstrument(low_level(client))
