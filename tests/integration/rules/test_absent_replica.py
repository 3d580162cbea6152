"""A replica where no server is: whatever a store's client calls that, nobody waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import antipode
from antipode.shim import SYSTEM_CLOCK, register, scope_in, shims_of
from tests.integration._ports import refused_port
from tests.unit._fake_server import FakeServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Seconds that nobody would wait for in a test.
FOR_EVER_S = 600.0
LINEAGE = antipode.Lineage([antipode.WriteId("gone", "log", 7)])


def redis(host: str, port: int) -> object:
    client = pytest.importorskip("redis")
    from antipode_shims import redis as shim

    far = client.Redis(host=host, port=port)
    return shim.instrument_client(far, datastore="gone", reads_from="replica")


def mysql(host: str, port: int) -> object:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    from antipode_shims import mysql as shim

    far = sqlalchemy.create_engine(f"mysql+pymysql://{host}:{port}/shop")
    return shim.instrument_engine(far, datastore="gone", reads_from="replica")


def postgresql(host: str, port: int) -> object:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    from antipode_shims import postgresql as shim

    far = sqlalchemy.create_engine(f"postgresql+psycopg://{host}:{port}/shop")
    return shim.instrument_engine(far, datastore="gone", reads_from="replica")


def mongodb(host: str, port: int) -> object:
    pymongo = pytest.importorskip("pymongo")
    from antipode_shims import mongodb as shim

    far = pymongo.MongoClient(host, port, directConnection=True, connect=False)
    return shim.instrument_client(far, datastore="gone", reads_from="replica")


@pytest.fixture(params=["refused", "without an address"])
def nowhere(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    """An address at which no server is."""
    if request.param != "refused":
        yield "replica.invalid", 7000
        return
    with refused_port() as port:
        yield "127.0.0.1", port


@pytest.mark.parametrize("make", [redis, mysql, postgresql, mongodb])
def test_it_is_not_waited_for_and_logged_once(
    make: Callable[[str, int], object],
    nowhere: tuple[str, int],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Six requests read at the primary, and none has used up its time."""
    monkeypatch.setattr("antipode._runtime.metrics.SELDOM_S", 0.0)  # What other tests logged.
    kept = make(*nowhere)
    antipode.configure(
        barriers="auto", on_stale="primary", auto_timeout=FOR_EVER_S, max_timeout=FOR_EVER_S
    )
    primary = FakeServer("gone", position=9)
    primary.floors = True
    register(primary)
    try:
        for _ in range(6):
            with antipode.scope(LINEAGE) as scope:
                assert scope_in() is not None
                assert antipode.reads_from("gone") == "primary"
                assert scope.allowance().left_s(SYSTEM_CLOCK.monotonic()) > FOR_EVER_S - 60
        lines = [each.getMessage() for each in caplog.records if "is there" in each.getMessage()]
        assert len(lines) == 1
    finally:
        assert kept is not None
        for each in shims_of("gone"):
            each.close()
