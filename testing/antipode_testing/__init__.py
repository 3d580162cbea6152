"""What a service needs to test itself with Antipode: servers, faults, the contract suite.

Names are imported when they are used: a test run that uses no store loads no topology.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._address import Address
    from ._errors import ClientMissing, ServerFailed, ServerMissing, TopologyTimeout
    from ._fake import FakeStore, VirtualClock
    from ._interrupt import uninterrupted
    from ._process import ServerProcess
    from ._proxy import LagProxy, Traffic
    from ._topology import Provider, Server, Topology
    from ._wait import wait_until
    from .containers.compose import ComposeProvider
    from .containers.provider import ContainerProvider
    from .contract.siblings import SiblingContract
    from .contract.store import ContractStore
    from .contract.suite import ShimContract
    from .servers.activemq.topology import ActiveMQTopology
    from .servers.dynamodb.topology import DynamoDBTopology
    from .servers.mongodb.topology import MongoDBTopology
    from .servers.mysql.topology import MariaDBTopology, MySQLTopology
    from .servers.native import NativeProvider
    from .servers.postgresql.topology import PostgreSQLTopology
    from .servers.rabbitmq.topology import RabbitMQTopology
    from .servers.redis.sentinel import RedisSentinelTopology
    from .servers.redis.topology import RedisTopology
    from .servers.s3.seaweedfs import SeaweedFSTopology
    from .servers.s3.topology import S3Topology
    from .servers.sns.topology import SNSTopology

_HOMES = {
    "ActiveMQTopology": "servers.activemq.topology",
    "Address": "_address",
    "ClientMissing": "_errors",
    "ComposeProvider": "containers.compose",
    "ContainerProvider": "containers.provider",
    "ContractStore": "contract.store",
    "DynamoDBTopology": "servers.dynamodb.topology",
    "FakeStore": "_fake",
    "LagProxy": "_proxy",
    "MariaDBTopology": "servers.mysql.topology",
    "MongoDBTopology": "servers.mongodb.topology",
    "MySQLTopology": "servers.mysql.topology",
    "NativeProvider": "servers.native",
    "PostgreSQLTopology": "servers.postgresql.topology",
    "Provider": "_topology",
    "RabbitMQTopology": "servers.rabbitmq.topology",
    "RedisSentinelTopology": "servers.redis.sentinel",
    "RedisTopology": "servers.redis.topology",
    "S3Topology": "servers.s3.topology",
    "SNSTopology": "servers.sns.topology",
    "SeaweedFSTopology": "servers.s3.seaweedfs",
    "Server": "_topology",
    "ServerFailed": "_errors",
    "ServerMissing": "_errors",
    "ServerProcess": "_process",
    "ShimContract": "contract.suite",
    "SiblingContract": "contract.siblings",
    "Topology": "_topology",
    "TopologyTimeout": "_errors",
    "Traffic": "_proxy",
    "VirtualClock": "_fake",
    "uninterrupted": "_interrupt",
    "wait_until": "_wait",
}

__all__ = [
    "ActiveMQTopology",
    "Address",
    "ClientMissing",
    "ComposeProvider",
    "ContainerProvider",
    "ContractStore",
    "DynamoDBTopology",
    "FakeStore",
    "LagProxy",
    "MariaDBTopology",
    "MongoDBTopology",
    "MySQLTopology",
    "NativeProvider",
    "PostgreSQLTopology",
    "Provider",
    "RabbitMQTopology",
    "RedisSentinelTopology",
    "RedisTopology",
    "S3Topology",
    "SNSTopology",
    "SeaweedFSTopology",
    "Server",
    "ServerFailed",
    "ServerMissing",
    "ServerProcess",
    "ShimContract",
    "SiblingContract",
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
