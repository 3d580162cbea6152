"""How a barrier waits at a MySQL or MariaDB server: blocked there, prompt, and leaving nothing."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import BarrierTimeout, Status
from antipode._runtime import metrics as _metrics
from antipode.telemetry import Metric
from antipode_shims import mysql as shims
from antipode_testing import LagProxy, wait_until

from ._servers import (
    FLAVORS,
    GRANTS,
    Regions,
    only,
    regions,
    revoke,
    version,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=FLAVORS)
def here(request: pytest.FixtureRequest) -> Iterator[Regions]:
    with regions(request.getfixturevalue(request.param)) as found:
        yield found


TIMEOUT_S = 20.0


def looks() -> int:
    return antipode.telemetry.metrics().get(Metric("polls", "posts"), 0)


@pytest.mark.usefixtures("endless")
def test_server_blocks_and_nothing_is_left(here: Regions) -> None:
    """While a barrier waits, one statement blocks on the replica; when it ends, none does."""
    here.replicated()
    here.topology.pause()
    lineage = here.write()
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(antipode.barrier, lineage, timeout=TIMEOUT_S) for _ in range(3)]
        wait_until(
            lambda: len(here.waiting()) == 1, what="a blocked statement", timeout_s=TIMEOUT_S
        )
        here.topology.resume()
        assert all(each.result(TIMEOUT_S).ok for each in waiting)
    wait_until(lambda: not here.waiting(), what="the statement to end", timeout_s=TIMEOUT_S)


@pytest.mark.usefixtures("endless")
def test_timeout_ends_the_wait_on_the_server(here: Regions) -> None:
    """A barrier that gives up leaves nothing that waits on the server."""
    here.replicated()
    here.topology.pause()
    lineage = here.write()
    with pytest.raises(BarrierTimeout):
        antipode.barrier(lineage, timeout=0.3)
    wait_until(lambda: not here.waiting(), what="the statement to end", timeout_s=TIMEOUT_S)


def test_closing_ends_the_wait_on_the_server(here: Regions) -> None:
    """What waits on the server when a shim is closed ends with its slice, if not at once."""
    here.replicated()
    here.topology.pause()
    handle = antipode.barrier_callback(print, here.write(), timeout=TIMEOUT_S)
    wait_until(lambda: bool(here.waiting()), what="a blocked statement", timeout_s=TIMEOUT_S)
    handle.cancel()
    here.reader.close()
    wait_until(lambda: not here.waiting(), what="the statement to end", timeout_s=5)


@pytest.mark.usefixtures("blocking")
def test_waiting_costs_few_looks(here: Regions) -> None:
    """A server that blocks is not polled: a wait of 1.5 seconds costs a handful of looks."""
    here.replicated()
    here.topology.pause()
    lineage = here.write()
    before = looks()
    with pytest.raises(BarrierTimeout):
        antipode.barrier(lineage, timeout=1.5)
    assert looks() - before <= 5


def test_nothing_to_wait_for_costs_no_look(here: Regions) -> None:
    """What was visible once on a connection needs no question while that connection lives."""
    lineage = here.replicated()
    antipode.barrier(lineage, timeout=5)
    before = looks()
    for _ in range(10):
        assert antipode.barrier(lineage, timeout=5).ok
    assert looks() == before


@pytest.mark.slow
def test_server_far_away_is_reached(here: Regions) -> None:
    """Round trips of 200 ms: connecting takes more than a look may, and is no look."""
    lineage = here.replicated()
    here.reader.close()
    with (
        LagProxy(here.topology.replica, lag_ms=100, request_lag_ms=100) as far,
        shims.shim("posts", here.topology.url(far.address), reads_from="replica"),
    ):
        assert antipode.barrier(lineage, timeout=10).ok
        opened = far.traffic().connections
        here.topology.pause()
        with pytest.raises(BarrierTimeout) as late:
            antipode.barrier(here.write(), timeout=0.5)
        assert [each.status for each in late.value.result.outcomes] == [Status.NOT_YET]
        assert far.traffic().connections <= opened + 1  # The one that waits.


def test_stopped_server_keeps_the_deadline(here: Regions) -> None:
    """A server whose process is frozen answers nothing: the barrier ends in time all the same."""
    here.replicated()
    here.topology.suspend_replica()
    lineage = here.write()
    took_s: list[float] = []
    for _ in range(3):
        started_s = time.monotonic()
        with pytest.raises(BarrierTimeout) as caught:
            antipode.barrier(lineage, timeout=0.4)
        took_s.append(time.monotonic() - started_s)
        statuses = {outcome.status for outcome in caught.value.result.outcomes}
        assert statuses <= {Status.UNREACHABLE, Status.NOT_YET}
    # A busy machine is late at times; what waits for the server is late always.
    assert min(took_s) < 0.6
    assert max(took_s) < 2
    here.topology.resume_replica()
    assert antipode.barrier(lineage, timeout=10).ok


def test_freezing_while_blocked(here: Regions) -> None:
    """A server that freezes while a statement blocks there hangs neither barrier nor close."""
    here.replicated()
    here.topology.pause()
    lineage = here.write()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(antipode.barrier, lineage, timeout=2.0, on_unmet="return")
        wait_until(lambda: bool(here.waiting()), what="a blocked statement", timeout_s=TIMEOUT_S)
        here.topology.suspend_replica()
        assert not waiting.result(4).ok
    started_s = time.monotonic()
    here.reader.close()
    assert time.monotonic() - started_s < 4
    here.topology.resume_replica()


def test_restarted_server_is_not_taken_for_the_one_before(here: Regions) -> None:
    """After a restart nothing is known any more: the next barrier looks, on a new connection."""
    lineage = here.replicated()
    first = antipode.barrier(lineage, timeout=5).outcomes[0].server
    here.topology.restart_replica()
    before = looks()
    result = antipode.barrier(lineage, timeout=10)
    assert looks() > before
    assert result.outcomes[0].server != first


def test_positions_reset_under_a_live_connection(here: Regions) -> None:
    """Positions that go backwards are another incarnation: what was known does not count."""
    write = only(here.replicated())
    endpoint = here.reader.open_endpoint(timeout_s=2)
    try:
        first = endpoint.observe([write], timeout_s=2)
        assert first.statuses[write] is Status.VISIBLE
        here.topology._rebuild = True
        for statement in ("STOP REPLICA", *_reset(here)):
            here.topology.execute(statement, replica=0)
        second = endpoint.observe([write], timeout_s=2)
        assert second.statuses[write] is not Status.VISIBLE
        assert second.server != first.server
    finally:
        endpoint.close()


def test_reset_under_an_idle_connection(here: Regions, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server showed is remembered for seconds, and then looked for again."""
    lineage = here.replicated()
    assert antipode.barrier(lineage, timeout=5).ok
    here.topology._rebuild = True
    for statement in ("STOP REPLICA", *_reset(here)):
        here.topology.execute(statement, replica=0)
    monkeypatch.setattr("antipode_shims.mysql._endpoint.endpoint.FRESH_S", 0.0)
    result = antipode.barrier(lineage, timeout=0.3, on_unmet="return")
    assert not result.ok
    assert result.outcomes[0].status is not Status.VISIBLE


