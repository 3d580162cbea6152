"""Branches of a request: counted while they run, in its scope, and nothing keeps them."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest
from opentelemetry import baggage

import antipode
from antipode import Lineage, WriteId, branch
from antipode._request.background import OpenBranch, apart
from antipode.shim import Scope, scope_in

POST = WriteId("posts", "log", 7, written_hour=490_000)


def in_a_thread(function: object) -> None:
    """Call *function* in a plain thread."""
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_a_function_runs_in_the_scope_that_it_was_made_a_branch_of() -> None:
    """A plain thread writes into the request, and into nothing when it is over."""
    after: list[Scope | None] = []

    def work() -> None:
        branch_of_request()
        after.append(scope_in())

    with antipode.scope() as held:
        branch_of_request = branch(lambda: antipode.append(POST))
        in_a_thread(work)
        assert held.lineage == Lineage([POST])
    assert after == [None]


def test_a_branch_is_open_until_its_first_call_has_ended() -> None:
    """What leaves meanwhile says that one branch runs; a later call counts no more."""
    with antipode.scope() as held:
        seen: list[int] = []
        work = branch(lambda: seen.append(sent(held)))
        assert sent(held) == 1
        work()
        assert sent(held) == 0
        work()
        assert seen == [1, 0]


def sent(held: Scope) -> int:
    """How many branches the text says that run."""
    return antipode.deserialize(held.text()).open_branches


def test_a_branch_that_raises_is_over() -> None:
    """The exception reaches the caller."""

    def work() -> None:
        raise LookupError

    with antipode.scope() as held:
        with pytest.raises(LookupError):
            branch(work)()
        assert sent(held) == 0


def test_a_branch_that_nobody_can_call_any_more_is_over() -> None:
    """A function that is dropped without a call leaves no count behind."""
    with antipode.scope() as held:
        work = branch(print)
        assert sent(held) == 1
        del work
        gc.collect()
        assert sent(held) == 0


def test_a_collection_in_the_middle_of_a_scopes_work_does_not_block() -> None:
    """A branch that is collected while its scope is locked is counted down all the same."""
    with antipode.scope() as held:
        opened = OpenBranch(held)
        with held._lock:
            del opened
        assert sent(held) == 0


def test_outside_of_a_scope_a_function_is_left_as_it_is() -> None:
    """No request, no branch."""
    assert branch(print) is print


def test_coroutine_functions_are_refused() -> None:
    """Their tasks have a scope already; what counts them is named."""

    async def work() -> None: ...

    with antipode.scope(), pytest.raises(TypeError, match=r"integrations\.asyncio"):
        branch(work)


def test_a_member_that_the_user_removed_stays_removed_in_branches() -> None:
    """The scope is the branch's, its baggage sends nothing."""
    seen: list[object] = []

    def look() -> None:
        seen.extend([scope_in() is held, baggage.get_baggage("antipode")])

    with antipode.scope() as held:
        from opentelemetry import context

        token = context.attach(baggage.remove_baggage("antipode"))
        work = branch(look)
        context.detach(token)
        in_a_thread(work)
    assert seen == [True, None]


def test_nothing_keeps_the_scope_of_a_branch_that_is_over() -> None:
    """Neither the branch itself nor an exception of it."""

    def work() -> None:
        raise LookupError

    with antipode.scope() as held:
        opened = OpenBranch(held)
        with pytest.raises(LookupError) as raised:
            opened.run(work)
        gone = weakref.ref(held)
    del held
    gc.collect()
    assert gone() is None
    assert raised.value.__traceback__ is not None
    assert opened.scope is None


def test_apart_hides_the_scope_for_a_while() -> None:
    """Neither the scope nor its member; the user's own members stay."""
    from opentelemetry import context

    with antipode.scope() as held:
        token = context.attach(baggage.set_baggage("user", "7"))
        with apart():
            assert scope_in() is None
            assert dict(baggage.get_all()) == {"user": "7"}
        assert scope_in() is held
        context.detach(token)


def test_branches_that_are_over_are_not_sent_back() -> None:
    """A caller that had a branch running is not told of it again by an answer."""
    request = Lineage([POST], open_branches=1)
    with antipode.scope(request) as callee:
        assert callee.lineage.beyond(request) == Lineage()
        assert callee.lineage.branching(2).beyond(request).open_branches == 2
