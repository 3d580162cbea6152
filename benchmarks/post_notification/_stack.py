"""The servers of docker-compose.yml: used as they run, told how long their link delays."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING

from antipode import AntipodeError
from antipode_testing import Address, wait_until
from antipode_testing.servers.rabbitmq.management import PASSWORD, USER, Management

from ._options import BenchmarkError
from ._storage import declare as declare_tables

if TYPE_CHECKING:
    from ._storage import Spec

_HOST = "127.0.0.1"
_TIMEOUT_S = 30.0
#: Ports of the regions us and eu, unless a variable names others; as in docker-compose.yml.
_PORTS = {
    "LINK": 17000,
    "MONGODB_EU": 17018,
    "MONGODB_US": 17017,
    "MYSQL_EU": 13307,
    "MYSQL_US": 13306,
    "POSTGRESQL_EU": 15433,
    "POSTGRESQL_US": 15432,
    "RABBITMQ_EU": 16673,
    "RABBITMQ_EU_MANAGEMENT": 17673,
    "RABBITMQ_US": 16672,
    "RABBITMQ_US_MANAGEMENT": 17672,
    "REDIS_EU": 16380,
    "REDIS_US": 16379,
}
#: Whose posts are rows: the account and the database that the stack makes.
_URLS = {
    "mysql": "mysql+pymysql://app:app@{}/app",
    "postgresql": "postgresql+psycopg://app:app@{}/app",
}
#: How far a region's log reaches, and whether the other has replayed all of it.
_POSITIONS = {
    "mysql": (
        "SELECT @@GLOBAL.gtid_executed",
        "SELECT GTID_SUBSET(:position, @@GLOBAL.gtid_executed)",
    ),
    "postgresql": (
        "SELECT pg_current_wal_flush_lsn()::text",
        "SELECT pg_last_wal_replay_lsn() >= CAST(:position AS pg_lsn)",
    ),
}


def post_storage(store: str, lag_ms: float) -> Spec:
    """Where the stack keeps posts, behind a link with this lag.

    Raises:
        BenchmarkError: the stack does not run, or does not replicate.
    """
    places = [_address(store, region) for region in ("us", "eu")]
    spec: Spec = {"store": store, "writer": places[0], "reader": places[1]}
    set_lag(store, 0)
    if store in _URLS:
        writer, reader = (_URLS[store].format(place) for place in places)
        spec |= {"writer": writer, "reader": reader}
        _declare_tables(spec)
    set_lag(store, lag_ms)
    return spec


def notifier(exchange: str, lag_ms: float) -> Spec:
    """Where the stack's brokers are, once they federate an exchange late; its queue is empty.

    Raises:
        BenchmarkError: the stack does not run, or does not federate.
    """
    from ._notifier_rabbitmq import declare

    set_lag("rabbitmq", 0)
    urls = [f"amqp://{USER}:{PASSWORD}@{_address('rabbitmq', it)}/%2f" for it in ("us", "eu")]
    spec: Spec = {"store": "rabbitmq", "writer": urls[0], "reader": urls[1]}
    try:
        declare(spec, purge=True)
        what = f"the stack's brokers to federate {exchange}"
        wait_until(lambda: _federated(exchange), what=what, timeout_s=_TIMEOUT_S, interval_s=0.1)
    except AntipodeError as error:
        raise BenchmarkError(str(error).splitlines()[0]) from error
    set_lag("rabbitmq", lag_ms)
    return spec


def _address(store: str, region: str, suffix: str = "") -> Address:
    return Address(_HOST, _port(f"{store}_{region}{suffix}".upper()))


def _port(name: str) -> int:
    return int(os.environ.get(f"ANTIPODE_{name}_PORT") or _PORTS[name])


def set_lag(store: str, lag_ms: float) -> None:
    """Tell the stack's link how long to delay what a store replicates."""
    port = _port("LINK")
    try:
        with socket.create_connection((_HOST, port), _TIMEOUT_S) as sock:
            sock.sendall(json.dumps({store: lag_ms}).encode() + b"\n")
            answer = json.loads(sock.makefile("rb").readline() or "{}")
    except (OSError, ValueError) as error:
        raise BenchmarkError(
            f"the stack's link does not answer on port {port} ({error}): start the stack, `make up`"
        ) from error
    if answer.get(store) != lag_ms:
        raise BenchmarkError(f"the stack's link refuses a lag for {store}: {answer}")


def _declare_tables(spec: Spec) -> None:
    """Make the tables of posts; return once the other region has them."""
    import sqlalchemy

    store: str = spec["store"]
    reached, replayed = map(sqlalchemy.text, _POSITIONS[store])
    declare_tables(spec)
    engines = [sqlalchemy.create_engine(spec[region]) for region in ("writer", "reader")]
    try:
        with engines[0].connect() as writer, engines[1].connect() as reader:
            position = {"position": writer.execute(reached).scalar()}
            there = reader.execution_options(isolation_level="AUTOCOMMIT")
            wait_until(
                lambda: bool(there.execute(replayed, position).scalar()),
                what=f"replication; see `docker compose logs {store}-eu`",
                timeout_s=_TIMEOUT_S,
            )
    except AntipodeError as error:
        raise BenchmarkError(f"the stack's {store} does not replicate: {error}") from error
    finally:
        for engine in engines:
            engine.dispose()


def _federated(exchange: str) -> bool:
    """Whether the link of an exchange runs and the first broker knows who follows it."""
    us, eu = (Management(_address("rabbitmq", it, "_management")) for it in ("us", "eu"))
    links = eu.get("federation-links")
    if not any(it.get("exchange") == exchange and it.get("status") == "running" for it in links):
        return False
    bindings = us.get(f"exchanges/%2f/{exchange}/bindings/source")
    return any(binding["destination"].startswith("federation:") for binding in bindings)
