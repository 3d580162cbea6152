"""``instrument``: every client of DynamoDB in this process, by its endpoint or region."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode.shim import switchable
from antipode_shims._aws.process_wide import implied_of, process_wide
from antipode_shims.dynamodb._instrument import instrument_client, uninstrument_client

if TYPE_CHECKING:
    from antipode.shim import Datastores, Rule

_SERVICES = ("dynamodb",)


@switchable
def instrument(datastores: Datastores | None = None) -> None:
    """Instrument every client whose region or endpoint a rule names, made before or later.

    Each as :func:`instrument_client` does it with ``datastore`` and ``reads_from``: clients of
    boto3, with its resources, and of aiobotocore. What a call for one client says goes before the
    rules. Clients of other regions stay as they are. Idempotent.

    Args:
        datastores: rules for this store, such as ``{"orders": "dynamodb://eu-west-1"}``, or with
            the host of an endpoint; they go before those of ``configure(datastores=...)`` and
            ``ANTIPODE_DATASTORES``. None: those alone.

    Raises:
        ConfigurationError: a rule is malformed, or two give one address two names.
    """
    _wide.start(datastores)


def uninstrument() -> None:
    """Undo :func:`instrument`; clients that were instrumented by a call stay so. Idempotent."""
    _wide.stop()
    for client in implied_of(_SERVICES):
        uninstrument_client(client)


def _take(client: Any, rule: Rule) -> None:
    options: dict[str, Any] = {"reads_from": rule.reads_from or "primary"}
    instrument_client(client, datastore=rule.datastore, **options)


_wide = process_wide("dynamodb", _SERVICES, _take)
