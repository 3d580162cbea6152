"""Servers as processes of this machine, found on PATH."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode import ConfigurationError
from antipode_testing._address import LOOPBACK
from antipode_testing._proxy import LagProxy

from .server import started

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import Address
    from antipode_testing._topology import Server


class NativeProvider:
    """Runs the servers that are installed on this machine."""

    host = LOOPBACK

    def start(self, store: str, name: str, config: Mapping[str, str]) -> Server:
        """Start one server; see `Provider.start`."""
        if store == "redis":
            from .redis.native import redis

            server = redis(name, config)
        elif store == "rabbitmq":
            from .rabbitmq.native import rabbitmq

            server = rabbitmq(name, config)
        elif store in {"mysql", "mariadb"}:
            from .mysql import native as native_mysql

            make = native_mysql.mysql if store == "mysql" else native_mysql.mariadb
            server = make(name, config)
        elif store == "mongodb":
            from .mongodb.native import mongodb

            server = mongodb(name, config)
        elif store == "postgresql":
            from .postgresql.native import postgresql

            server = postgresql(name, config)
        elif store in {"dynamodb", "sns"}:
            from .ministack import ministack

            server = ministack(name, config)
        elif store == "elasticmq":
            from .sns.elasticmq import elasticmq

            server = elasticmq(name, config)
        elif store == "activemq":
            from .activemq.native import activemq

            server = activemq(name, config)
        elif store == "s3":
            from .ministack import ministack

            server = ministack(name, config, module="antipode_testing.servers.s3.site")
        else:
            raise ConfigurationError(f"no native server for the store {store!r}")
        return started(server)

    def link(self, upstream: Address) -> LagProxy:
        """A proxy on loopback; see `Provider.link`."""
        return LagProxy(upstream)
