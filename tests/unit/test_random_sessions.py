"""Random sessions see what they are for: lost and early writes, alarms, and who shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import antipode
from antipode import WriteId
from antipode.shim import record_write
from tests.programs._sessions.bench import Bench, Fault, step
from tests.programs._sessions.both import Awaited, run_awaited
from tests.programs._sessions.lines import sessions

from ._fake_server import FakeServer

if TYPE_CHECKING:
    import random
    from collections.abc import Coroutine, Mapping

LOG = "log"


class Rows(Bench):
    """A store of numbers whose client is right."""

    def __init__(self) -> None:
        super().__init__()
        self._primary: list[int] = []
        self._replica: list[int] = []
        self._entered = 1
        self._server = FakeServer(position=1)

    def __enter__(self) -> Any:
        antipode.shim.register(self._server)
        return self

    def __exit__(self, *exception: object) -> None:
        antipode.shim.unregister("posts")

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        run_awaited(coroutine)

    def open(self, choose: random.Random) -> None: ...
    def settle(self) -> None: ...
    def close(self) -> None: ...
    def hold(self) -> None: ...

    def release(self) -> None:
        self._replica = list(self._primary)
        self._server.position = self._entered

    def committed(self) -> object:
        return tuple(self._primary)

    def shown(self) -> object:
        return tuple(self._replica)

    def enters(self, version: int) -> None:
        self._entered = max(self._entered, version)
        record_write(WriteId("posts", LOG, version))

    @step(8)
    async def write(self, choose: random.Random) -> None:
        self._primary.append(self.number())
        self.trace.append("write")
        self.enters(self._entered + 1)

    @step()
    async def refused(self, choose: random.Random) -> None:
        raise antipode.StaleSnapshot("of the client's own")


class Losing(Rows):
    @step()
    async def lost(self, choose: random.Random) -> None:
        self._primary.append(self.number())


class Early(Rows):
    @step()
    async def too_low(self, choose: random.Random) -> None:
        self.enters(self._server.position)
        self._primary.append(self.number())


class Stale(Rows):
    @step()
    async def read(self, choose: random.Random) -> None:
        raise Fault("early", "a read shows an older row")


class Broken(Rows):
    @step()
    async def call(self, choose: random.Random) -> None:
        raise IndexError("of ours")


class Alarming(Rows):
    @step(8)
    async def nothing(self, choose: random.Random) -> None:
        self.enters(self._entered + 1)


class Knowing(Losing):
    known: ClassVar[Mapping[str, str]] = {"lost": "its reason"}


class Mistaken(Rows):
    known: ClassVar[Mapping[str, str]] = {"no_such_step": "its reason"}


def test_sessions_without_a_fault() -> None:
    """What the client itself refuses is part of a session."""
    line = sessions(Rows, 200, 3)
    assert line.sound
    assert str(line).startswith("200 steps, 0 lost, 0 early, 0 broken, 0 alarms, ")
    assert str(line).endswith(", seed 3")


@pytest.mark.parametrize(
    ("bench", "kind", "step"),
    [
        (Losing, "lost", "lost"),
        (Early, "early", "too_low"),
        (Stale, "early", "read"),
        (Broken, "broken", "call"),
    ],
)
def test_a_fault_is_seen_and_its_sessions_cut_to_it(
    bench: type[Bench], kind: str, step: str
) -> None:
    """The line is not sound; it says the seed, and the one step that shows the fault."""
    line = sessions(bench, 200, 0)
    assert not line.sound
    assert line.faults[kind]
    assert f"  steps: {step}" in line.notes
    assert any(note.startswith("seed ") and kind in note for note in line.notes)


def test_alarms_are_bounded() -> None:
    """One step in ten at most may alarm; and nothing that was tried is not sound."""
    line = sessions(Alarming, 200, 0)
    assert line.alarms * 10 > line.steps
    assert not any(line.faults.values())
    assert not line.sound
    assert not sessions(Rows, 0, 0).sound


def test_what_is_known_is_left_out_and_said() -> None:
    """With its reason; a name that is no step's is a mistake."""
    line = sessions(Knowing, 200, 0)
    assert line.sound
    assert "left out: lost: its reason" in line.notes
    with pytest.raises(LookupError, match="no_such_step"):
        sessions(Mistaken, 10, 0)


def test_a_synchronous_client_is_called_as_an_asynchronous_one() -> None:
    """Its calls may be awaited, its blocks entered, its rows read; its errors are its own."""

    class Block:
        def __enter__(self) -> list[str]:
            return seen

        def __exit__(self, *exception: object) -> None:
            seen.append("left")

    class Client:
        rows = (1, 2)

        def block(self) -> Block:
            return Block()

        def fail(self) -> None:
            raise IndexError

    async def act() -> None:
        client = Awaited(Client())
        async with client.block() as entered:
            entered.append("entered")
        with pytest.raises(IndexError):
            await client.fail()
        seen.append(str(client.rows))

    seen: list[str] = []
    run_awaited(act())
    assert seen == ["entered", "left", "(1, 2)"]
