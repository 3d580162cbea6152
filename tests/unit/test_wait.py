"""When looks at several datastores belong together: decisions without I/O."""

from __future__ import annotations

from antipode import Status, WriteId
from antipode._barrier.decisions import MOST_PAUSE_S, Policies, Wait
from antipode.shim import Observation

POST, USER = WriteId("posts", "log", 7), WriteId("users", "log", 7)
RAISING = Policies("raise", "raise", "raise", horizon_h=168, hour=500_000)


def begun() -> Wait:
    """A wait for one write of each of two datastores, at second 10."""
    pending = {"posts": [POST], "users": [USER]}
    return Wait(pending, policies=RAISING, now_s=10.0, unix_s=0.0, timeout_s=5.0)


def show(wait: Wait, write: WriteId, at_s: float, status: Status = Status.VISIBLE) -> None:
    """A look ended *at_s* that shows *write* with *status*."""
    wait.record(write.datastore, Observation("server-1", {write: status}), at_s)


def test_looks_that_end_close_together_belong_together() -> None:
    """First looks take different times: up to 50 ms nothing is asked for again."""
    wait = begun()
    show(wait, POST, 10.001)
    show(wait, USER, 10.001 + MOST_PAUSE_S - 0.001)
    assert wait.finished
    assert wait.result(10.1).ok


def test_a_look_that_took_long_makes_the_others_old() -> None:
    """A slow first look is no wait, and the one before it is too old all the same."""
    wait = begun()
    show(wait, POST, 10.0)
    show(wait, USER, 10.5)
    assert set(wait.pending) == {"posts"}
    assert [each.status for each in wait.result(10.5).unmet] == [Status.NOT_YET]
    show(wait, POST, 10.6)
    assert wait.finished


def test_asking_again_takes_as_long_as_it_takes() -> None:
    """Servers that are far away do not take turns in being too old for each other."""
    wait = begun()
    show(wait, POST, 10.0)
    show(wait, USER, 10.5)
    show(wait, POST, 11.5)
    assert wait.finished


def test_what_is_not_shown_again_makes_the_others_old() -> None:
    """The second look fails: once it is there again, the other one is asked for again."""
    wait = begun()
    show(wait, POST, 10.0)
    show(wait, USER, 10.5)
    show(wait, POST, 10.51, Status.NOT_YET)
    assert set(wait.pending) == {"posts"}
    show(wait, POST, 10.52)
    assert set(wait.pending) == {"users"}
    show(wait, USER, 10.53)
    assert wait.finished


def test_a_failed_look_voids_what_was_seen_of_a_datastore() -> None:
    """A lost connection leaves nothing visible of what is still waited for."""
    other = WriteId("posts", "log", 9)
    wait = Wait({"posts": [POST, other]}, policies=RAISING, now_s=10, unix_s=0, timeout_s=5)
    show(wait, POST, 10.1)
    wait.unreachable("posts", "reset", 10.2)
    assert {each.status for each in wait.result(10.2).outcomes} == {Status.UNREACHABLE}


def test_how_long_something_was_waited_for_stays() -> None:
    """What each look shows anew keeps the time at which it was shown first."""
    other = WriteId("posts", "log", 9)
    wait = Wait({"posts": [POST, other]}, policies=RAISING, now_s=10, unix_s=0, timeout_s=5)
    show(wait, POST, 10.1)
    both = dict.fromkeys([POST, other], Status.VISIBLE)
    wait.record("posts", Observation("server-1", both), 12.0)
    assert [round(each.waited_s, 3) for each in wait.result(12.0).outcomes] == [0.1, 2.0]


def test_an_estimate_stays_until_another_is_given() -> None:
    """A look that cannot tell leaves the one before; of several datastores the greatest counts."""
    wait = begun()
    late = {POST: Status.NOT_YET}
    wait.record("posts", Observation("server-1", late, eta_s=3.0), 10.1)
    wait.record("posts", Observation("server-1", late), 10.2)
    assert wait.result(10.3).eta_s == 3.0
    wait.record("users", Observation("server-1", {USER: Status.NOT_YET}, eta_s=4.5), 10.3)
    assert wait.result(10.4).eta_s == 4.5
    wait.record("users", Observation("server-1", {USER: Status.VISIBLE}), 10.5)
    assert wait.result(10.5).eta_s == 3.0


def test_a_server_that_answers_nothing_for_as_long_as_a_poll_is_unreachable() -> None:
    """At the deadline; one that answered late, or a barrier shorter than a poll, says not yet."""
    wait = begun()
    show(wait, USER, 12.0, Status.NOT_YET)
    assert {each.status for each in wait.result(14.0).unmet} == {Status.NOT_YET}
    outcomes = {each.write.datastore: each for each in wait.result(15.0).unmet}
    assert outcomes["posts"].status is Status.UNREACHABLE
    assert outcomes["posts"].cause == "its server answered no poll in time"
    assert outcomes["users"].status is Status.NOT_YET
    short = Wait({"posts": [POST]}, policies=RAISING, now_s=10.0, unix_s=0.0, timeout_s=0.5)
    assert [each.status for each in short.result(10.6).unmet] == [Status.NOT_YET]


def test_what_was_waited_before_counts() -> None:
    """A read without time left says for how long its request waited, not for how long it did."""
    wait = Wait(
        {"posts": [POST]}, policies=RAISING, now_s=10.0, unix_s=0.0, timeout_s=0.0, before_s=1.0
    )
    show(wait, POST, 10.004, Status.NOT_YET)
    result = wait.result(10.004)
    assert round(result.waited_s, 3) == round(result.unmet[0].waited_s, 3) == 1.004
