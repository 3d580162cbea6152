"""The public API as a type checker sees it: this file is only checked, never run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import assert_type

import antipode
from antipode import BarrierResult, BarrierTimeout, Lineage, Promise, WriteId, calls
from antipode.shim import Cancellable, Outcome, Scope

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.orm import Session


def values() -> None:
    """Writes and lineages; every change of a lineage is a lineage."""
    numbered = WriteId("posts", "post:1", 7)
    opaque = WriteId("images", "bucket/key", "version-id")
    lineage = Lineage([numbered, opaque])
    assert_type(numbered.version, int | str)
    assert_type(lineage.append(opaque), Lineage)
    assert_type(lineage.remove(numbered), Lineage)
    assert_type(lineage.merge(Lineage(), lineage), Lineage)
    assert_type(lineage.only("posts", "images"), Lineage)
    assert_type(list(lineage), list[WriteId])
    assert_type(antipode.serialize(lineage, max_bytes=512), str)
    assert_type(antipode.deserialize("text"), Lineage)


def scopes() -> None:
    """A scope from nothing, from a lineage or from its text."""
    with antipode.scope() as held:
        assert_type(held, Scope)
    with antipode.scope("text"), antipode.scope(Lineage()):
        assert_type(antipode.current(), Lineage)
    assert_type(antipode.root(), Lineage)
    assert_type(antipode.transfer(Lineage(), target=Lineage()), Lineage)


async def promises() -> None:
    """A promise, its token, the branch that fulfils it, and who gives it up."""
    promise = antipode.promise("refunds", expires_in_s=60)
    assert_type(promise, Promise)
    assert_type(Promise.parse(promise.token), Promise)
    with antipode.fulfilling(promise) as mine, antipode.fulfilling(promise.token):
        assert_type(mine, Promise)
    assert_type(antipode.abandon(promise, timeout=1.0), bool)
    assert_type(await antipode.abandon_async("token"), bool)


def waits() -> None:
    """A barrier takes its timeout by name, and cannot be called without."""
    result = antipode.barrier(timeout=1.0, only=["posts"], at="read", on_unmet="return")
    assert_type(result, BarrierResult)
    assert_type(result.unmet, tuple[Outcome, ...])
    assert_type(antipode.check(refresh=False), BarrierResult)
    antipode.barrier()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    antipode.barrier(timeout=1, at="never")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def waits_in_a_loop() -> None:
    """The asyncio faces give the same result."""
    assert_type(await antipode.barrier_async(timeout=1), BarrierResult)
    assert_type(await antipode.check_async(), BarrierResult)


def waits_in_the_background() -> None:
    """The callback gets the result; what is returned cancels."""

    def finished(result: BarrierResult) -> None:
        assert_type(result.ok, bool)

    assert_type(antipode.barrier_callback(finished, timeout=1), Cancellable)


def failures() -> None:
    """A failed barrier carries its result."""
    try:
        antipode.barrier(timeout=1)
    except BarrierTimeout as error:
        assert_type(error.result, BarrierResult)
        assert_type(error.code, str)


async def functions_of_once(engine: Engine) -> None:
    """A function of `calls.once` has its own arguments but the session, and its own result."""

    @calls.once(engine)
    def charge(session: Session, amount: int) -> int:
        del session
        return amount

    @calls.once(engine)
    async def refund(session: Session, amount: int) -> str:
        del session
        return str(amount)

    assert_type(charge(5), int)
    assert_type(await refund(amount=5), str)
