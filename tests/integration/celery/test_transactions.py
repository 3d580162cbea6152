"""A task that is published within an open transaction: the dry run says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import antipode
from antipode.integrations import celery as antipode_celery
from tests._lines import records_in
from tests.integration.mysql._clients import NOTES, Sql, run

from . import _app as tasks
from ._workers import publishing

if TYPE_CHECKING:
    from pathlib import Path

    from antipode_testing import RabbitMQTopology


@pytest.mark.store("rabbitmq")
def test_publishing_in_a_transaction_is_flagged(
    sql: Sql, antipode_rabbitmq: RabbitMQTopology, tmp_path: Path
) -> None:
    """The task may run before the commit, and its lineage has no position of the write."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path / "records")
    antipode_celery.instrument()
    connection = sql.connect()
    with publishing(antipode_rabbitmq.url()), antipode.scope():
        run(connection, "BEGIN")
        tasks.see.delay(1)
        assert not flagged(tmp_path)
        run(connection, "INSERT INTO notes VALUES (2, 'open')")
        tasks.see.delay(2)
        run(connection, "COMMIT")
        tasks.see.delay(3)
    antipode_celery.uninstrument()
    antipode.configure(mode="enforce")
    ((datastore, function),) = flagged(tmp_path)
    assert datastore == NOTES
    assert function == "test_publishing_in_a_transaction_is_flagged"


def flagged(folder: Path) -> set[tuple[str, str]]:
    """The datastores, and the functions, of what left within a transaction."""
    lints = [each for each in records_in(folder / "records") if each["kind"] == "lint"]
    return {
        (each["datastore"], each["site"]["function"])
        for each in lints
        if each["lint"] == "in-transaction"
    }
