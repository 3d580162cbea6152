"""``instrument_client``: existing code keeps its client and its calls."""

from __future__ import annotations

from typing import Any, TypeVar

from antipode import ConfigurationError
from antipode.shim import switchable
from antipode_shims._aws import client_of
from antipode_shims._aws.instrument import implied, register_for

from ._clients.hooks import Hooks
from ._shim import SNSShim

ClientT = TypeVar("ClientT")
_ATTRIBUTE = "_antipode"
_EXPECTED = "a client or a resource of boto3 for SNS or SQS"


@switchable
def instrument_client(client: ClientT, *, datastore: str) -> ClientT:
    """Let what *client* publishes carry the current lineage, and what it receives keep it.

    A message has one attribute more, ``antipode``, which ``receive_message`` asks for and does not
    show. Handle each message within :func:`message`.

    Args:
        client: a client or a resource of boto3 for SNS or for SQS, or a client of aiobotocore.
        datastore: the name that every service spells alike.

    Returns:
        The same object. Instrumenting it again changes nothing.

    Raises:
        ConfigurationError: no client of SNS or SQS, or another datastore than before.
    """
    plain = client_of(client, ("sns", "sqs"), _EXPECTED)
    if plain in implied:
        uninstrument_client(plain)
    held = vars(plain).get(_ATTRIBUTE)
    if held is not None:
        if held.datastore != datastore:
            msg = f"this client is instrumented as {held.datastore!r} already"
            raise ConfigurationError(msg)
        return client
    shim = SNSShim(datastore)
    register_for(plain, shim)
    hooks = Hooks(shim, plain)
    hooks.register()
    setattr(plain, _ATTRIBUTE, hooks)
    return client


def uninstrument_client(client: Any) -> None:
    """Undo :func:`instrument_client`. A client that is not instrumented stays as it is."""
    plain = client_of(client, ("sns", "sqs"), _EXPECTED)
    implied.discard(plain)
    hooks = vars(plain).pop(_ATTRIBUTE, None)
    if hooks is not None:
        hooks.unregister()
        hooks.shim.close()
