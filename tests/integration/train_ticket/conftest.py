"""Fixtures of TrainTicket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.train_ticket._stores import Stores

if TYPE_CHECKING:
    from antipode_testing import MongoDBTopology, MySQLTopology, RabbitMQTopology, RedisTopology


@pytest.fixture
def stores(
    antipode_mysql: MySQLTopology,
    antipode_mongodb: MongoDBTopology,
    antipode_rabbitmq: RabbitMQTopology,
    antipode_redis: RedisTopology,
) -> Stores:
    """The real stores, where users look at replicas."""
    return Stores(
        antipode_mysql, antipode_mongodb, antipode_rabbitmq, antipode_redis, two_regions=True
    )
