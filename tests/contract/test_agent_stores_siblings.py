"""What `test_siblings` claims, of the shims of Java and C++: the same servers, through an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from antipode_testing import (
    MariaDBTopology,
    MongoDBTopology,
    MySQLTopology,
    PostgreSQLTopology,
    RedisTopology,
)
from tests.contract.test_agent import RemoteRedis, remote
from tests.contract.test_agent_stores import (
    RemoteMongoDB,
    RemoteMySQL,
    RemotePostgreSQL,
    running,
)
from tests.contract.test_siblings import OverTwoReplicas, RedisSiblings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import ContractStore
    from tests.agent.client import RemoteAntipode

__all__ = ["remote"]


class RemoteRedisSiblings(RemoteRedis, RedisSiblings):
    """As Python's."""


class Remotely(OverTwoReplicas):
    """Both shims are in an agent of the class's language."""

    language: ClassVar[str]

    @pytest.fixture
    def store(self, topology: Any, remote: RemoteAntipode) -> Iterator[ContractStore]:
        """A shim at the primary and one at the sibling."""
        topology.reset()
        yield from running(self.kind, remote, topology)


@pytest.mark.store("redis")
class TestRedisOfJava(Remotely):
    """Java's shim."""

    made, kind, language = RedisTopology, RemoteRedisSiblings, "java"


@pytest.mark.store("mysql")
class TestMySQLOfJava(Remotely):
    """Java's shim."""

    made, kind, language = MySQLTopology, RemoteMySQL, "java"


@pytest.mark.store("mariadb")
class TestMariaDBOfJava(Remotely):
    """Java's shim."""

    made, kind, language = MariaDBTopology, RemoteMySQL, "java"


@pytest.mark.store("postgresql")
class TestPostgreSQLOfJava(Remotely):
    """Java's shim."""

    made, kind, language = PostgreSQLTopology, RemotePostgreSQL, "java"


@pytest.mark.store("mongodb")
class TestMongoDBOfJava(Remotely):
    """Java's shim."""

    made, kind, language = MongoDBTopology, RemoteMongoDB, "java"


@pytest.mark.store("redis")
class TestRedisOfCpp(Remotely):
    """The shim of C++."""

    made, kind, language = RedisTopology, RemoteRedisSiblings, "cpp"


@pytest.mark.store("mysql")
class TestMySQLOfCpp(Remotely):
    """The shim of C++."""

    made, kind, language = MySQLTopology, RemoteMySQL, "cpp"


@pytest.mark.store("mariadb")
class TestMariaDBOfCpp(Remotely):
    """The shim of C++."""

    made, kind, language = MariaDBTopology, RemoteMySQL, "cpp"


@pytest.mark.store("mongodb")
class TestMongoDBOfCpp(Remotely):
    """The shim of C++."""

    made, kind, language = MongoDBTopology, RemoteMongoDB, "cpp"
