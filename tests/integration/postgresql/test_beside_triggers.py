"""The triggers of tables whose rows have stored lineages, on a server, without a client of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from psycopg.errors import InsufficientPrivilege

from antipode import Lineage
from antipode.shim import decode, encode
from antipode_shims._sql.superseded import superseded
from antipode_shims.postgresql.__main__ import main
from tests.integration.postgresql._beside import (
    CAUSE,
    OTHER,
    grave,
    make_table,
    moving,
    printed_by,
    texts,
)

if TYPE_CHECKING:
    from tests.integration.postgresql._clients import Clients

pytestmark = [pytest.mark.store("postgresql"), pytest.mark.slow]
HOUR = 999_999


def depend(connection: Any, *writes: Any) -> str:
    """Let the writes of a session depend on these; the text that is stored."""
    text = encode(Lineage(writes))
    said = f"{HOUR} {text} {superseded(text)}"
    connection.execute("SELECT set_config('antipode.lineage', %s, false)", (said,))
    return text


def forget(connection: Any) -> None:
    """Be a plain client."""
    connection.execute("SELECT set_config('antipode.lineage', '', false)")


@pytest.fixture
def session(clients: Clients, capsys: pytest.CaptureFixture[str]) -> Any:
    """A plain session of the service's user, and a migrated table."""
    make_table(clients, capsys, "id int PRIMARY KEY, body text")
    return clients.plain(autocommit=True)


def test_an_insert_stores_and_an_update_merges(session: Any) -> None:
    """In each row; what a later position of the same log supersedes goes."""
    first = depend(session, moving(5), OTHER)
    session.execute("INSERT INTO orders SELECT n, '' FROM generate_series(1, 3) n")
    assert texts(session, 1) == texts(session, 3) == [first]
    second = depend(session, moving(9))
    session.execute("UPDATE orders SET body = 'x' WHERE id = 1")
    assert texts(session, 2) == [first]
    assert texts(session, 1) == [second, encode(Lineage([OTHER]))]
    third = depend(session, moving(12), OTHER)
    session.execute("UPDATE orders SET body = 'y' WHERE id = 1")
    session.execute("UPDATE orders SET body = 'z' WHERE id = 1")
    assert texts(session, 1) == [third]


def test_plain_clients(session: Any) -> None:
    """Their inserts store nothing, their updates keep what was, a row under its key loses it."""
    session.execute("INSERT INTO orders VALUES (1, '')")
    assert texts(session) == []
    text = depend(session, CAUSE)
    session.execute("UPDATE orders SET body = 'x'")
    forget(session)
    session.execute("UPDATE orders SET body = 'y'")
    assert texts(session) == [text]
    session.execute("DELETE FROM orders")
    assert (texts(session), grave(session)) == ([], [text])
    session.execute("INSERT INTO orders VALUES (1, '')")
    assert texts(session) == []
    session.execute("DELETE FROM orders")
    assert grave(session) == [text]


def test_all_that_writes_rows_is_seen(session: Any, clients: Clients) -> None:
    """COPY, upserts, MERGE's like, cascades, TRUNCATE: each stores what it depends on."""
    text = depend(session, CAUSE)
    with session.cursor().copy("COPY orders FROM STDIN") as copy:
        copy.write_row((1, "a"))
    assert texts(session) == [text]
    other = depend(session, OTHER)
    session.execute(
        "INSERT INTO orders VALUES (1, 'b'), (2, 'b') ON CONFLICT (id) DO UPDATE SET body = 'c'"
    )
    assert texts(session, 1) == [other, text]
    assert texts(session, 2) == [other]
    for statement in (
        "DROP TABLE IF EXISTS customers",
        "CREATE TABLE customers (id int PRIMARY KEY)",
        "INSERT INTO customers VALUES (1)",
        f"GRANT ALL ON customers TO {clients.topology.user}",
        "ALTER TABLE orders ADD FOREIGN KEY (id) REFERENCES customers ON DELETE CASCADE NOT VALID",
    ):
        clients.topology.execute(statement)
    third = depend(session, moving(8))
    session.execute("DELETE FROM customers WHERE id = 1")
    assert texts(session, 1) == []
    assert grave(session, 1) == [third, other]  # CAUSE is the same log's, earlier.
    clients.topology.execute("DROP TABLE customers CASCADE")
    clients.topology.execute(f"GRANT TRUNCATE ON orders TO {clients.topology.user}")
    forget(session)
    session.execute("TRUNCATE orders")
    assert (texts(session, 2), grave(session, 2)) == ([], [other])


def test_a_deletion_keeps_what_the_row_had(session: Any) -> None:
    """A reader who saw the row asks afterwards; so does one who saw it before it came again."""
    text = depend(session, CAUSE)
    session.execute("INSERT INTO orders VALUES (1, '')")
    other = depend(session, OTHER)
    session.execute("DELETE FROM orders")
    assert grave(session) == [other, text]
    session.execute("INSERT INTO orders VALUES (1, '')")
    assert (texts(session), grave(session)) == ([other], [other, text])
    third = depend(session, moving(9), OTHER)
    session.execute("DELETE FROM orders")
    assert grave(session) == [third]


