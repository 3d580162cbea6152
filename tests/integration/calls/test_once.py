"""Functions whose effect, name and reply commit together, in threads."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

import antipode
from antipode import ConfigurationError, calls
from antipode.telemetry import Metric, metrics
from tests.integration.calls.conftest import INSERT, insert

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.calls.conftest import Database


class NoCoverError(Exception):
    """The bank says no."""


def of(*stores: str) -> pytest.MarkDecorator:
    """A test of these stores alone: the others bound a duplicate's wait otherwise."""
    return pytest.mark.parametrize(
        "database",
        [pytest.param(each, marks=pytest.mark.store(each)) for each in stores],
        indirect=True,
    )


def again(function: Callable[..., Any], *args: Any, name: str = "order-1", caller: str = "") -> Any:
    """Call *function* as the call *name*."""
    with calls.call(name, caller=caller):
        return function(*args)


def test_a_repeated_call_has_one_effect_and_one_reply(
    database: Database, charge: Callable[[int], Any]
) -> None:
    """Who calls again gets the reply of the first call; another name is another call."""
    assert [again(charge, 5) for _ in range(3)] == [{"charged": 5}] * 3
    assert again(charge, 5, name="order-2") == {"charged": 5}
    assert database.charges() == [5, 5]


def test_a_name_of_another_caller_is_another_name(
    database: Database, charge: Callable[[int], Any]
) -> None:
    """Nobody gets the reply of somebody else, whatever names he sends."""
    for caller in ("alice", "bob", "Alice", "x" * 500, "x" * 501):
        again(charge, 5, caller=caller)
    assert database.charges() == [5] * 5


def test_names_differ_by_case(database: Database, charge: Callable[[int], Any]) -> None:
    """A collation that takes 'a' for 'A' does not make two calls one."""
    again(charge, 5, name="order-a")
    again(charge, 5, name="order-A")
    assert database.charges() == [5, 5]


def test_without_a_name_each_call_is_another_one(
    database: Database, charge: Callable[[int], Any]
) -> None:
    """It runs each time, and is counted."""
    before = metrics().get(Metric("call_unnamed"), 0)
    charge(5)
    charge(5)
    assert database.charges() == [5, 5]
    assert metrics()[Metric("call_unnamed")] == before + 2


def test_two_effects_of_one_call_are_two(database: Database, charge: Callable[[int], Any]) -> None:
    """A handler that charges two cards charges each of them once, by order or by name."""
    for _ in range(2):
        with calls.call("order-1"):
            charge(5)
            charge(5)
            with calls.named("tip"):
                charge(1)
    assert database.charges() == [5, 5, 1]


def test_a_retry_within_a_call_is_the_same_effect(database: Database) -> None:
    """Whatever became of the first attempt: who calls again later finds one effect."""
    failing = [True]

    @calls.once(database.engine)
    def charge(session: Any, amount: int) -> int:
        insert(session, amount)
        if failing:
            failing.clear()
            raise OSError
        return amount

    with calls.call("order-1"):
        with pytest.raises(OSError):  # noqa: PT011 - as above
            charge(5)
        assert charge(5) == 5
    assert again(charge, 5) == 5
    assert database.charges() == [5]


def test_the_same_name_with_other_arguments_is_refused(
    database: Database, charge: Callable[[int], Any]
) -> None:
    """Nothing is executed, and the first reply is not given to the second call."""
    again(charge, 5)
    with pytest.raises(calls.Divergent, match="order-1"):
        again(charge, 6)
    assert database.charges() == [5]


def test_a_call_that_fails_leaves_nothing_and_runs_again(database: Database) -> None:
    """An error is no reply: the name is free again."""
    failing = [True]

    @calls.once(database.engine)
    def charge(session: Any, amount: int) -> int:
        insert(session, amount)
        if failing:
            failing.clear()
            message = "the bank is down"
            raise OSError(message)
        return amount

    with pytest.raises(OSError, match="the bank"):
        again(charge, 5)
    assert database.names() == 0
    assert again(charge, 5) == 5
    assert database.charges() == [5]


def test_a_decline_is_a_reply(database: Database) -> None:
    """What the function did is taken back, and a repetition is declined without being executed."""
    runs: list[int] = []
    repeated = metrics().get(Metric("call_repeated"), 0)

    @calls.once(database.engine, declines=[NoCoverError])
    def charge(session: Any, amount: int) -> None:
        runs.append(amount)
        insert(session, amount)
        raise NoCoverError("no cover", amount)

    for _ in range(2):
        with pytest.raises(NoCoverError) as caught:
            again(charge, 5)
        assert caught.value.args == ("no cover", 5)
    assert runs == [5]
    assert database.charges() == []
    assert metrics()[Metric("call_repeated")] == repeated + 1


