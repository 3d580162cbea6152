"""A standby that an archive feeds: no receiver, and the log arrives a whole segment at a time."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import BarrierTimeout, Lineage, Status
from antipode_shims.postgresql._position import history_ddl, undo_history
from antipode_testing import wait_until
from tests.integration.postgresql._clients import body
from tests.integration.postgresql.test_failover import HISTORIES, STREAM, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.postgresql._clients import Clients

pytestmark = [pytest.mark.store("postgresql"), pytest.mark.timeout(120)]


class Archive:
    """Where whole segments go, and from where a standby fetches them."""

    def __init__(self, clients: Clients, folder: Path) -> None:
        self._topology, self._folder = clients.topology, folder
        folder.chmod(0o755)
        self._topology.config(
            {"restore_command": f"cp {folder}/%f %p", "primary_conninfo": ""}, replica=0
        )
        wait_until(lambda: not self._receives(), what="the receiver to end", timeout_s=10)

    def _receives(self) -> bool:
        return bool(self._topology.execute("SELECT 1 FROM pg_stat_wal_receiver", replica=0))

    def complete(self) -> None:
        """Have the primary end a segment, and put there what is whole."""
        rows = self._topology.execute(
            "SELECT pg_walfile_name(pg_switch_wal()) AS last,"
            " current_setting('data_directory') AS folder"
        )
        last, folder = rows[0].values()
        for segment in sorted((Path(folder) / "pg_wal").glob("0*")):
            if segment.name <= last and "." not in segment.name:
                shutil.copyfile(segment, self._folder / segment.name)


@pytest.fixture
def archive(clients: Clients) -> Iterator[Archive]:
    """Of a primary whose standby follows nothing else."""
    # Another user than root fetches from it, who may not go where pytest's folders are.
    with tempfile.TemporaryDirectory(prefix="antipode-archive-") as folder:
        yield Archive(clients, Path(folder))


def told(lineage: Lineage) -> tuple[set[Status], str]:
    """What a barrier makes of *lineage* at the standby, and why."""
    result = antipode.barrier(lineage, timeout=1, on_unmet="return")
    return {outcome.status for outcome in result.outcomes}, str(result.outcomes)


def test_a_read_waits_until_the_segment_is_there(clients: Clients, archive: Archive) -> None:
    """And no longer: a barrier is not met before, and both are right after."""
    writer, reader = clients.writer(autocommit=True), clients.reader(autocommit=True)
    lineage = written(writer, "new")
    assert told(lineage)[0] == {Status.NOT_YET}
    with antipode.scope(lineage):
        antipode.barrier(timeout=1, at="read")
        with pytest.raises(BarrierTimeout):
            body(reader)
    assert body(reader) == ""
    archive.complete()
    with antipode.scope(lineage):
        antipode.barrier(timeout=20, at="read")
        assert body(reader) == "new"


def test_only_histories_prove_its_timeline(clients: Clients, archive: Archive) -> None:
    """There is no receiver that would show it: what is said to grant is what helps."""
    writer, _ = clients.writer(autocommit=True), clients.reader(autocommit=True)
    lineage = written(writer, "new")
    execute = clients.topology.execute

    def after(*statements: str) -> tuple[set[Status], str]:
        for statement in statements:
            execute(statement)
        there = "SELECT 1 FROM posts WHERE body = %s"
        execute("UPDATE posts SET body = %s", str(statements))
        archive.complete()
        wait_until(
            lambda: bool(execute(there, str(statements), replica=0)), what="replay", timeout_s=20
        )
        return told(lineage)

    try:
        found, why = after(f"REVOKE {HISTORIES} FROM app")
        assert found == {Status.UNKNOWN_LOG}
        assert f"GRANT {HISTORIES}" in why
        assert STREAM not in why
        found, why = after(f"GRANT {STREAM} TO app")
        assert found == {Status.NOT_YET}
        assert "migration --history" in why
        assert after(*history_ddl())[0] == {Status.VISIBLE}
    finally:
        for statement in (*undo_history(), f"REVOKE {STREAM} FROM app"):
            execute(statement)
        execute(f"GRANT {HISTORIES} TO app")


def test_a_promotion_keeps_what_the_archive_had(clients: Clients, archive: Archive) -> None:
    """Its fork is where the archive ended: what the old primary wrote after that is lost."""
    writer, reader = clients.writer(autocommit=True), clients.reader(autocommit=True)
    kept = written(writer, "kept")
    archive.complete()
    wait_until(lambda: body(reader) == "kept", what="replay", timeout_s=20)
    lost = written(writer, "lost")
    assert told(lost)[0] == {Status.NOT_YET}
    clients.topology.failover()
    new = written(reader, "new")
    assert not new.incomplete
    assert told(kept)[0] == {Status.VISIBLE}
    assert told(new)[0] == {Status.VISIBLE}
    assert told(lost)[0] == {Status.LOST}
