"""``python -m antipode_shims.mysql``: prints a migration that works, checks it, changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from antipode_shims.mysql import __main__ as program
from antipode_shims.mysql.__main__ import main

from ._clients import run

if TYPE_CHECKING:
    from ._clients import Sql


@pytest.fixture
def where_to(posts: Sql) -> list[str]:
    """The option for where lineages lie."""
    return ["--side-table"] if posts.side_table else []


def test_what_it_prints_makes_the_check_pass(
    posts: Sql, where_to: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Printed, nothing is changed; run, the table is ready; taken back, it is as before."""
    url, where = posts.topology.url(), posts.topology.database
    before = run(posts.plain(), "SHOW CREATE TABLE plain")
    assert main(["check", "--url", url, "plain", "posts"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("plain: lacks the column, trigger plain_ap_insert")
    assert said[1] == "posts: ready"
    assert main(["migration", "--url", url, *where_to, "plain"]) == 0
    printed = capsys.readouterr().out.split(";\n")
    assert run(posts.plain(), "SHOW CREATE TABLE plain") == before
    admin = posts.topology.execute
    admin(f"USE {where}")
    for statement in filter(None, printed):
        admin(statement)
    assert main(["check", "--url", url, "plain", f"{where}.plain"]) == 0
    assert capsys.readouterr().out.splitlines() == ["plain: ready", f"{where}.plain: ready"]
    assert main(["undo", *where_to, "plain"]) == 0
    for statement in filter(None, capsys.readouterr().out.split(";\n")):
        admin(statement)
    assert run(posts.plain(), "SHOW CREATE TABLE plain") == before
    assert not run(posts.plain(), "SHOW TABLES LIKE 'plain%ap'")
    assert not run(posts.plain(), "SHOW TRIGGERS LIKE 'plain'")


def test_a_lost_trigger_is_missed(
    posts: Sql, where_to: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The check names it, of the table and of its side table."""
    admin, lost = posts.topology.execute, "merge" if where_to else "update"
    admin(f"DROP TRIGGER {posts.topology.database}.posts_ap_{lost}")
    assert main(["check", "--url", posts.topology.url(), "posts"]) == 1
    assert capsys.readouterr().out == f"posts: lacks trigger posts_ap_{lost}\n"


@pytest.mark.parametrize(
    ("version", "status"),
    [("8.0.22", 2), ("8.0.23", 0), ("9.7.0-debian", 0), ("10.6.1-MariaDB", 0)],
)
def test_an_old_server_needs_side_tables(
    version: str,
    status: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Said in place of a migration that would fail there; with the option it is printed."""

    class Server:
        """It knows its version, and a table with a key."""

        def __init__(self, url: str) -> None:
            assert url == "some"

        def __enter__(self) -> Any:
            return lambda ask: [{"version": version, "name": "id", "charset": None}]

        def __exit__(self, *error: object) -> None:
            pass

    monkeypatch.setattr(program, "_Server", Server)
    assert main(["migration", "--url", "some", "posts"]) == status
    assert ("--side-table" in capsys.readouterr().err) == bool(status)
    assert main(["migration", "--url", "some", "--side-table", "posts"]) == 0
    assert "INVISIBLE" not in capsys.readouterr().out


def test_a_key_of_two_columns(
    posts: Sql, where_to: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Tombstones of such a table are told apart by both."""
    admin, where = posts.topology.execute, posts.topology.database
    admin(f"USE {where}")
    admin("DROP TABLE plain")
    admin("CREATE TABLE plain (a INT, b VARCHAR(9), PRIMARY KEY (a, b))")
    assert main(["migration", "--url", posts.topology.url(), *where_to, "plain"]) == 0
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