def test_a_tombstone_whose_time_is_over_is_replaced(session: Any, clients: Clients) -> None:
    """What a deletion before the horizon depended on nobody waits for."""
    depend(session, CAUSE)
    session.execute("INSERT INTO orders VALUES (1, '')")
    session.execute("DELETE FROM orders")
    clients.topology.execute("UPDATE antipode_tombstone SET h = 1")
    other = depend(session, OTHER)
    session.execute("INSERT INTO orders VALUES (1, '')")
    session.execute("DELETE FROM orders")
    assert grave(session) == [other]


def test_a_row_keeps_its_lineage_under_another_key(session: Any) -> None:
    """And the old key is as deleted; where another row takes it, nothing is lost."""
    text = depend(session, CAUSE)
    session.execute("INSERT INTO orders VALUES (1, '')")
    other = depend(session, OTHER)
    session.execute("UPDATE orders SET id = 2")
    assert (texts(session, 1), grave(session, 1)) == ([], [other, text])
    assert texts(session, 2) == [other, text]
    forget(session)
    session.execute("UPDATE orders SET id = 3")
    assert texts(session, 3) == [other, text]
    session.execute("INSERT INTO orders VALUES (2, '')")
    session.execute("UPDATE orders SET id = id + 1 WHERE id = (SELECT max(id) FROM orders)")
    session.execute("UPDATE orders SET id = 5 - id WHERE id = 2")
    assert set(texts(session, 4)) == {other, text}


def test_keys_that_shift(session: Any) -> None:
    """In one statement: each row has its own under its new key."""
    first = depend(session, CAUSE)
    session.execute("INSERT INTO orders VALUES (2, '')")
    second = depend(session, OTHER)
    session.execute("INSERT INTO orders VALUES (1, '')")
    forget(session)
    session.execute("UPDATE orders SET id = id + 1")
    assert (texts(session, 2), texts(session, 3)) == ([second], [first])
    session.execute("DELETE FROM orders WHERE id = 3")
    session.execute("UPDATE orders SET id = 3")
    assert texts(session, 3) == [second]


def test_triggers_of_the_applications_own(session: Any, clients: Clients) -> None:
    """One that puts deleted rows back at once: the new row is the deletion's, nothing is lost."""
    execute = clients.topology.execute
    execute(
        "CREATE OR REPLACE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN INSERT INTO orders VALUES (OLD.id, OLD.body); RETURN NULL; END'"
    )
    execute("CREATE TRIGGER again AFTER DELETE ON orders FOR EACH ROW EXECUTE FUNCTION again()")
    text = depend(session, CAUSE)
    session.execute("INSERT INTO orders VALUES (1, '')")
    other = depend(session, OTHER)
    session.execute("DELETE FROM orders")
    assert session.execute("SELECT id FROM orders").fetchall() == [(1,)]
    assert (texts(session), grave(session)) == ([other], [other, text])


def test_other_tables_cannot_use_the_triggers_function(session: Any) -> None:
    """Or a user who may not write lineages could, by a trigger on a table of their own."""
    session.execute("CREATE TEMPORARY TABLE mine (id int PRIMARY KEY, body text)")
    trigger = "CREATE TRIGGER mine AFTER DELETE ON mine FOR EACH ROW EXECUTE FUNCTION orders_ap()"
    with pytest.raises(InsufficientPrivilege):
        session.execute(trigger)


def test_a_rolled_back_write_stores_nothing(session: Any) -> None:
    """It lies in the row's transaction."""
    depend(session, CAUSE)
    session.execute("BEGIN")
    session.execute("INSERT INTO orders VALUES (1, '')")
    session.execute("ROLLBACK")
    assert texts(session) == []


def test_growth_is_bounded(session: Any) -> None:
    """Over 1,024 bytes the newest stays, and a mark."""
    forget(session)
    session.execute("INSERT INTO orders VALUES (1, '')")
    for number in range(60):
        text = depend(session, CAUSE.__class__(f"store{number}", "log", 1, written_hour=490_000))
        session.execute("UPDATE orders SET body = 'x'")
    assert sum(map(len, texts(session))) <= 1024
    found = Lineage().merge(*(decode(each) for each in texts(session)))
    assert found.incomplete == {("", "size")}
    assert text in texts(session)


@pytest.mark.parametrize(
    "said", ["x", "1 2", "99 2~x y (", "123456789012 1 ", "-1 1 ", "9 1~a ((("]
)
def test_no_setting_fails_a_write(session: Any, said: str) -> None:
    """Whatever somebody says there, or a pattern that no server takes."""
    session.execute("INSERT INTO orders VALUES (1, '')")
    depend(session, CAUSE)
    session.execute("UPDATE orders SET body = 'x'")
    session.execute("SELECT set_config('antipode.lineage', %s, false)", (said,))
    for statement in ("UPDATE orders SET body = 'y'", "UPDATE orders SET id = 2"):
        session.execute(statement)
    session.execute("DELETE FROM orders")