def held_call(database: Database, *, fail: bool) -> tuple[Any, threading.Event, threading.Event]:
    """A function that says when it runs, and whose first call goes on when it is let."""
    runs, go_on = threading.Event(), threading.Event()

    @calls.once(database.engine, name="charge", timeout=20)
    def charge(session: Any, amount: int) -> int:
        insert(session, amount)
        if not runs.is_set():
            runs.set()
            assert go_on.wait(20)
            if fail:
                message = "the bank is down"
                raise OSError(message)
        return amount

    return charge, runs, go_on


@pytest.mark.parametrize("fail", [False, True], ids=["commits", "rolls_back"])
def test_a_duplicate_waits_for_the_first_call(database: Database, *, fail: bool) -> None:
    """It gets that reply; where the first rolls back, it runs itself."""
    charge, runs, go_on = held_call(database, fail=fail)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(again, charge, 5)
        assert runs.wait(20)
        others = [pool.submit(again, charge, 5) for _ in range(3)]
        database.topology.execute("SELECT 1")
        go_on.set()
        assert [each.result() for each in others] == [5, 5, 5]
        if fail:
            with pytest.raises(OSError, match="the bank"):
                first.result()
        else:
            assert first.result() == 5
    assert database.charges() == [5]


@of("postgresql", "mariadb")
def test_a_duplicate_waits_until_its_deadline(database: Database) -> None:
    """Then it is told that the first call goes on, and when to ask again."""
    charge, runs, go_on = held_call(database, fail=False)

    @calls.once(database.engine, name="charge", timeout=0.2)
    def impatient(session: Any, amount: int) -> int:
        raise AssertionError

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(again, charge, 5)
        try:
            assert runs.wait(20)
            with pytest.raises(calls.DuplicateWaits) as caught:
                again(impatient, 5)
        finally:
            go_on.set()
        assert first.result() == 5
    assert caught.value.retry_after
    assert caught.value.status == 409


@of("mysql", "mariadb")
def test_a_bound_of_the_connection_holds(database: Database) -> None:
    """Where a connection waits shorter for locks than the call, the duplicate is told then."""
    charge, runs, go_on = held_call(database, fail=False)
    engine = sa.create_engine(
        database.url(), connect_args={"init_command": "SET SESSION innodb_lock_wait_timeout = 1"}
    )

    @calls.once(engine, name="charge", timeout=1)
    def impatient(session: Any, amount: int) -> int:
        raise AssertionError

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(again, charge, 5)
        try:
            assert runs.wait(20)
            with pytest.raises(calls.DuplicateWaits):
                again(impatient, 5)
        finally:
            go_on.set()
        assert first.result() == 5
    engine.dispose()


def test_few_duplicates_hold_a_connection(database: Database) -> None:
    """One more than that is refused at once, with 409 and when to ask again."""
    charge, _, go_on = held_call(database, fail=False)
    with ThreadPoolExecutor(5) as pool:
        others = [pool.submit(again, charge, 5) for _ in range(5)]
        refused = next(as_completed(others))
        go_on.set()
        with pytest.raises(calls.TooManyDuplicates) as caught:
            refused.result()
        assert [each.result() for each in others if each is not refused] == [5] * 4
    assert (caught.value.status, caught.value.retry_after) == (409, 1.0)
    assert database.charges() == [5]


def test_many_callers_at_once_have_no_deadlock(database: Database) -> None:
    """Of 64, with three that roll back first, each has the reply or is told to ask again."""
    left = [3]
    lock = threading.Lock()

    @calls.once(database.engine, timeout=30, duplicates=64)
    def charge(session: Any, amount: int) -> int:
        insert(session, amount)
        with lock:
            left[0] -= 1
            fails = left[0] >= 0
        if fails:
            message = "the bank is down"
            raise OSError(message)
        return amount

    def one(_: int) -> object:
        with contextlib.suppress(OSError):
            return again(charge, 5)
        return "down"

    with ThreadPoolExecutor(64) as pool:
        outcomes = Counter(pool.map(one, range(64)))
    assert outcomes == {5: 61, "down": 3}
    assert database.charges() == [5]


