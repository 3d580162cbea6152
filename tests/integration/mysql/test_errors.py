"""Errors of the server reach the application as its client raises them, also at reads that wait."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from tests.integration._errors import error_of
from tests.integration.mysql._clients import NOTES, TIMEOUT_S, Sql, run
from tests.integration.mysql.test_as_plain import session_of

if TYPE_CHECKING:
    from antipode import Lineage

pytestmark = pytest.mark.slow

MADE = (
    "DROP TABLE IF EXISTS refusing, locked",
    "CREATE TABLE locked (id INT PRIMARY KEY)",
    "INSERT INTO locked VALUES (1)",
    "CREATE TABLE refusing (id INT PRIMARY KEY, body VARCHAR(3) NOT NULL)",
    "INSERT INTO refusing VALUES (1, 'a')",
    "DROP PROCEDURE IF EXISTS raises",
    "CREATE PROCEDURE raises() SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'x', MYSQL_ERRNO = 5000",
)
#: What servers refuse, each with a code of its own.
STEPS = (
    "SELEC 1",
    "SELECT * FROM no_such_table",
    "SELECT no_such_column FROM refusing",
    "SELECT id FROM refusing WHERE id = (SELECT 1 UNION SELECT 2)",
    "SELECT 9223372036854775807 + id FROM refusing",
    "SELECT no_such_function()",
    "SELECT * FROM mysql.user",
    "SELECT id FROM locked FOR UPDATE NOWAIT",
    "SELECT id FROM refusing PROCEDURE ANALYSE()",
    "INSERT INTO refusing VALUES (1, 'a')",
    "INSERT INTO refusing VALUES (2, 'too long')",
    "INSERT INTO refusing VALUES (2, NULL)",
    "INSERT INTO refusing VALUES ('x', 'a')",
    "INSERT INTO refusing VALUES (2)",
    "CALL raises()",
    "CALL no_such_procedure()",
    "SET no_such_variable = 1",
    "START TRANSACTION READ ONLY",
    "INSERT INTO refusing VALUES (3, 'a')",
    "ROLLBACK",
    "SELECT id FROM refusing",
    "KILL 0",
    "KILL QUERY CONNECTION_ID()",
    "SELECT id FROM refusing",
)


def outcomes(session: Any, floor: Lineage | None) -> list[Any]:
    """How each step ends, under a floor where there is one."""
    found = []
    for step in STEPS:
        with antipode.scope(floor):
            if floor is not None:
                antipode.barrier(timeout=TIMEOUT_S, at="read")
            found.append((step, error_of(lambda step=step: session.execute(step))))  # type: ignore[misc]
    return found


@pytest.mark.parametrize("client", ["PyMySQL", "mysqlclient", "aiomysql"])
def test_errors_are_the_plain_ones(sql: Sql, client: str) -> None:
    """Whatever the server refuses: the same type, arguments and attributes, waiting or not."""
    observer = sql.plain()
    for statement in MADE:
        run(observer, statement)
    with antipode.scope() as scope:
        run(sql.connect(), "UPDATE refusing SET body = 'b'")
        floor = scope.lineage
    holder = sql.plain(autocommit=False)
    run(holder, "SELECT id FROM locked FOR UPDATE")
    with ExitStack() as stack:
        plain, ours, waiting = (
            stack.enter_context(closing(session_of(client, sql, instrumented=instrumented)))
            for instrumented in (False, True, True)
        )
        wanted = outcomes(plain, None)
        assert outcomes(ours, None) == wanted
        assert outcomes(waiting, floor) == wanted
    holder.rollback()


@pytest.mark.parametrize("client", ["PyMySQL", "mysqlclient", "aiomysql"])
def test_a_connection_that_was_ended_says_so(sql: Sql, client: str) -> None:
    """An administrator ends it while nobody uses it; then a read is held back."""
    writer, observer = sql.connect(), sql.plain()
    for statement in MADE:
        run(observer, statement)
    found = []
    for instrumented in (False, True):
        with closing(session_of(client, sql, instrumented=instrumented)) as session:
            session.execute("SELECT 1")
            with antipode.scope():
                run(writer, "UPDATE refusing SET body = 'c'")
                if instrumented:
                    antipode.barrier(timeout=TIMEOUT_S, at="read", only=NOTES)
                run(observer, f"KILL {session.connection.thread_id()}")
                found.append(error_of(lambda: session.execute("SELECT id FROM refusing")))
    assert found[1] == found[0]