def test_the_longest_pattern(session: Any) -> None:
    """A lineage of many logs merges, and takes out what it supersedes."""
    session.execute("INSERT INTO orders VALUES (1, '')")
    writes = [
        CAUSE.__class__("elsewhere", f"log{n}", 10**12 + n, written_hour=490_000)
        for n in range(700)
    ]
    depend(session, *(w.__class__(w.datastore, w.key, 5, written_hour=490_000) for w in writes[:9]))
    session.execute("UPDATE orders SET body = 'x'")
    text = depend(session, *writes)
    session.execute("UPDATE orders SET body = 'y'")
    assert texts(session)[0] == text


@pytest.mark.parametrize(
    ("kind", "key", "stored"),
    [
        ("bigint", 2**40, b"1099511627776"),
        ("text", "Zoë 'x\\", "Zoë 'x\\".encode()),
        ("varchar(20)", "", b""),
        ("boolean", True, b"true"),
        ("uuid", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", b"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ],
)
def test_keys_of_any_kind(
    clients: Clients, capsys: pytest.CaptureFixture[str], kind: str, key: object, stored: bytes
) -> None:
    """A key is the bytes of its text."""
    make_table(clients, capsys, f"id {kind} PRIMARY KEY")
    session = clients.plain(autocommit=True)
    depend(session, CAUSE)
    session.execute("INSERT INTO orders VALUES (%s)", (key,))
    assert session.execute("SELECT k FROM orders_ap").fetchall() == [(stored,)]


def test_a_key_of_two_columns(clients: Clients, capsys: pytest.CaptureFixture[str]) -> None:
    """Each after its length; a long one is a digest."""
    make_table(clients, capsys, "a int, b text, PRIMARY KEY (b, a)")
    session = clients.plain(autocommit=True)
    depend(session, CAUSE)
    session.execute("INSERT INTO orders VALUES (1, 'x'), (2, %s)", ("é" * 300,))
    keys = session.execute("SELECT k FROM orders_ap ORDER BY octet_length(k)").fetchall()
    assert keys[0] == (b"1:x:1:1",)
    assert len(keys[1][0]) == 128


def test_what_it_prints_makes_the_check_pass(
    clients: Clients, capsys: pytest.CaptureFixture[str]
) -> None:
    """Printed, nothing is changed; run, the table is ready; taken back, it is as before."""
    make_table(clients, capsys, "id int PRIMARY KEY")
    topology, url = clients.topology, clients.topology.url()
    execute = topology.execute
    execute("DROP TABLE IF EXISTS plain, plain_ap")
    execute('CREATE TABLE plain ("the id" int PRIMARY KEY)')
    execute(f"GRANT ALL ON plain TO {topology.user}")
    capsys.readouterr()
    assert main(["check", "--url", url, "orders", "plain", "nothing"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "orders: ready",
        "plain: lacks the side table plain_ap, trigger 0_plain_ap, trigger 0_plain_ap_truncate",
        "nothing: does not exist",
    ]
    for statement in printed_by(clients, capsys, "migration", "public.plain"):
        execute(statement)
    assert main(["check", "--url", url, "plain"]) == 1
    assert "SELECT on plain_ap" in capsys.readouterr().out
    execute(f"GRANT SELECT ON plain_ap TO {topology.user}")
    execute('ALTER TABLE plain DISABLE TRIGGER "0_plain_ap_truncate"')
    assert main(["check", "--url", url, "plain"]) == 1
    assert capsys.readouterr().out == "plain: lacks trigger 0_plain_ap_truncate\n"
    for statement in printed_by(clients, capsys, "undo", "plain"):
        execute(statement)
    left = "SELECT count(*) FROM pg_class WHERE relname LIKE 'plain_ap%'"
    assert clients.plain().execute(left).fetchone() == (0,)
    execute("DROP TABLE plain")


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ("id int", "has no primary key"),
        ("id timestamptz PRIMARY KEY", "timestamp with time zone"),
        ("id numeric PRIMARY KEY", "numeric"),
        ("id char(3) PRIMARY KEY", "character"),
        ("id int PRIMARY KEY DEFERRABLE", "DEFERRABLE"),
        ("id int PRIMARY KEY) PARTITION BY LIST (id", "no plain table"),
    ],
)
def test_what_cannot_keep_lineages_is_said(
    clients: Clients, capsys: pytest.CaptureFixture[str], columns: str, why: str
) -> None:
    """In place of a migration, in one line; by the check too."""
    clients.topology.execute("DROP TABLE IF EXISTS odd")
    clients.topology.execute(f"CREATE TABLE odd ({columns})")
    url = clients.topology.url()
    assert main(["migration", "--url", url, "odd"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert why in said.err
    assert main(["check", "--url", url, "odd"]) == 1
    assert why in capsys.readouterr().out
    clients.topology.execute("DROP TABLE odd")
