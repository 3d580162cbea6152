"""Random sessions of C++'s clients, with forks, signals and exceptions: `cpp/tests/programs`."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pika
import pymongo

from antipode_testing import (
    MariaDBTopology,
    MongoDBTopology,
    MySQLTopology,
    RabbitMQTopology,
    RedisTopology,
)

from ._line import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._line import Client

    #: What the store's bench needs to know, once everything of it is made.
    Words = Callable[[Any], Sequence[str]]

#: Where `make cpp` builds; ANTIPODE_AGENT_CPP names the agent beside it that another build has.
ROOT = Path(__file__).parents[2]
BUILT = ROOT / "cpp" / "build" / "dev" / "antipode_agent"
QUEUE = "programs"
EXCHANGE = "geo.programs"
TABLES = (
    "CREATE TABLE app.words (id BIGINT PRIMARY KEY, word VARCHAR(20))",
    "CREATE TABLE app.loose (id BIGINT PRIMARY KEY) ENGINE=MyISAM",
    """CREATE PROCEDURE app.adds (n BIGINT)
    BEGIN SELECT 1; INSERT INTO app.words VALUES (n, 'added'); END""",
    """CREATE FUNCTION app.noting(n BIGINT) RETURNS BIGINT DETERMINISTIC MODIFIES SQL DATA
    BEGIN INSERT INTO app.words VALUES (n, 'noted'); RETURN n; END""",
)


def program() -> Path:
    """The program, wherever C++ was built.

    Raises:
        FileNotFoundError: it was not.
    """
    found = Path(os.environ.get("ANTIPODE_AGENT_CPP", BUILT)).with_name("antipode_programs")
    if not found.exists():
        msg = f"there is no {found}: run `make cpp`"
        raise FileNotFoundError(msg)
    return found


def _servers(topology: Any) -> list[str]:
    return [f"{host}:{port}" for host, port in (topology.primary, topology.replica)]


def _sql(topology: Any) -> list[str]:
    for each in TABLES:
        topology.execute(each)
    return [*_servers(topology), topology.user, topology.password, topology.database]


def _mongodb(topology: Any) -> list[str]:
    near = _servers(topology)[0]
    with pymongo.MongoClient(f"mongodb://{near}", directConnection=True) as client:
        client.app.kept.insert_one({"_id": 0, "n": 0})
        client.app.create_collection("posts")
    return _servers(topology)


def _rabbitmq(topology: Any) -> list[str]:
    """A queue that the exchange fills in both regions."""
    for server in (topology.primary, topology.replica):
        with pika.BlockingConnection(pika.URLParameters(topology.url(server))) as connection:
            channel = connection.channel()
            channel.exchange_declare(EXCHANGE, "topic", durable=True)
            channel.queue_declare(QUEUE)
            channel.queue_bind(QUEUE, EXCHANGE, QUEUE)
    topology.wait_federated(EXCHANGE)
    return [*_servers(topology), EXCHANGE, QUEUE]


def _play(make: Callable[..., Any], words: Words, store: str, steps: int, seed: int) -> Line:
    with make() as topology:
        about = words(topology)
        topology.wait_replicated()
        began = time.monotonic()
        held = {"hold": topology.pause, "release": partial(_release, topology)}
        said = _run([store, str(steps), str(seed), *about], held)
        seconds = time.monotonic() - began
    alarms = Counter(said["alarms"])
    notes = [*said["notes"], *([f"alarms: {dict(alarms.most_common(5))}"] if alarms else [])]
    return Line(said["steps"], said["faults"], seconds, alarms.total(), seed, tuple(notes))


def _release(topology: Any) -> None:
    """Let replication go on; the program waits for messages itself, whose statistics are late."""
    topology.resume()
    if not isinstance(topology, RabbitMQTopology):
        topology.wait_replicated()


def _run(words: Sequence[str], held: dict[str, Callable[[], None]]) -> dict[str, Any]:
    """What the program says in the end; it has replication held, and released."""
    pipe = subprocess.PIPE
    with subprocess.Popen([program(), *words], text=True, stdin=pipe, stdout=pipe) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        last = ""
        for line in running.stdout:
            last = line.strip()
            if last in held:
                held[last]()
                running.stdin.write("ok\n")
                running.stdin.flush()
    if running.returncode != 0:
        msg = f"{' '.join(words[:3])} ended with {running.returncode}"
        raise RuntimeError(msg)
    said: dict[str, Any] = json.loads(last)
    return said


CLIENTS: dict[str, Client] = {
    "hiredis": partial(
        _play, partial(RedisTopology, config={"enable-debug-command": "yes"}), _servers, "redis"
    ),
    "libmariadb": partial(_play, MySQLTopology, _sql, "mysql"),
    "libmariadb-mariadb": partial(_play, MariaDBTopology, _sql, "mariadb"),
    "libmongoc": partial(_play, MongoDBTopology, _mongodb, "mongodb"),
    "librabbitmq": partial(_play, RabbitMQTopology, _rabbitmq, "rabbitmq"),
}