@pytest.mark.parametrize("level", ["SERIALIZABLE", "REPEATABLE READ"])
def test_conflicts_are_repeated_and_not_doubled(database: Database, level: str) -> None:
    """Under strict isolation, too, duplicates and neighbours end in one effect each."""
    engine = database.engine.execution_options(isolation_level=level)

    @calls.once(engine, timeout=30, duplicates=16)
    def charge(session: Any, amount: int) -> int:
        total = session.execute(sa.text("SELECT sum(amount) FROM charges")).scalar() or 0
        insert(session, amount)
        return int(total)

    with ThreadPoolExecutor(8) as pool:
        done = [
            (name, pool.submit(again, charge, 1, name=name))
            for _ in range(4)
            for name in ("order-1", "order-2", "order-3")
        ]
        replies = {(name, each.result()) for name, each in done}
    assert len(replies) == 3
    assert database.charges() == [1, 1, 1]


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (lambda session: session.commit(), "commits its transaction"),
        (lambda session: session.rollback(), "rolled back its transaction"),
    ],
    ids=["commit", "rollback"],
)
def test_a_function_that_ends_its_transaction_is_refused(
    database: Database, ending: Callable[[Any], None], said: str
) -> None:
    """Its effect would be without its name, or its name without its effect."""

    @calls.once(database.engine)
    def charge(session: Any, amount: int) -> int:
        insert(session, amount)
        ending(session)
        return amount

    with pytest.raises(calls.TransactionEnded, match=said):
        again(charge, 5)
    assert database.charges() == []
    assert database.names() == 0


def test_a_savepoint_is_the_functions_own(database: Database) -> None:
    """It may take back a part of what it did."""

    @calls.once(database.engine)
    def charge(session: Any, amount: int) -> int:
        insert(session, amount)
        with contextlib.suppress(OSError), session.begin_nested():
            insert(session, 2 * amount)
            raise OSError
        with session.begin_nested():
            insert(session, 3 * amount)
        return amount

    assert again(charge, 5) == 5
    assert database.charges() == [5, 15]


def test_a_commit_as_text_is_never_executed_twice(database: Database) -> None:
    """Whose name is committed without a reply, nobody knows: repetitions say so."""

    @calls.once(database.engine)
    def charge(session: Any, amount: int) -> int:
        insert(session, amount)
        session.execute(sa.text("COMMIT"))
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011 - as above
        again(charge, 5)
    for _ in range(2):
        with pytest.raises(calls.InDoubt, match="without a reply"):
            again(charge, 5)
    assert database.charges() == [5]


def test_a_reply_that_is_too_large_commits_nothing(database: Database) -> None:
    """It is refused with its size, and neither effect nor name is there."""

    @calls.once(database.engine, max_reply=100)
    def charge(session: Any, amount: int) -> str:
        insert(session, amount)
        return "x" * 1000

    with pytest.raises(calls.ReplyTooLarge, match="1002 bytes"):
        again(charge, 5)
    assert (database.charges(), database.names()) == ([], 0)


def test_a_missing_table_is_named(database: Database, charge: Callable[[int], Any]) -> None:
    """The error says which one, and how to make it."""
    with database.engine.begin() as connection:
        calls.table().drop(connection)
    with pytest.raises(ConfigurationError, match="create_table"):
        again(charge, 5)
    assert database.charges() == []
    calls.create_table(database.engine)
    assert again(charge, 5) == {"charged": 5}


def test_a_pool_of_one_connection_is_enough(database: Database) -> None:
    """A call holds one connection, and gives it back however it ends."""
    engine = sa.create_engine(database.url(), pool_size=1, max_overflow=0, pool_timeout=1)

    @calls.once(engine, name="charge")
    def charge(session: Any, amount: int) -> int:
        insert(session, amount)
        if amount < 0:
            raise OSError
        return amount

    for amount in (1, 1, 2, -1, 3):
        with contextlib.suppress(OSError, calls.Divergent):
            again(charge, amount)
    assert again(charge, 7, name="order-2") == 7
    assert database.charges() == [1, 7]
    engine.dispose()


@of("postgresql")
def test_a_locks_own_timeout_stays_the_functions(database: Database) -> None:
    """The bound of a duplicate's wait is none of the statements of the function."""

    @calls.once(database.engine, timeout=2)
    def bound(session: Any) -> Any:
        return session.execute(sa.text("SHOW lock_timeout")).scalar()

    assert again(bound) == "0"


def test_repetitions_depend_on_the_first_ones_commit(database: Database) -> None:
    """Who gets the reply waits at a replica for what the first call's request did."""
    from importlib import import_module

    shim = import_module(
        "antipode_shims.postgresql" if database.store == "postgresql" else "antipode_shims.mysql"
    )
    shim.instrument_engine(database.engine, datastore="charges")
    try:

        @calls.once(database.engine, datastore="charges")
        def charge(session: Any, amount: int) -> int:
            session.execute(INSERT, {"amount": amount})
            return amount

        def requested() -> antipode.Lineage:
            with antipode.scope() as scope:
                again(charge, 5)
                return scope.lineage

        first, repeated = requested(), requested()
        assert {each.datastore for each in first} == {"charges"}
        assert {each.datastore for each in repeated} == {"charges"}
        assert not repeated.incomplete
    finally:
        shim.uninstrument_engine(database.engine)
