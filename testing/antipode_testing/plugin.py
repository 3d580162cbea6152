"""The pytest plugin: real replicated stores as fixtures, healed after every test.

`antipode_embedded`, `antipode_redis` and those of the other stores yield one topology for the whole
session; what a test did to it is undone when that test ends. Where a server or its client library
is missing, the tests that need it are skipped with the command that installs it, and *fail* where
the store is named in the environment variable ``ANTIPODE_REQUIRE_STORES`` (names separated by
commas).

Every run of pytest where this package is installed loads this module: nothing of Antipode is
imported before a run asks for a store.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from antipode_shims.embedded import EmbeddedTopology

    from . import (
        ActiveMQTopology,
        DynamoDBTopology,
        MariaDBTopology,
        MongoDBTopology,
        MySQLTopology,
        PostgreSQLTopology,
        RabbitMQTopology,
        RedisTopology,
        S3Topology,
        SeaweedFSTopology,
        SNSTopology,
    )
    from ._topology import Topology

#: As `antipode_testing` reads it, which is not imported for a name; a test holds them together.
PROVIDER_VARIABLE = "ANTIPODE_PROVIDER"
REQUIRE_VARIABLE = "ANTIPODE_REQUIRE_STORES"
# The embedded store needs no server, so requiring it is always satisfied.
STORES = (
    "activemq",
    "dynamodb",
    "embedded",
    "mariadb",
    "mongodb",
    "mysql",
    "postgresql",
    "rabbitmq",
    "redis",
    "s3",
    "seaweedfs",
    "sns",
)
WORKER_KEY = "antipode_stores"


class StoreUse:
    """Which stores this session used or missed, and the topologies that run now."""

    def __init__(self, required: frozenset[str]) -> None:
        self.required = required
        self.running: list[Topology] = []
        self.used: set[str] = set()
        self.missing: dict[str, str] = {}

    def run(self, store: str, make: Callable[[], Topology]) -> Iterator[Any]:
        """Start a topology for as long as the fixture lives; skip, or fail, where it cannot."""
        from ._errors import ClientMissing, ServerMissing

        topology = make()
        try:
            topology.start()
        except (ClientMissing, ServerMissing) as error:
            topology.close()
            self.missing[store] = str(error)
            if store in self.required:
                pytest.fail(f"{error} ({REQUIRE_VARIABLE} names {store!r})", pytrace=False)
            pytest.skip(f"{store}: {error}")
        except BaseException:
            topology.close()
            raise
        self.used.add(store)
        self.running.append(topology)
        try:
            yield topology
        finally:
            self.running.remove(topology)
            topology.close()

    def heal(self) -> None:
        """Undo what the test that just ended did."""
        for topology in self.running:
            if not topology.closed:
                topology.reset()

    def report(self) -> dict[str, Any]:
        """What a worker process reports to the process that prints the summary."""
        return {"used": sorted(self.used), "missing": self.missing}

    def add(self, report: dict[str, Any]) -> None:
        """Take in what a worker process reported."""
        self.used.update(report["used"])
        self.missing.update(report["missing"])


USE = pytest.StashKey[StoreUse]()


def pytest_configure(config: pytest.Config) -> None:
    """Read the required stores; a name that does not exist would require nothing, silently."""
    text = os.environ.get(REQUIRE_VARIABLE, "")
    required = frozenset(name.strip() for name in text.split(",") if name.strip())
    unknown = sorted(required.difference(STORES))
    if unknown:
        raise pytest.UsageError(
            f"{REQUIRE_VARIABLE} names unknown stores: {', '.join(unknown)};"
            f" known are {', '.join(STORES)}"
        )
    if os.environ.get(PROVIDER_VARIABLE):
        _check_provider()
    config.stash[USE] = StoreUse(required)
    config.addinivalue_line("markers", "store(name): needs the real server of that name")


def _check_provider() -> None:
    """End the run before it begins where the environment names no provider."""
    from antipode import AntipodeError

    from ._provider import provider_name

    try:
        provider_name()
    except AntipodeError as error:
        raise pytest.UsageError(str(error)) from error


@pytest.fixture(scope="session")
def antipode_embedded(request: pytest.FixtureRequest) -> Iterator[EmbeddedTopology]:
    """A primary's and a replica's file, as `antipode_shims.embedded.EmbeddedTopology`."""
    from antipode_shims.embedded import EmbeddedTopology

    yield from request.config.stash[USE].run("embedded", EmbeddedTopology)


@pytest.fixture(scope="session")
def antipode_redis(request: pytest.FixtureRequest) -> Iterator[RedisTopology]:
    """A Redis primary and its replica, as `antipode_testing.RedisTopology`."""
    from . import RedisTopology

    yield from request.config.stash[USE].run("redis", RedisTopology)


@pytest.fixture(scope="session")
def antipode_rabbitmq(request: pytest.FixtureRequest) -> Iterator[RabbitMQTopology]:
    """Two federated RabbitMQ brokers, as `antipode_testing.RabbitMQTopology`."""
    from . import RabbitMQTopology

    yield from request.config.stash[USE].run("rabbitmq", RabbitMQTopology)


@pytest.fixture(scope="session")
def antipode_mongodb(request: pytest.FixtureRequest) -> Iterator[MongoDBTopology]:
    """A MongoDB primary and its secondary, as `antipode_testing.MongoDBTopology`."""
    from . import MongoDBTopology

    yield from request.config.stash[USE].run("mongodb", MongoDBTopology)


@pytest.fixture(scope="session")
def antipode_activemq(request: pytest.FixtureRequest) -> Iterator[ActiveMQTopology]:
    """Two brokers of ActiveMQ in a network, as `antipode_testing.ActiveMQTopology`."""
    from . import ActiveMQTopology

    yield from request.config.stash[USE].run("activemq", ActiveMQTopology)


@pytest.fixture(scope="session")
def antipode_dynamodb(request: pytest.FixtureRequest) -> Iterator[DynamoDBTopology]:
    """Two regions of an emulator of DynamoDB, as `antipode_testing.DynamoDBTopology`."""
    from . import DynamoDBTopology

    yield from request.config.stash[USE].run("dynamodb", DynamoDBTopology)


@pytest.fixture(scope="session")
def antipode_s3(request: pytest.FixtureRequest) -> Iterator[S3Topology]:
    """Two regions of an emulator of S3, as `antipode_testing.S3Topology`."""
    from . import S3Topology

    yield from request.config.stash[USE].run("s3", S3Topology)


@pytest.fixture(scope="session")
def antipode_seaweedfs(request: pytest.FixtureRequest) -> Iterator[SeaweedFSTopology]:
    """Two regions of S3 on real servers, as `antipode_testing.SeaweedFSTopology`."""
    from . import SeaweedFSTopology

    yield from request.config.stash[USE].run("seaweedfs", SeaweedFSTopology)


@pytest.fixture(scope="session")
def antipode_sns(request: pytest.FixtureRequest) -> Iterator[SNSTopology]:
    """An emulator of SNS and one of SQS in two regions, as `antipode_testing.SNSTopology`."""
    from . import SNSTopology

    yield from request.config.stash[USE].run("sns", SNSTopology)


@pytest.fixture(scope="session")
def antipode_mysql(request: pytest.FixtureRequest) -> Iterator[MySQLTopology]:
    """A MySQL primary and its replica, as `antipode_testing.MySQLTopology`."""
    from . import MySQLTopology

    yield from request.config.stash[USE].run("mysql", MySQLTopology)


@pytest.fixture(scope="session")
def antipode_mariadb(request: pytest.FixtureRequest) -> Iterator[MariaDBTopology]:
    """A MariaDB primary and its replica, as `antipode_testing.MariaDBTopology`."""
    from . import MariaDBTopology

    yield from request.config.stash[USE].run("mariadb", MariaDBTopology)


@pytest.fixture(scope="session")
def antipode_postgresql(request: pytest.FixtureRequest) -> Iterator[PostgreSQLTopology]:
    """A PostgreSQL primary and its standby, as `antipode_testing.PostgreSQLTopology`."""
    from . import PostgreSQLTopology

    yield from request.config.stash[USE].run("postgresql", PostgreSQLTopology)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """Heal the stores once the test's own fixtures are gone."""
    try:
        return (yield)
    finally:
        use = item.config.stash[USE]
        if use.running:
            use.heal()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a worker process of pytest-xdist: report to the main one."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[WORKER_KEY] = session.config.stash[USE].report()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object | None) -> None:  # noqa: ARG001 - xdist's names
    """In the main process of pytest-xdist: take in what a worker reports."""
    report = getattr(node, "workeroutput", {}).get(WORKER_KEY)
    if report is not None:
        node.config.stash[USE].add(report)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say which stores were real in this run: a skip must not appear as a pass."""
    use = config.stash[USE]
    if use.used:
        provider = os.environ.get(PROVIDER_VARIABLE)
        where = f", by the provider {provider!r}" if provider else ""
        terminalreporter.write_line(f"antipode stores used: {', '.join(sorted(use.used))}{where}")
    for store, reason in sorted(use.missing.items()):
        verb = "missing, though required" if store in use.required else "skipped"
        terminalreporter.write_line(f"antipode store {verb}: {store} ({reason})")
