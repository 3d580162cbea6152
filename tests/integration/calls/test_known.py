"""What a database knows of calls, and how old ones go."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from antipode import calls
from antipode_cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.calls.conftest import Database


def again(function: Callable[..., Any], *args: Any, name: str, caller: str = "") -> Any:
    """Call *function* as the call *name*."""
    with calls.call(name, caller=caller):
        return function(*args)


def test_show_says_what_is_known(
    database: Database, charge: Callable[[int], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """By the key alone, of every caller; never its arguments or its reply."""
    again(charge, 123454321, name="key:order-1", caller="alice")
    again(charge, 123454321, name="key:order-1", caller="bob")
    assert main(["calls", "show", "order-1", "--database", database.url()]) == 0
    said = capsys.readouterr().out
    assert said.count("key:order-1  charge") == 2
    assert said.count("  replied, ") == 2
    assert "caller: alice" in said
    assert "caller: bob" in said
    assert "123454321" not in said
    assert main(["calls", "show", "order-2", "--database", database.url()]) == 1
    assert "no call 'order-2' is known" in capsys.readouterr().out


def test_replies_go_when_they_are_old(
    database: Database, charge: Callable[[int], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """In batches; a name in doubt stays, and so does what is younger."""

    @calls.once(database.engine, name="in doubt")
    def doubt(session: Any) -> None:
        session.connection().exec_driver_sql("COMMIT")
        raise OSError

    for number in range(5):
        again(charge, number, name=f"order-{number}")
    with pytest.raises(OSError):  # noqa: PT011 - as above
        again(doubt, name="order-5")
    words = ["--database", database.url()]
    assert main(["calls", "sweep", "--older-than", "1d", *words]) == 0
    assert database.names() == 6
    removed = 0
    while removed < 5:  # Times of MySQL are whole seconds.
        removed += calls.sweep(database.engine, older_than_s=0, batch=2)
    assert database.names() == 1
    assert main(["calls", "show", "order-5", *words]) == 0
    assert "in doubt" in capsys.readouterr().out


def test_sweeping_lets_calls_go_on(database: Database, charge: Callable[[int], Any]) -> None:
    """Neither waits for the other, and no effect is doubled."""
    over = threading.Event()

    def sweeping() -> None:
        while not over.is_set():
            calls.sweep(database.engine, older_than_s=0, batch=3)

    with ThreadPoolExecutor(5) as pool:
        swept = pool.submit(sweeping)
        names = [f"order-{number}" for number in range(60)]
        list(pool.map(lambda name: again(charge, 1, name=name), names))
        over.set()
        swept.result()
    assert len(database.charges()) == 60


def test_what_is_wrong_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """A URL that is none, a driver that is not there, an age that is none: status 2, one line."""
    for words in (
        ["show", "a", "--database", "nonsense"],
        ["show", "a", "--database", "postgresql+nonsense://localhost/a"],
        ["show", "a", "--database", "postgresql+psycopg://127.0.0.1:1/a"],
    ):
        assert main(["calls", *words]) == 2
        assert capsys.readouterr().err.startswith("antipode: the database cannot be")
    with pytest.raises(SystemExit):
        main(["calls", "sweep", "--older-than", "-1d", "--database", "x"])
