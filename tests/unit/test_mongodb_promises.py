"""What is said to the collection of promises on MongoDB, and what replies mean: no I/O."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from antipode import ConfigurationError, Promise, Status, WriteId
from antipode.shim import Floor, Unreachable
from antipode_shims.mongodb._clients.known import Known, covers, keeps, positions_of
from antipode_shims.mongodb._look import converse
from antipode_shims.mongodb._promises.records import abandoning, recorded, records
from tests.unit._floors import floor_of

if TYPE_CHECKING:
    from collections.abc import Iterable

ONE = Promise("posts", "00112233445566778899aabbccddeeff", 4_000_000_000)
TWO = Promise("posts", "ffeeddccbbaa99887766554433221100", 4_000_000_000)
WRITE = WriteId("posts", "set.1", 7)


class RefusedError(Exception):
    """As PyMongo tells of a server's error."""

    def __init__(self, code: int) -> None:
        super().__init__("refused")
        self.code = code


def found(*documents: dict[str, Any]) -> dict[str, Any]:
    """The reply to a find."""
    return {"cursor": {"firstBatch": list(documents)}}


def held(writes: Iterable[WriteId] = (), promises: Iterable[Promise] = ()) -> Floor:
    """A floor of these."""
    return floor_of("posts", *writes, *promises)


def test_records_say_what_became_of_promises() -> None:
    """One without a record is left out; one that says nothing is no fulfilment."""
    reply = found({"_id": ONE.id, "fulfilled": True}, {"_id": TWO.id})
    statuses = converse(lambda _: reply, records("app", [ONE, TWO]))
    assert statuses == {ONE: Status.VISIBLE, TWO: Status.ABANDONED}
    assert converse(lambda _: found(), records("app", [ONE])) == {}


@pytest.mark.parametrize("majority", [True, False])
def test_a_look_states_its_read_concern(majority: bool) -> None:  # noqa: FBT001 - a parameter
    """The server's default may be another."""
    (database, command) = next(records("app", [ONE], majority=majority))
    assert database == "app"
    assert command["readConcern"] == {"level": "majority" if majority else "local"}


@pytest.mark.parametrize(("code", "error"), [(13, ConfigurationError), (8, RefusedError)])
def test_a_refusal_is_raised(code: int, error: type[Exception]) -> None:
    """A missing privilege names what to grant; anything else is as the server said it."""
    with pytest.raises(error):
        converse(lambda _: RefusedError(code), records("app", [ONE]))
    with pytest.raises(error):
        converse(lambda _: RefusedError(code), abandoning("app", ONE))


@pytest.mark.parametrize("fulfilled", [True, False])
def test_the_first_record_stays(fulfilled: bool) -> None:  # noqa: FBT001 - a parameter
    """An abandonment that cannot be inserted asks what is there."""
    taken = {"writeErrors": [{"code": 11000, "errmsg": "duplicate"}]}
    replies = iter([taken, found({"_id": ONE.id, "fulfilled": fulfilled})])
    assert converse(lambda _: next(replies), abandoning("app", ONE)) is not fulfilled
    assert converse(lambda _: {"n": 1}, abandoning("app", ONE))


def test_an_abandonment_that_failed_is_repeated() -> None:
    """Any other error of the write says nothing of the promise."""
    broken = {"writeErrors": [{"code": 91, "errmsg": "shutting down"}]}
    with pytest.raises(Unreachable, match="shutting down"):
        converse(lambda _: broken, abandoning("app", ONE))


def test_a_record_lasts_beyond_the_horizon() -> None:
    """Until then its absence proves something."""
    promise = Promise("posts", ONE.id, int(time.time()) + 3600)
    _, change = recorded(promise, fulfilled=True)
    assert change["$setOnInsert"]["until"].timestamp() > promise.expires_s + 7 * 24 * 3600


def test_promises_are_known_beside_positions() -> None:
    """A server that showed one shows it from then on; what it did not show it is asked."""
    known = Known("server")
    known.learn(held([WRITE], [ONE]), majority=False)
    assert known.shows(held([WRITE], [ONE]), majority=False)
    assert known.shows(held([], [ONE]), majority=False)
    assert not known.shows(held([], [ONE]), majority=True)
    assert not known.shows(held([WRITE], [ONE, TWO]), majority=False)
    positions = positions_of(held([WRITE], [ONE]))
    assert covers(positions, held([WRITE], [ONE]))
    assert not keeps(positions, held([], [TWO]))
    assert keeps({}, held([WRITE]))


def test_what_is_known_is_bounded() -> None:
    """The oldest promises go first, and are asked about again."""
    known = Known("server")
    many = [Promise("posts", f"{number:032x}", 4_000_000_000) for number in range(1_200)]
    for each in many:
        known.learn(held([], [each]), majority=False)
    assert known.shows(held([], many[-1:]), majority=False)
    assert not known.shows(held([], many[:1]), majority=False)
