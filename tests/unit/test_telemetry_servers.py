"""Where spans and lines of the log say that a read was made, and what they call a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode.shim import Observation, ServerName, StaleRead, floor, register
from tests.unit._fake_server import LINEAGE, FakeServer
from tests.unit._telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WHERE = {"db.system.name": "postgresql", "server.address": "db-2", "server.port": 5432}
LATE = Observation("server-1", {})


class Standby(FakeServer):
    """A replica at an address."""

    floors = True
    system = "postgresql"

    @property
    def server_name(self) -> ServerName:
        return ServerName(self.system, "db-2", 5432)


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Telemetry]:
    telemetry = Telemetry()
    telemetry.install(monkeypatch)
    monkeypatch.setattr("antipode._runtime.metrics.SELDOM_S", 0.0)
    yield telemetry
    telemetry.close()


@pytest.fixture
def standby() -> Standby:
    made = Standby("posts")
    made.reads_from = "replica"
    register(made)
    return made


def warned(caplog: pytest.LogCaptureFixture) -> tuple[str, dict[str, Any]]:
    """The one warning, and those of its record's attributes that say where."""
    (record,) = [each for each in caplog.records if each.levelname == "WARNING"]
    return record.getMessage(), {name: vars(record)[name] for name in WHERE if name in vars(record)}


def attributes(sdk: Telemetry, name: str) -> dict[str, Any]:
    (span,) = [each for each in sdk.spans if each.name == name]
    return dict(span.attributes or {})


def test_a_barrier_that_times_out(
    sdk: Telemetry, standby: Standby, caplog: pytest.LogCaptureFixture
) -> None:
    """Its wait and its line of the log say at which server."""
    assert standby.position == 0
    with pytest.raises(antipode.BarrierTimeout):
        antipode.barrier(LINEAGE, timeout=0.02)
    assert attributes(sdk, "antipode.wait").items() >= WHERE.items()
    line, where = warned(caplog)
    assert where == WHERE
    assert "in 'posts', postgresql at db-2:5432 (not_yet)" in line


def test_a_read_that_times_out(
    sdk: Telemetry, standby: Standby, caplog: pytest.LogCaptureFixture
) -> None:
    """So do those of a held read, and its span is an error of that kind."""
    with antipode.scope(LINEAGE):
        antipode.barrier(timeout=0.02, at="read")
        held = floor(standby)
        assert held is not None
        with pytest.raises(antipode.BarrierTimeout):
            held.hold(lambda _: LATE)
    (span,) = [each for each in sdk.spans if each.name == "antipode.wait"]
    assert dict(span.attributes or {}).items() >= WHERE.items()
    assert attributes(sdk, "antipode.wait")["error.type"] == "barrier_timeout"
    assert span.status.status_code.name == "ERROR"
    line, where = warned(caplog)
    assert where == WHERE
    assert line.startswith("a read did not see all that it depends on in 'posts', postgresql at d")


def test_a_read_that_is_served_stale(
    sdk: Telemetry, standby: Standby, caplog: pytest.LogCaptureFixture
) -> None:
    """The event on the request's span and the line of the log say at which server."""
    antipode.configure(barriers="auto", auto_timeout=0.02)
    with sdk.tracers.get_tracer("shop").start_as_current_span("GET /"), antipode.scope(LINEAGE):
        stale = StaleRead()
        held = floor(standby, stale=stale)
        assert held is not None
        held.hold(lambda _: LATE)
        stale.answered()
    (request,) = [each for each in sdk.spans if each.name == "GET /"]
    (event,) = request.events
    assert dict(event.attributes or {}).items() >= WHERE.items()
    assert "error.type" not in attributes(sdk, "antipode.wait")
    line, where = warned(caplog)
    assert where == WHERE
    assert line.startswith("a read of 'posts', postgresql at db-2:5432 was answered although")


def test_a_read_that_goes_to_the_primary_is_no_failure(
    sdk: Telemetry, standby: Standby, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither a router's question nor a read that is moved counts as what an alert is for."""
    antipode.configure(barriers="auto", auto_timeout=0.02, on_stale="primary")
    primary = FakeServer("posts", position=9)
    primary.floors = True
    register(primary)
    with antipode.scope(LINEAGE):
        assert antipode.reads_from("posts") == "primary"
    with antipode.scope(LINEAGE):
        held = floor(standby)
        assert held is not None
        with pytest.raises(antipode.BarrierTimeout) as raised:
            held.hold(lambda _: LATE)
        assert raised.value.at_primary
    assert sdk.value("antipode.barrier.duration", antipode__operation="route") == 1
    assert not sdk.value("antipode.barrier.duration", antipode__operation="barrier")
    assert not sdk.value("antipode.unmet_dependencies", antipode__operation="read")
    assert not any(each.status.status_code.name == "ERROR" for each in sdk.spans)
    assert not [each for each in caplog.records if each.levelname == "WARNING"]
    assert "barrier_barrier_timeout" not in {each.name for each in antipode.telemetry.metrics()}


def redis_shim() -> object:
    redis = pytest.importorskip("redis")
    from antipode_shims import redis as shim

    return shim.instrument_client(redis.from_url("redis://:secret@cache"), datastore="cache")


def redis_socket() -> object:
    redis = pytest.importorskip("redis")
    from antipode_shims import redis as shim

    made = redis.from_url("unix://:secret@/run/redis.sock")
    return shim.instrument_client(made, datastore="cache")


def mysql_shim() -> object:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    from antipode_shims import mysql as shim

    url = "mysql+pymysql://app:secret@db/shop"
    return shim.instrument_engine(sqlalchemy.create_engine(url), datastore="cache")


def postgresql_shim() -> object:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    from antipode_shims import postgresql as shim

    url = "postgresql+psycopg://app:secret@[fd00::7]:5433/shop"
    return shim.instrument_engine(sqlalchemy.create_engine(url), datastore="cache")


def mongodb_shim() -> object:
    pymongo = pytest.importorskip("pymongo")
    from antipode_shims import mongodb as shim

    made = pymongo.MongoClient("mongodb://app:secret@docs:27018/", connect=False)
    return shim.instrument_client(made, datastore="cache")


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (redis_shim, ServerName("redis", "cache", 6379)),
        (redis_socket, ServerName("redis", "/run/redis.sock", 0)),
        (mysql_shim, ServerName("mysql", "db", 3306)),
        (postgresql_shim, ServerName("postgresql", "fd00::7", 5433)),
        (mongodb_shim, ServerName("mongodb", "docs", 27018)),
    ],
)
def test_shims_name_the_address_of_their_client(
    make: Callable[[], object], name: ServerName
) -> None:
    """As the client was given it, without connecting, user or password."""
    kept = make()
    (shim,) = antipode.shim.shims_of("cache")
    assert kept is not None
    assert shim.server_name == name
    assert (
        "secret" not in f"{shim.server_name} {shim.server_name and shim.server_name.attributes()}"
    )
    shim.close()
