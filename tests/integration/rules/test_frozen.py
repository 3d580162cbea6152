"""A replica that a rule names and that answers nobody: who waits learns which server it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import BarrierTimeout, Status
from tests.unit._telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import RedisTopology

redis = pytest.importorskip("redis")
pytestmark = pytest.mark.store("redis")
TIMEOUT_S = 0.3


@pytest.fixture
def frozen(antipode_redis: RedisTopology, covered: None) -> Iterator[RedisTopology]:
    """Rules name both servers of ``cache``; its replica is frozen and does not have ``late``."""
    del covered
    antipode_redis.wait_replicated()
    antipode.configure(
        datastores={
            "cache": [
                f"redis://{antipode_redis.primary}",
                f"redis://{antipode_redis.replica}?reads_from=replica",
            ]
        }
    )
    antipode.setup()
    yield antipode_redis
    antipode_redis.resume_replica()


@pytest.mark.parametrize("options", [{}, {"socket_timeout": 5}], ids=str)
def test_a_held_read_says_where_it_was_unreachable(
    frozen: RedisTopology,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    options: dict[str, float],
) -> None:
    """In its outcome, on its span, and in the one line of the log: not that it is not visible."""
    monkeypatch.setattr("antipode._runtime.metrics.SELDOM_S", 0.0)
    sdk = Telemetry()
    sdk.install(monkeypatch)
    near, far = frozen.primary, frozen.replica
    with (
        redis.Redis(host=near.host, port=near.port) as writer,
        redis.Redis(host=far.host, port=far.port, **options) as reader,
        antipode.scope(),
    ):
        reader.get("late")
        frozen.suspend_replica()
        writer.set("late", "1")
        antipode.barrier(timeout=TIMEOUT_S, at="read")
        with pytest.raises(BarrierTimeout) as raised:
            reader.get("late")
    assert {each.status for each in raised.value.result.outcomes} == {Status.UNREACHABLE}
    (wait,) = [each for each in sdk.spans if each.name == "antipode.wait"]
    where = {"db.system.name": "redis", "server.address": far.host, "server.port": far.port}
    assert dict(wait.attributes or {}).items() >= where.items()
    (line,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert f"{far.host}:{far.port} (unreachable" in line
    sdk.close()
