"""What a store's shim decides without its store: positions, commands, stored lineages."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.agent._values import Unsupported

#: Where each store's are.
_MODULES = {
    "activemq": "activemq",
    "dynamodb": "dynamodb",
    "mariadb": "mysql",
    "mongodb": "mongodb",
    "mysql": "mysql",
    "postgresql": "postgresql",
    "rabbitmq": "rabbitmq",
    "redis": "redis",
    "s3": "s3",
    "sns": "sns",
}


def decide(store: str, kind: str, given: dict[str, Any]) -> Any:
    """What the shim of *store* makes of one vector.

    Args:
        store: its name.
        kind: what is to be decided; the functions of a store's module are named so.
        given: the vector.

    Raises:
        Unsupported: there is nothing of the kind.
    """
    module = import_module(f"{__name__}.{_MODULES[store]}") if store in _MODULES else None
    does = getattr(module, kind, None)
    if does is None:
        msg = f"no {kind!r} of {store!r}"
        raise Unsupported(msg)
    return does(given)
