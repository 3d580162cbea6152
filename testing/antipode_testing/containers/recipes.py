"""How each store's official image is given what a native server gets by its command line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from antipode_testing.servers.mongodb import native as native_mongodb
from antipode_testing.servers.mongodb.native import _answers, _options
from antipode_testing.servers.mysql import native as native_mysql
from antipode_testing.servers.mysql.native import _greets
from antipode_testing.servers.postgresql import native as native_postgresql
from antipode_testing.servers.postgresql.native import _lets_in
from antipode_testing.servers.rabbitmq import native as native_rabbitmq
from antipode_testing.servers.rabbitmq.native import _is_up
from antipode_testing.servers.redis.native import DEFAULTS as REDIS_DEFAULTS
from antipode_testing.servers.server import probe

from .server import Recipe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import Address


IMAGES = {
    "mariadb": "mariadb:10.11",
    "mongodb": "mongo:6.0",
    "mysql": "mysql:9.7",
    "postgresql": "postgres:17",
    "rabbitmq": "rabbitmq:3.13-management",
    "redis": "redis:7.4",
}
#: The ports that a server listens on, by name.
PORTS = {
    "mariadb": ("client",),
    "mongodb": ("client",),
    "mysql": ("client",),
    "postgresql": ("client",),
    "rabbitmq": native_rabbitmq.PORTS,
    "redis": ("client",),
}
# Node and tools: on loopback alone, and without spinning.
ERLANG_FLAGS = native_rabbitmq.ERLANG_FLAGS.replace(" -start_epmd false", "")
RABBITMQ_SCRIPT = """
printf '%s' "$ANTIPODE_CONF" >/etc/rabbitmq/conf.d/99-antipode.conf
printf '%s' "$ANTIPODE_PLUGINS" >/etc/rabbitmq/enabled_plugins
exec docker-entrypoint.sh rabbitmq-server
"""
# The files of settings lie outside of the data: the entry point makes that folder, or a copy is it.
POSTGRESQL_FILES = "/etc/antipode-postgresql"
POSTGRESQL_SCRIPT = f"""
mkdir -p {POSTGRESQL_FILES}
printf '%s' "$ANTIPODE_CONF" >{POSTGRESQL_FILES}/postgresql.conf
printf '%s' "$ANTIPODE_HBA" >{POSTGRESQL_FILES}/pg_hba.conf
if [ -n "$ANTIPODE_FOLLOWS" ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
    pg_basebackup -d "$ANTIPODE_FOLLOWS" -D "$PGDATA" -X stream -c fast --no-sync
    : >"$PGDATA/postgresql.auto.conf"
    touch "$PGDATA/standby.signal"
fi
exec docker-entrypoint.sh postgres -c config_file={POSTGRESQL_FILES}/postgresql.conf
"""


def image_of(store: str) -> str:
    """The image of a store: the official one unless a variable names another."""
    return os.environ.get(f"ANTIPODE_{store.upper()}_IMAGE") or IMAGES[store]


def recipe(
    store: str, name: str, config: Mapping[str, str], ports: Mapping[str, Address]
) -> Recipe:
    """What runs one server at these addresses, with settings in the store's own words."""
    if store == "redis":
        return _redis(config, ports["client"])
    if store == "rabbitmq":
        return _rabbitmq(name, config, ports)
    if store == "mongodb":
        return _mongodb(config, ports["client"])
    if store == "postgresql":
        return _postgresql(config, ports["client"])
    return _sql(store, config, ports["client"])


def _redis(config: Mapping[str, str], address: Address) -> Recipe:
    settings = REDIS_DEFAULTS | {**config, "bind": address.host, "port": str(address.port)}
    command = ["redis-server"]
    for key, value in settings.items():
        command += [f"--{key}", *(value.split() if value else [""])]
    return Recipe(image_of("redis"), tuple(command), lambda: probe(address, b"PING\r\n", b"+PONG"))


def _rabbitmq(name: str, config: Mapping[str, str], ports: Mapping[str, Address]) -> Recipe:
    client, management = ports["client"], ports["management"]
    settings = native_rabbitmq.CONFIG | {
        **config,
        "management.tcp.ip": management.host,
        "management.tcp.port": str(management.port),
    }
    environment = {
        "ANTIPODE_CONF": "".join(f"{key} = {value}\n" for key, value in settings.items()),
        "ANTIPODE_PLUGINS": f"[{','.join(native_rabbitmq.PLUGINS)}].\n",
        "ERL_EPMD_ADDRESS": ports["epmd"].host,
        "ERL_EPMD_PORT": str(ports["epmd"].port),
        "RABBITMQ_CTL_ERL_ARGS": ERLANG_FLAGS,
        "RABBITMQ_DIST_PORT": str(ports["distribution"].port),
        "RABBITMQ_NODENAME": f"antipode-{name}-{os.getpid()}-{client.port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": client.host,
        "RABBITMQ_NODE_PORT": str(client.port),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": ERLANG_FLAGS,
    }
    return Recipe(
        image_of("rabbitmq"),
        ("sh", "-ec", RABBITMQ_SCRIPT),
        lambda: _is_up(ports),
        environment,
    )


def _sql(store: str, config: Mapping[str, str], address: Address) -> Recipe:
    defaults = native_mysql.MYSQL if store == "mysql" else native_mysql.MARIADB
    settings = defaults | {**config, "bind-address": address.host, "port": str(address.port)}
    server = "mysqld" if store == "mysql" else "mariadbd"
    # Both images understand these names; the account is the one that topologies connect by.
    environment = {
        "MYSQL_ROOT_HOST": address.host,
        "MYSQL_ROOT_PASSWORD": native_mysql.ADMINISTRATOR[1],
    }
    return Recipe(
        image_of(store),
        (server, *(f"--{key}={value}" for key, value in settings.items())),
        lambda: _greets(address),
        environment,
    )


def _postgresql(config: Mapping[str, str], address: Address) -> Recipe:
    settings = native_postgresql.DEFAULTS | {
        **config,
        "cluster_name": f"{native_postgresql.NAME}{address.port}",
        "hba_file": f"{POSTGRESQL_FILES}/pg_hba.conf",
        "listen_addresses": address.host,
        "port": str(address.port),
        # By it the entry point fills a new database, within the container.
        "unix_socket_directories": "/var/run/postgresql",
    }
    environment = {
        "ANTIPODE_CONF": "".join(f"{name} = '{value}'\n" for name, value in settings.items()),
        "ANTIPODE_FOLLOWS": config.get(native_postgresql.FOLLOWS, ""),
        "ANTIPODE_HBA": f"local all all trust\n{native_postgresql.HBA}",
        "POSTGRES_HOST_AUTH_METHOD": "trust",
        "POSTGRES_INITDB_ARGS": "--no-sync -EUTF8 --locale=C --wal-segsize=1",
    }
    return Recipe(
        image_of("postgresql"),
        ("sh", "-ec", POSTGRESQL_SCRIPT),
        lambda: _lets_in(address),
        environment,
    )


def _mongodb(config: Mapping[str, str], address: Address) -> Recipe:
    settings = native_mongodb.DEFAULTS | {
        **config,
        "bind_ip": address.host,
        "port": str(address.port),
    }
    return Recipe(
        image_of("mongodb"),
        ("mongod", *_options(settings)),
        lambda: _answers(address),
    )
