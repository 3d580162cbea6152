"""What a statement may do, told from its text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antipode_shims.mysql._statements import (
    BEGINS,
    CALLS,
    COMMITS,
    ENDS,
    ISOLATES,
    LOCKS,
    LOGS,
    MANY,
    NESTS,
    ONCE,
    OPAQUE,
    OPENS,
    READS,
    RESETS,
    SNAPSHOTS,
    TEMPORARY,
    UNLOGS,
    WRITES,
    XA,
    meaning,
    reads,
)

DDL = WRITES | COMMITS | ENDS
CHANGES = WRITES | NESTS


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a FROM t", READS),
        ("  (select 1) union (select 2)", READS),
        ("/* hint */ -- more\n # and more\n SELECT a FROM t", READS),
        ("/*!50000 SELECT a FROM t */", READS),
        ("/*M!100100 UPDATE t SET a = 1 */", CHANGES),
        ("SELECT a FROM t FOR UPDATE", READS | LOCKS),
        ("SELECT a FROM t WHERE b IN (SELECT b FROM u) FOR UPDATE", READS),
        ("SELECT a INTO @x FROM t", READS),
        ("TABLE t", READS),
        ("WITH x AS (SELECT 1) SELECT * FROM x", READS),
        ("WITH x AS (SELECT 1) UPDATE t SET a = 1", READS | WRITES),
        ("EXPLAIN ANALYZE SELECT 1 FROM t", READS | WRITES),
        ("SELECT 1", 0),
        ("SELECT @@version, @@x AS y", 0),
        ("SELECT LAST_INSERT_ID()", 0),
        ("select found_rows() ;", 0),
        ("SELECT secret()", READS | CALLS),
        ("SELECT 1 FROM t", READS),
        ("INSERT INTO t VALUES (1, ';')", CHANGES),
        ("insert into t values (1)", CHANGES),
        (" Replace INTO t VALUES (1)", CHANGES),
        ("UPDATE t SET a = 1;", CHANGES),
        ("DELETE\nFROM t", CHANGES),
        ("LOAD DATA LOCAL INFILE 'x' INTO TABLE t", WRITES),
        ("CALL p()", OPAQUE),
        ("EXECUTE s", OPAQUE),
        ("DO f()", OPAQUE),
        ("ANALYZE UPDATE t SET a = 1", OPAQUE),
        ("whatever comes next", OPAQUE),
        ("BEGIN", COMMITS | ENDS | BEGINS),
        ("BEGIN NOT ATOMIC INSERT INTO t VALUES (1), (2)", OPAQUE | ENDS),
        ("START TRANSACTION READ ONLY", COMMITS | ENDS | BEGINS),
        (
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            COMMITS | ENDS | BEGINS | SNAPSHOTS | READS,
        ),
        ("START REPLICA", COMMITS),
        ("COMMIT", COMMITS | ENDS),
        ("COMMIT AND CHAIN", COMMITS | ENDS | BEGINS),
        ("COMMIT AND NO CHAIN", COMMITS | ENDS),
        ("ROLLBACK", ENDS),
        ("ROLLBACK WORK TO SAVEPOINT s", 0),
        ("SAVEPOINT s", 0),
        ("RELEASE SAVEPOINT s", 0),
        ("ALTER TABLE t ADD b INT", DDL),
        ("CREATE TABLE t (a INT)", DDL),
        ("CREATE TABLE t AS SELECT 1", DDL | READS),
        ("CREATE TEMPORARY TABLE t (a INT)", TEMPORARY),
        ("CREATE TEMPORARY TABLE t SELECT a FROM u", TEMPORARY | READS),
        ("DROP TEMPORARY TABLE t", TEMPORARY),
        ("USE other", TEMPORARY),
        ("TRUNCATE t", DDL),
        ("LOCK TABLES t WRITE", COMMITS | ENDS),
        ("SET autocommit = 1", COMMITS),
        ("SET NAMES utf8mb4", 0),
        ("SET @x = (SELECT MAX(a) FROM t)", OPAQUE | LOCKS),
        ("SET STATEMENT max_statement_time = 1 FOR DELETE FROM t", OPAQUE),
        ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", ISOLATES),
        ("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", ISOLATES | ONCE),
        ("SET SESSION session_track_gtids = OFF", RESETS),
        ("SET sql_log_bin = 0", UNLOGS),
        ("SET SESSION sql_log_bin = ON", LOGS),
        ("SET skip_replication = 0", LOGS),
        ("XA START 'x'", BEGINS),
        ("XA PREPARE 'x'", XA | ENDS),
        ("XA COMMIT 'x'", XA | DDL),
        ("UNLOCK TABLES", COMMITS),
        ("SHOW TABLES", OPENS),
        ("show full columns from t", OPENS),
        ("SHOW CREATE TABLE t", 0),
        ("SHOW SESSION VARIABLES", 0),
        ("", 0),
        ("-- nothing", 0),
        ("SELECT a FROM t; DELETE FROM t", MANY | READS | CHANGES),
        ("SELECT ';' FROM t -- ; comment", READS),
        ("BEGIN; SELECT a FROM t; COMMIT", MANY | COMMITS | ENDS | BEGINS | READS),
    ],
)
def test_meaning(sql: str, expected: int) -> None:
    """Where the text leaves a choice, a statement may do more rather than less."""
    assert meaning(sql.encode()) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a FROM t", READS),
        ("SELECT 1", 0),
        ("COMMIT", 0),
        ("INSERT INTO t VALUES (1, 'a selection of unstable stables')", 0),
        ("INSERT INTO t SELECT * FROM u", READS | LOCKS),
        ("INSERT INTO t SELECT table_name FROM information_schema.tables", READS),
        ("INSERT INTO t TABLE u", READS | LOCKS),
        ("REPLACE INTO t VALUES (1) RETURNING id", READS | LOCKS),
        ("UPDATE t SET a = 1", 0),
        ("UPDATE t SET a = (Select MAX(a) FROM u)", READS | LOCKS),
        ("UPDATE t SET a = (TABLE u)", READS | LOCKS),
        ("DELETE FROM t WHERE a IN (SELECT a FROM u)", READS | LOCKS),
        ("UPDATE t SET a = 1; DELETE FROM t WHERE a IN (SELECT 1)", READS),
        ("UPDATE t SET a = 1; DELETE FROM t", 0),
    ],
)
def test_what_a_write_reads_is_found_inside_it(sql: str, expected: int) -> None:
    """A floor holds back a write that reads, and no other."""
    text = sql.encode()
    assert reads(text, meaning(text)) == expected


@given(st.binary(max_size=200))
def test_every_text_has_a_meaning(sql: bytes) -> None:
    """No text is an error."""
    assert meaning(sql) >= 0


@pytest.mark.parametrize(
    "unit",
    [
        *("/*;", "';", '";', "`;", "/* */ ", "1 , ", "\\;'", "(;", "/*!;", "--;\n", "'' "),
        *("y", "f(1, ", '"a" (', "f   ", "next ", "NEXT VALUE "),
    ],
)
def test_long_texts_take_linear_time(unit: str) -> None:
    """Nothing that a user may send keeps the client busy."""
    sql = b"SELECT f() " + unit.encode() * 60_000
    started_s = time.perf_counter()
    meaning(sql)
    assert time.perf_counter() - started_s < 5
