"""Shims keep the contract at a sibling of the promoted replica, too: two real replicas of each."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from antipode import Status
from antipode_testing import (
    MariaDBTopology,
    MongoDBTopology,
    MySQLTopology,
    PostgreSQLTopology,
    RedisTopology,
    SiblingContract,
)
from tests.contract.test_mongodb import MongoContractStore
from tests.contract.test_mysql import MySQLContractStore
from tests.contract.test_postgresql import PostgreSQLContractStore
from tests.contract.test_redis import RedisContractStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import ContractStore, Topology

pytestmark = pytest.mark.slow


class RedisSiblings(RedisContractStore):
    """A sibling that was behind cannot tell what was lost of the log before."""

    lost_at_a_sibling: ClassVar[frozenset[Status]] = frozenset({Status.LOST, Status.UNKNOWN_LOG})


class OverTwoReplicas(SiblingContract):
    """Over a primary and two replicas, whose reader is at the second."""

    made: ClassVar[type[Any]]
    kind: ClassVar[type[Any]]

    @pytest.fixture(scope="class")
    @classmethod
    def topology(cls) -> Iterator[Topology]:
        """The servers, for both claims."""
        with cls.made(2) as topology:
            yield topology

    @pytest.fixture
    def store(self, topology: Topology) -> Iterator[ContractStore]:
        """A shim at the primary and one at the sibling."""
        topology.reset()
        with ExitStack() as stack:
            store = self.kind(topology, stack)
            yield store
            store.writer.close()
            store.reader.close()


@pytest.mark.store("redis")
class TestSiblingsOfRedis(OverTwoReplicas):
    """The sibling is told whom to follow."""

    made, kind = RedisTopology, RedisSiblings


@pytest.mark.store("mysql")
class TestSiblingsOfMySQL(OverTwoReplicas):
    """The topology leads siblings to the new primary."""

    made, kind = MySQLTopology, MySQLContractStore


@pytest.mark.store("mariadb")
class TestSiblingsOfMariaDB(OverTwoReplicas):
    """The topology leads siblings to the new primary."""

    made, kind = MariaDBTopology, MySQLContractStore


@pytest.mark.store("postgresql")
class TestSiblingsOfPostgreSQL(OverTwoReplicas):
    """The topology leads siblings to the new primary."""

    made, kind = PostgreSQLTopology, PostgreSQLContractStore


@pytest.mark.store("mongodb")
class TestSiblingsOfMongoDB(OverTwoReplicas):
    """Members of the set follow who was elected."""

    made, kind = MongoDBTopology, MongoContractStore
