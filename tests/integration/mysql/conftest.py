"""Fixtures of the tests of MySQL and MariaDB."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from antipode_testing import LagProxy
from tests.integration.mysql._clients import STORES, Sql
from tests.integration.mysql._promises import Branches
from tests.integration.mysql._stored import IN_COLUMNS, IN_SIDE_TABLES, make_posts

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def to_primary(sql: Sql) -> Iterator[LagProxy]:
    """A proxy to the primary, which counts round trips and fails when told to."""
    with LagProxy(sql.topology.primary) as through:
        yield through


@pytest.fixture(params=[*IN_COLUMNS, *IN_SIDE_TABLES])
def posts(request: pytest.FixtureRequest) -> Iterator[Sql]:
    """MySQL or MariaDB with a table beside whose rows lineages can lie."""
    store, side_table = request.param
    topology = request.getfixturevalue(f"antipode_{store}")
    make_posts(topology, side_table=side_table)
    with contextlib.closing(Sql(topology, side_table=side_table)) as one:
        yield one


@pytest.fixture(params=STORES)
def branches(request: pytest.FixtureRequest) -> Iterator[Branches]:
    """MySQL and MariaDB in turn, two regions each, with the tables of promises."""
    topology = request.getfixturevalue(f"antipode_{request.param}")
    with contextlib.closing(Branches(topology)) as one:
        yield one


@pytest.fixture
def unfinished(branches: Branches) -> Iterator[Any]:
    """A PyMySQL connection to the primary that nothing instruments, autocommit off."""
    with contextlib.closing(branches.connect()) as one:
        yield one


#: Longer than any test.
LONG_S = 60.0


@pytest.fixture
def blocking(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, too, barriers at MySQL get a connection to block on."""
    monkeypatch.setattr("antipode_shims.mysql._endpoint.endpoint._WAITER_S", LONG_S)


@pytest.fixture
def endless(blocking: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What blocks at MySQL ends because it is ended: its slice is longer than the test."""
    del blocking
    for name in (
        "antipode._barrier.watcher.SLICE_S",
        "antipode_shims.mysql._look.SLICE_S",
        "antipode_shims.mysql._endpoint.endpoint._KILL_S",
    ):
        monkeypatch.setattr(name, LONG_S)
