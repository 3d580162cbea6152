"""The statements with which each language says that its tables are made."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from antipode_shims import mysql
from tests.agent.client import RemoteShim
from tests.conformance._agents import LANGUAGES
from tests.contract._servers import described

if TYPE_CHECKING:
    from antipode_testing import MariaDBTopology, MySQLTopology
    from tests.agent.client import RemoteAntipode
    from tests.agent.lending import Lend

pytestmark = pytest.mark.slow


@pytest.mark.store("mysql")
@pytest.mark.parametrize("language", LANGUAGES)
def test_mysql_takes_them(antipode_mysql: MySQLTopology, language: str, lend: Lend) -> None:
    """In a database that has none of the tables a shim writes, deletes and reads."""
    _works_in_a_new_database(antipode_mysql, language, lend(language))


@pytest.mark.store("mariadb")
@pytest.mark.parametrize("language", LANGUAGES)
def test_mariadb_takes_them(antipode_mariadb: MariaDBTopology, language: str, lend: Lend) -> None:
    """In a database that has none of the tables a shim writes, deletes and reads."""
    _works_in_a_new_database(antipode_mariadb, language, lend(language))


def _works_in_a_new_database(
    topology: MySQLTopology | MariaDBTopology, language: str, remote: RemoteAntipode
) -> None:
    name = f"own_{language}"
    topology.execute(f"CREATE DATABASE {name}")
    topology.execute(f"GRANT ALL ON {name}.* TO app@'%'")
    if language == "python":  # Agents of other languages run their own statements.
        for statement in (*mysql.ddl(), *mysql.promises_ddl()):
            topology.execute(statement.replace("`antipode_", f"{name}.`antipode_", 1))
    server = {**described(topology.store, topology, topology.primary), "database": name}
    try:
        with (
            closing(RemoteShim(remote, topology.store, "posts", server)) as shim,
            remote.scope(),
        ):
            key = "k" * 512
            shim.write(key, b"1")
            assert shim.read(key)[0] == b"1"
            shim.delete(key)
            assert shim.read(key)[0] is None
    finally:
        topology.execute(f"DROP DATABASE {name}")
