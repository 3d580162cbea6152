"""Two regions of real servers: MySQL and Redis replicate to the EU, RabbitMQ federates to it."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import create_engine

from antipode_testing import MySQLTopology, RabbitMQTopology, RedisTopology
from examples.posts.schema import Base

if TYPE_CHECKING:
    from collections.abc import Generator

# Where `make stores` puts the servers that the system has no package of; installed ones come first.
_STORES = Path(__file__).resolve().parents[3] / ".stores" / "bin"


@dataclass(frozen=True)
class Regions:
    """The servers, and where each region's services find them."""

    mysql: MySQLTopology
    redis: RedisTopology
    rabbitmq: RabbitMQTopology

    @classmethod
    @contextmanager
    def started(cls) -> Generator[Regions]:
        """Servers of one's own, for the block.

        Raises:
            ServerMissing: one is not installed; the message says how to install it.
        """
        os.environ["PATH"] = os.pathsep.join((os.environ.get("PATH", os.defpath), str(_STORES)))
        with ExitStack() as stack:
            enter = stack.enter_context
            # Those that start in a moment come first: what is missing is soon said.
            redis, mysql = enter(RedisTopology()), enter(MySQLTopology())
            yield cls(mysql, redis, enter(RabbitMQTopology()))

    def migrate(self) -> None:
        """Make the table anew, in both regions."""
        engine = create_engine(self.mysql.url())
        try:
            Base.metadata.drop_all(engine)
            Base.metadata.create_all(engine)
        finally:
            engine.dispose()
        self.mysql.wait_replicated()

    def set_lag(self, ms: float) -> None:
        """Delay the replication of both databases; messages go as fast as they can."""
        self.mysql.set_lag(ms)
        self.redis.set_lag(ms)

    def us(self) -> dict[str, str]:
        """The environment of a service in the US."""
        rules = (
            f"posts=mysql://{self.mysql.primary}",
            f"counters=redis://{self.redis.primary}",
            f"notifications=amqp://{self.rabbitmq.primary}",
        )
        return {
            "ANTIPODE_DATASTORES": ", ".join(rules),
            "ANTIPODE_REGION": "us",
            "MYSQL_URL": self.mysql.url(driver="mysql+aiomysql"),
            "RABBITMQ_URL": self.rabbitmq.url(),
            "REDIS_URL": f"redis://{self.redis.primary}",
        }

    def eu(self, *, driver: str) -> dict[str, str]:
        """The environment of a service in the EU.

        Args:
            driver: of MySQL, in SQLAlchemy's spelling.
        """
        rules = (
            f"posts=mysql://{self.mysql.replica}?reads_from=replica",
            f"counters=redis://{self.redis.replica}?reads_from=replica",
            f"counters=redis://{self.redis.primary}",
            f"notifications=amqp://{self.rabbitmq.replica}",
        )
        return {
            "ANTIPODE_DATASTORES": ", ".join(rules),
            "ANTIPODE_REGION": "eu",
            "MYSQL_URL": self.mysql.url(self.mysql.replica, driver=driver),
            "RABBITMQ_URL": self.rabbitmq.url(self.rabbitmq.replica),
            "REDIS_PRIMARY_URL": f"redis://{self.redis.primary}",
            "REDIS_URL": f"redis://{self.redis.replica}",
        }
