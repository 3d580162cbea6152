"""``python -m antipode_shims.mysql``: prints a migration that works, checks it, changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from antipode_shims.mysql.__main__ import main
from tests.integration._mysql_clients import run

if TYPE_CHECKING:
    from tests.integration._mysql_clients import Sql


def test_what_it_prints_makes_the_check_pass(
    posts: Sql, capsys: pytest.CaptureFixture[str]
) -> None:
    """Printed, nothing is changed; run, the table is ready; taken back, it is as before."""
    url, where = posts.topology.url(), posts.topology.database
    before = run(posts.plain(), "SHOW CREATE TABLE plain")
    assert main(["check", "--url", url, "plain", "posts"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("plain: lacks the column, trigger plain_ap_insert")
    assert said[1] == "posts: ready"
    assert main(["migration", "--url", url, "plain"]) == 0
    printed = capsys.readouterr().out.split(";\n")
    assert run(posts.plain(), "SHOW CREATE TABLE plain") == before
    admin = posts.topology.execute
    admin(f"USE {where}")
    for statement in filter(None, printed):
        admin(statement)
    assert main(["check", "--url", url, "plain", f"{where}.plain"]) == 0
    assert capsys.readouterr().out.splitlines() == ["plain: ready", f"{where}.plain: ready"]
    assert main(["undo", "plain"]) == 0
    for statement in filter(None, capsys.readouterr().out.split(";\n")):
        admin(statement)
    assert run(posts.plain(), "SHOW CREATE TABLE plain") == before


def test_a_key_of_two_columns(posts: Sql, capsys: pytest.CaptureFixture[str]) -> None:
    """Tombstones of such a table are told apart by both."""
    admin, where = posts.topology.execute, posts.topology.database
    admin(f"USE {where}")
    admin("DROP TABLE plain")
    admin("CREATE TABLE plain (a INT, b VARCHAR(9), PRIMARY KEY (a, b))")
    assert main(["migration", "--url", posts.topology.url(), "plain"]) == 0
    for statement in filter(None, capsys.readouterr().out.split(";\n")):
        admin(statement)
    connection = posts.plain()
    run(connection, "SET @antipode_lineage = '1', @antipode_until = 9")
    run(connection, "INSERT INTO plain VALUES (1, 'x'), (1, 'y')")
    run(connection, "DELETE FROM plain")
    rows = run(connection, "SELECT k FROM antipode_tombstone ORDER BY k")
    assert [key.decode() for (key,) in rows] == ["1:1:1:x", "1:1:1:y"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["migration", "--url", "{url}", "nothing"], "does not exist"),
        (["check", "posts"], "give --url"),
        (["check", "--url", "mysql+pymysql://nobody@127.0.0.1:1/x", "posts"], "no connection"),
    ],
)
def test_errors_are_one_line(
    posts: Sql,
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And status 2."""
    monkeypatch.delenv("ANTIPODE_MYSQL_URL", raising=False)
    assert main([each.format(url=posts.topology.url()) for each in arguments]) == 2
    errors = capsys.readouterr().err
    assert said in errors
    assert errors.count("\n") == 1
