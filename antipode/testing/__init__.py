"""What a service needs to test itself with Antipode.

Names are imported when they are used: a test run that uses no store loads no topology.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._address import Address
    from ._compose import ComposeProvider
    from ._containers import ContainerProvider
    from ._contract import ShimContract
    from ._contract_store import ContractStore
    from ._embedded import EmbeddedTopology
    from ._errors import ClientMissing, ServerFailed, ServerMissing, TopologyTimeout
    from ._fake import FakeStore, VirtualClock
    from ._interrupt import uninterrupted
    from ._mongodb import MongoDBTopology
    from ._mysql import MariaDBTopology, MySQLTopology
    from ._native import NativeProvider
    from ._process import ServerProcess
    from ._proxy import LagProxy, Traffic
    from ._rabbitmq import RabbitMQTopology
    from ._redis import RedisTopology
    from ._redis_sentinel import RedisSentinelTopology
    from ._topology import Provider, Server, Topology
    from ._wait import wait_until

_HOMES = {
    "Address": "_address",
    "ClientMissing": "_errors",
    "ComposeProvider": "_compose",
    "ContainerProvider": "_containers",
    "ContractStore": "_contract_store",
    "EmbeddedTopology": "_embedded",
    "FakeStore": "_fake",
    "LagProxy": "_proxy",
    "MariaDBTopology": "_mysql",
    "MongoDBTopology": "_mongodb",
    "MySQLTopology": "_mysql",
    "NativeProvider": "_native",
    "Provider": "_topology",
    "RabbitMQTopology": "_rabbitmq",
    "RedisSentinelTopology": "_redis_sentinel",
    "RedisTopology": "_redis",
    "Server": "_topology",
    "ServerFailed": "_errors",
    "ServerMissing": "_errors",
    "ServerProcess": "_process",
    "ShimContract": "_contract",
    "Topology": "_topology",
    "TopologyTimeout": "_errors",
    "Traffic": "_proxy",
    "VirtualClock": "_fake",
    "uninterrupted": "_interrupt",
    "wait_until": "_wait",
}

__all__ = [
    "Address",
    "ClientMissing",
    "ComposeProvider",
    "ContainerProvider",
    "ContractStore",
    "EmbeddedTopology",
    "FakeStore",
    "LagProxy",
    "MariaDBTopology",
    "MongoDBTopology",
    "MySQLTopology",
    "NativeProvider",
    "Provider",
    "RabbitMQTopology",
    "RedisSentinelTopology",
    "RedisTopology",
    "Server",
    "ServerFailed",
    "ServerMissing",
    "ServerProcess",
    "ShimContract",
    "Topology",
    "TopologyTimeout",
    "Traffic",
    "VirtualClock",
    "uninterrupted",
    "wait_until",
]


def __getattr__(name: str) -> Any:
    """Import the module of a public name when the name is first used."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
