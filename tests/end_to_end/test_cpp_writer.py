"""A writer in C++ and a reader in Python, a thousand times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.end_to_end._cpp_writer import violations

if TYPE_CHECKING:
    from antipode_testing import MongoDBTopology, RabbitMQTopology

ROUNDS = 1_000


@pytest.mark.store("mongodb")
@pytest.mark.store("rabbitmq")
@pytest.mark.timeout(1200)
def test_post_notification(
    antipode_mongodb: MongoDBTopology, antipode_rabbitmq: RabbitMQTopology
) -> None:
    """Without the barrier every post is missing; with it none is."""
    assert violations(antipode_mongodb, antipode_rabbitmq, ROUNDS) == (ROUNDS, 0)
