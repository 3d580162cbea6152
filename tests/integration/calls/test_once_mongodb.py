"""Functions whose effect, name and reply commit together in MongoDB's transactions."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pymongo
import pytest

from antipode import calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pymongo.database import Database

    from antipode_testing import MongoDBTopology

pytestmark = pytest.mark.store("mongodb")


@pytest.fixture
def shop(antipode_mongodb: MongoDBTopology) -> Iterator[Database[Any]]:
    """A database without charges and calls."""
    with pymongo.MongoClient[Any](antipode_mongodb.set_url) as client:
        shop = client["shop"]
        for each in ("charges", "antipode_calls_1"):
            shop[each].delete_many({})
        yield shop


def charges(shop: Database[Any]) -> list[int]:
    """The amounts that were charged."""
    return sorted(each["amount"] for each in shop["charges"].find())


def again(function: Callable[..., Any], *args: Any, name: str = "order-1") -> Any:
    """Call *function* as the call *name*."""
    with calls.call(name):
        return function(*args)


def charging(shop: Database[Any], then: Callable[[Any, int], Any], **options: Any) -> Any:
    """A function that charges an amount, and goes on with *then*."""

    @calls.once(shop, timeout=20, **options)
    def charge(session: Any, amount: int) -> Any:
        shop["charges"].insert_one({"amount": amount}, session=session)
        return then(session, amount)

    return charge


def test_a_repeated_call_has_one_effect_and_one_reply(shop: Database[Any]) -> None:
    """Another name is another call; other arguments are refused."""
    charge = charging(shop, lambda _, amount: {"charged": amount})
    assert [again(charge, 5) for _ in range(3)] == [{"charged": 5}] * 3
    assert again(charge, 5, name="order-2") == {"charged": 5}
    with pytest.raises(calls.Divergent):
        again(charge, 6)
    assert charges(shop) == [5, 5]


def test_a_call_that_fails_leaves_nothing_and_runs_again(shop: Database[Any]) -> None:
    """An error is no reply."""
    failing = [True]

    def fail_once(_: Any, amount: int) -> int:
        if failing:
            failing.clear()
            message = "the bank is down"
            raise OSError(message)
        return amount

    charge = charging(shop, fail_once)
    with pytest.raises(OSError, match="the bank"):
        again(charge, 5)
    assert charges(shop) == []
    assert again(charge, 5) == 5
    assert charges(shop) == [5]


def test_a_decline_is_a_reply(shop: Database[Any]) -> None:
    """What the function did is taken back, and the error is raised again."""

    def decline(_: Any, amount: int) -> None:
        raise PermissionError(amount)

    charge = charging(shop, decline, declines=[PermissionError])
    for _ in range(2):
        with pytest.raises(PermissionError, match="5"):
            again(charge, 5)
    assert charges(shop) == []
    assert shop["antipode_calls_1"].count_documents({}) == 1


def test_a_function_that_ends_its_transaction_is_never_executed_twice(
    shop: Database[Any],
) -> None:
    """What it committed without a reply is in doubt; what it aborted never was."""
    commit = charging(shop, lambda session, _: session.commit_transaction())
    abort = charging(shop, lambda session, _: session.abort_transaction())
    with pytest.raises(calls.TransactionEnded):
        again(abort, 5, name="order-2")
    assert charges(shop) == []
    with pytest.raises(calls.TransactionEnded):
        again(commit, 5)
    with pytest.raises(calls.InDoubt):
        again(commit, 5)
    assert charges(shop) == [5]


def test_many_callers_at_once_have_one_effect(shop: Database[Any]) -> None:
    """Of 16, with two that roll back first, each has the reply."""
    left = [2]
    lock = threading.Lock()

    def fail_twice(_: Any, amount: int) -> int:
        with lock:
            left[0] -= 1
            fails = left[0] >= 0
        if fails:
            message = "the bank is down"
            raise OSError(message)
        return amount

    charge = charging(shop, fail_twice, duplicates=16)

    def one(_: int) -> object:
        with contextlib.suppress(OSError):
            return again(charge, 5)
        return "down"

    with ThreadPoolExecutor(16) as pool:
        outcomes = Counter(pool.map(one, range(16)))
    assert outcomes == {5: 14, "down": 2}
    assert charges(shop) == [5]


def test_a_duplicate_waits_until_its_deadline(shop: Database[Any]) -> None:
    """Then it is told that the first call goes on; after that it gets the reply."""
    runs, go_on = threading.Event(), threading.Event()

    def hold(_: Any, amount: int) -> int:
        runs.set()
        assert go_on.wait(20)
        return amount

    charge = charging(shop, hold, name="charge")
    impatient = calls.once(shop, name="charge", timeout=0.1)(lambda _, amount: amount)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(again, charge, 5)
        try:
            assert runs.wait(20)
            with pytest.raises(calls.DuplicateWaits):
                again(impatient, 5)
        finally:
            go_on.set()
        assert first.result() == 5
    assert again(impatient, 5) == 5
    assert charges(shop) == [5]


def test_tasks_have_the_same(shop: Database[Any], antipode_mongodb: MongoDBTopology) -> None:
    """Replies, declines and other arguments, with the asynchronous client."""

    async def play() -> None:
        async with pymongo.AsyncMongoClient[Any](antipode_mongodb.set_url) as client:
            own = client["shop"]

            @calls.once(own, declines=[PermissionError], timeout=20)
            async def charge(session: Any, amount: int) -> int:
                await own["charges"].insert_one({"amount": amount}, session=session)
                if amount < 0:
                    raise PermissionError(amount)
                return amount

            async def called(amount: int, name: str) -> Any:
                with calls.call(name):
                    return await charge(amount)

            assert await asyncio.gather(*(called(5, "order-1") for _ in range(4))) == [5] * 4
            for _ in range(2):
                with pytest.raises(PermissionError):
                    await called(-1, "order-2")
            with pytest.raises(calls.Divergent):
                await called(6, "order-1")

    asyncio.run(play())
    assert charges(shop) == [5]
