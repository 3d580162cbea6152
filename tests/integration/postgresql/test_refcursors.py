"""Cursors that functions open, at a standby: each shows what the call that opened it was shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import antipode

if TYPE_CHECKING:
    from tests.integration.postgresql._clients import Clients

pytestmark = pytest.mark.store("postgresql")
#: A function that opens a cursor.
OPENING = """
CREATE OR REPLACE FUNCTION opened() RETURNS refcursor LANGUAGE plpgsql AS $$ DECLARE c refcursor
:= 'rc'; BEGIN OPEN c FOR SELECT body FROM posts WHERE id = 1; RETURN c; END $$
"""


@pytest.mark.parametrize("barriers", ["auto", "explicit"])
def test_a_cursor_that_a_function_opens(clients: Clients, barriers: Any) -> None:
    """It shows what the call that opened it was shown, which has waited."""
    clients.topology.execute(OPENING)
    clients.topology.wait_replicated()
    writer, reader = clients.writer(autocommit=True), clients.reader(barriers=barriers)
    clients.topology.set_lag(50)
    with antipode.scope():
        writer.execute("UPDATE posts SET body = 'new' WHERE id = 1")
        if barriers == "explicit":
            antipode.barrier(timeout=15, at="read")
        reader.execute("SELECT opened()")
        assert reader.execute("FETCH ALL FROM rc").fetchall() == [("new",)]


def test_an_older_cursor_of_a_function_is_stale(clients: Clients) -> None:
    """One that was opened before the write shows it to nobody, whatever is declared after it."""
    clients.topology.execute(OPENING)
    clients.topology.wait_replicated()
    writer, reader = clients.writer(autocommit=True), clients.reader()
    with antipode.scope():
        reader.execute("SELECT opened()")
        writer.execute("UPDATE posts SET body = 'new' WHERE id = 1")
        antipode.barrier(timeout=15, at="read")
        reader.execute("DECLARE c CURSOR FOR SELECT body FROM posts WHERE id = 1")
        with pytest.raises(antipode.StaleSnapshot):
            reader.execute("FETCH ALL FROM rc")
