"""Clients that no rule names: who is told, and who is not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode._runtime import metrics as _metrics
from antipode.diagnostics import rules_without_clients
from antipode.shim import shims_of

if TYPE_CHECKING:
    from antipode_testing import PostgreSQLTopology

redis = pytest.importorskip("redis")
psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.slow


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]


@pytest.mark.store("postgresql")
def test_another_spelling_of_the_host(
    antipode_postgresql: PostgreSQLTopology, covered: None, caplog: pytest.LogCaptureFixture
) -> None:
    """The connected address shows which rule was meant; the connection stays as it is."""
    del covered
    topology = antipode_postgresql
    near = f"{topology.url(topology.replica)}?reads_from=replica"
    antipode.configure(datastores={"shop": [topology.url(), near]})
    antipode.setup()
    without = rules_without_clients()
    for _ in range(2):
        with psycopg.connect(topology.url(), host="db.internal", hostaddr="127.0.0.1") as plain:
            assert type(plain) is psycopg.Connection
    (warning,) = [each for each in warnings(caplog) if "db.internal" in each]
    assert "is 'shop' under another name of its host" in warning
    assert f"shop=postgresql://db.internal:{topology.primary.port}/app to ANTIPODE_D" in warning
    assert rules_without_clients() == without
    with psycopg.connect(topology.url()):
        assert shims_of("shop")
    assert {*rules_without_clients()} <= {f"shop=postgresql://{_spelled(topology)}/app"}


def _spelled(topology: PostgreSQLTopology) -> str:
    return f"localhost:{topology.replica.port}"


def test_sentinels_have_no_data(covered: None, caplog: pytest.LogCaptureFixture) -> None:
    """Their clients are no datastore's, whatever their port: nothing is said of them."""
    del covered
    from redis.asyncio.sentinel import Sentinel as AsyncSentinel
    from redis.sentinel import Sentinel

    antipode.configure(datastores="feed=redis+sentinel://mymaster")
    antipode.setup()
    for made in (Sentinel, AsyncSentinel):
        made([("sentinel", 26400)]).master_for("mymaster")
    assert not [each for each in warnings(caplog) if "sentinel" in each]
    Sentinel([("sentinel", 26400)]).master_for("other")
    (warning,) = [each for each in warnings(caplog) if "sentinel" in each]
    assert "NAME=redis+sentinel://sentinel:26400/other/0 to ANTIPODE_DATASTORES" in warning


@pytest.mark.store("postgresql")
@pytest.mark.parametrize("client", ["psycopg", "psycopg2", "asyncpg"])
def test_a_standby_whose_rule_does_not_say_so(
    client: str,
    antipode_postgresql: PostgreSQLTopology,
    covered: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its server says it as it answers the connection; of the primary nothing is said."""
    del covered
    module, topology = pytest.importorskip(client), antipode_postgresql
    _forget_what_was_said()
    names = {"shop": [topology.url(), topology.url(topology.replica)]}
    antipode.setup(datastores=names)
    for server in (topology.primary, topology.replica):
        if client == "asyncpg":
            asyncio.run(_connect_asyncpg(module, topology.url(server)))
        else:
            module.connect(topology.url(server)).close()
    (warning,) = [each for each in warnings(caplog) if "is a replica" in each]
    entry = f"shop=postgresql://localhost:{topology.replica.port}?reads_from=replica"
    assert f"reads of 'shop' there wait for nothing. Write {entry} in" in warning


async def _connect_asyncpg(module: Any, url: str) -> None:
    await (await module.connect(url)).close()


def _forget_what_was_said() -> None:
    _metrics._logged.clear()
