"""``instrument_client``: existing code keeps its client and its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from antipode import ConfigurationError
from antipode.shim import register, shims_of, switchable
from antipode_shims._aws import is_async

from ._clients.botocore import Settings, low_level
from ._clients.hooks import SyncHooks
from ._shim.base import BaseDynamoDBShim

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from antipode.shim import Barriers, ReadsFrom

ClientT = TypeVar("ClientT")
#: The attribute of an instrumented client that has its hooks.
_ATTRIBUTE = "_antipode"


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
        barriers: ``auto`` or ``explicit``, for this client; None: as configured.

    Returns:
        The same object. Instrumenting it again changes nothing.

    Raises:
        ConfigurationError: no client of DynamoDB, another datastore than before, or boto3 is
            missing.
    """
    plain = low_level(client)
    if _instrumented(plain, datastore):
        return client
    shim = InstrumentedShim(
        datastore, Settings.of(plain), regions=regions or {}, reads_from=reads_from
    )
    shim.wait_by(barriers)
    register(shim)
    known = {table: tuple(names) for table, names in (keys or {}).items()}
    if is_async(plain):
        from ._clients.aiobotocore import AsyncHooks

        hooks: Any = AsyncHooks(shim, plain, known)
    else:
        hooks = SyncHooks(shim, plain, known)
    hooks.register()
    setattr(plain, _ATTRIBUTE, hooks)
    return client


def _instrumented(client: Any, datastore: str) -> bool:
    """Whether *client* is instrumented for *datastore*; not for a shim that was unregistered.

    Raises:
        ConfigurationError: it is, for another one.
    """
    held = vars(client).get(_ATTRIBUTE)
    if held is None:
        return False
    if held.shim.datastore != datastore:
        msg = f"this client is instrumented as {held.shim.datastore!r} already"
        raise ConfigurationError(msg)
    if held.shim not in shims_of(datastore):
        uninstrument_client(client)
        return False
    return True


def uninstrument_client(client: Any) -> None:
    """Undo :func:`instrument_client`. A client that is not instrumented stays as it is."""
    plain = low_level(client)
    hooks = vars(plain).pop(_ATTRIBUTE, None)
    if hooks is not None:
        hooks.unregister()
        hooks.shim.close()
