"""What a dry run says of a server that rules call a replica, and that takes writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode.diagnostics import settle
from antipode_cli.report import load, report

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from antipode_cli.report import Report
    from antipode_testing import PostgreSQLTopology

psycopg: Any = pytest.importorskip("psycopg")
pytestmark = [
    pytest.mark.store("postgresql"),
    pytest.mark.usefixtures("covered"),
    pytest.mark.slow,
]
INSERT = "INSERT INTO returned DEFAULT VALUES RETURNING id"


@pytest.fixture
def server(antipode_postgresql: PostgreSQLTopology) -> Iterator[PostgreSQLTopology]:
    """One server, with a table to write to."""
    antipode_postgresql.execute("CREATE TABLE returned (id SERIAL PRIMARY KEY)")
    antipode_postgresql.execute("GRANT ALL ON returned, returned_id_seq TO PUBLIC")
    yield antipode_postgresql
    antipode_postgresql.execute("DROP TABLE returned")


def dry_run(server: PostgreSQLTopology, option: str, records: Path, *statements: str) -> Report:
    """What is said of a request that executes *statements*, each on a connection of its own."""
    antipode.configure(mode="dry-run", dry_run_dir=records)
    antipode.setup(datastores=f"shop=postgresql://{server.primary}?{option}")
    with antipode.scope():
        for statement in statements:
            with psycopg.connect(server.url()) as connection:
                connection.execute(statement).fetchall()
    settle(5)
    antipode.configure(mode="enforce")  # Closes the file.
    return report(load([records]))


def test_a_server_that_took_a_write_is_no_replica(
    server: PostgreSQLTopology, tmp_path: Path
) -> None:
    """Neither a row that an INSERT returns nor what is read after it is a finding."""
    found = dry_run(server, "reads_from=replica", tmp_path, INSERT, INSERT, "TABLE returned")
    assert found.findings == ()


def test_one_server_that_stands_for_both(server: PostgreSQLTopology, tmp_path: Path) -> None:
    """Its reads are judged as a replica's, without a wait; what an INSERT returns is none."""
    found = dry_run(server, "both=true", tmp_path, INSERT, INSERT, "TABLE returned")
    (finding,) = found.findings
    assert (finding.datastore, finding.reads) == ("shop", 1)
    assert finding.cost.median_s is None
    assert found.datastores == ("shop",)