def _reset(here: Regions) -> tuple[str, ...]:
    if here.topology.store == "mysql":
        old = version(here.topology) < (8, 2)
        return ("RESET MASTER" if old else "RESET BINARY LOGS AND GTIDS",)
    return "RESET MASTER", "SET GLOBAL gtid_slave_pos = ''"


def test_lag_needs_no_privilege(
    here: Regions, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who may not ask for the state of replication still waits for late writes.

    A timeout says where the replica is and where the write; what the user lacks is logged, once.
    """
    monkeypatch.setattr(_metrics, "_logged", set())
    here.replicated()
    here.topology.execute(revoke(here.topology))
    here.topology.wait_replicated()
    here.reader.close()
    with regions_without_grant(here):
        here.topology.set_lag(100)
        assert antipode.barrier(here.write(), timeout=10).ok
        here.topology.wait_replicated()
        here.topology.pause()
        late = here.write()
        with pytest.raises(BarrierTimeout) as caught:
            antipode.barrier(late, timeout=0.3)
    number = only(late).version
    assert isinstance(number, int)
    assert f"the server is at {number - 1}, and the write is {number}" in str(caught.value)
    assert "privilege" not in str(caught.value)
    assert caplog.text.count(f"GRANT {GRANTS[here.topology.store]}") == 1


class regions_without_grant:  # noqa: N801 - reads as a block
    """The reader anew, for its user's privileges are those of when it logged in."""

    def __init__(self, here: Regions) -> None:
        self._here = here

    def __enter__(self) -> None:
        from antipode_shims import mysql

        topology = self._here.topology
        url = topology.url(topology.replica)
        self._here.reader = mysql.shim("posts", url, reads_from="replica")

    def __exit__(self, *_: object) -> None:
        self._here.topology.resume()
