"""SQL, whatever the server: two of them, rows that are kept, and reads under floors."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import antipode
from antipode_testing import wait_until

from .bench import OFTEN, Fault, step
from .connected import Connected

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from typing_extensions import Self

#: How long a read at the replica, whose replication is held, waits; and one at the primary.
HELD_S = 0.02
WAIT_S = 0.2
#: How long a statement of the session may run.
ENDS_S = 10.0
#: A cancellation comes within this time.
CANCEL_S = 0.004


def texts(weight: int, known: Mapping[str, str]) -> Any:
    """A class whose steps send these texts."""
    acts = {name: step(weight)(_sends(text)) for name, text in known.items()}
    return type("Texts", (), acts)


def _sends(text: str) -> Any:
    async def act(bench: Any, choose: random.Random) -> None:
        await bench.send(text.replace("{n}", str(bench.number())))

    return act


class Sql(Connected):
    """Sessions of one client over two servers.

    Attributes:
        topology: the servers.
        state: the statement that shows an administrator what others see of the session's work.
        running: the one that counts, as ``n``, the session's statements that have not ended.
        rows: what a read at the replica has to show, for an administrator as well.
        refused_question: the shim's own error for a question that the server refused.
    """

    topology: Any
    state: ClassVar[str]
    running: ClassVar[str]
    rows: ClassVar[str] = "SELECT n, v FROM kept ORDER BY n"
    refused_question: ClassVar[type[Exception]]

    def __enter__(self) -> Self:
        self.topology.start()
        try:
            self.make()
            self.topology.wait_replicated()
        except BaseException:
            self.topology.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self.unmake()
        self.topology.close()

    @abstractmethod
    def make(self) -> None:
        """Make the tables, and connect another client, which is instrumented as well."""

    @abstractmethod
    def unmake(self) -> None:
        """Close that client."""

    @abstractmethod
    def write_note(self, number: int) -> None:
        """Have the other client write a row."""

    @abstractmethod
    def terminate(self) -> None:
        """End the session's connections at the server."""

    def committed(self) -> object:
        """The rows, once the session's statements have ended."""
        wait_until(
            lambda: not self.topology.execute(self.running)[0]["n"],
            timeout_s=ENDS_S,
            what="the end of the session's statements",
        )
        return self.topology.execute(self.state)

    def shown(self) -> object:
        """The rows of the replica."""
        return self.topology.execute(self.state, replica=0)

    def hold(self) -> None:
        """Hold the log."""
        self.topology.pause()

    def release(self) -> None:
        """Let it go on."""
        self.topology.resume()
        self.topology.wait_replicated()

    @abstractmethod
    async def send(self, text: str) -> list[Any]:
        """Send one text on the session's connection; its rows."""

    @abstractmethod
    async def past_the_library(self, text: str) -> Sequence[Any]:
        """Rows of a statement that nothing holds and nobody notices."""

    @abstractmethod
    async def read_replica(self, text: str) -> list[Any]:
        """Read by this client at the replica."""

    @step(OFTEN)
    async def read_under_floor(self, choose: random.Random) -> None:
        """Another client writes a row, which the session's next read has to show."""
        wanted = self.floor()
        try:
            await self.shows(wanted)
        except antipode.StaleSnapshot:
            await self.refused(wanted)

    async def shows(self, wanted: str) -> None:
        """A read under a floor shows the row that this is for, or is refused.

        Raises:
            Fault: it shows no row.
        """
        if not await self.send(wanted):
            raise Fault("early", f"{wanted} shows no row")

    def floor(self) -> str:
        """Have another client write, and the next read wait for it; what that reads."""
        number = self.number()
        with antipode.scope() as scope:
            self.write_note(number)
            written = scope.lineage
        antipode.barrier(written, timeout=WAIT_S, at="read")
        return f"SELECT n FROM notes WHERE n = {number}"  # noqa: S608 - a number

    async def refused(self, wanted: str) -> None:
        """Count a refusal where the row could be seen, and begin anew."""
        with contextlib.suppress(
            *self.refusals, self.refused_question
        ):  # A failed transaction shows nothing.
            self.alarms["read_under_floor"] += bool(await self.past_the_library(wanted))
        await self.send("ROLLBACK")

    @step(OFTEN)
    async def read_at_replica(self, choose: random.Random) -> None:
        """A read that waits for the request's writes is refused, or shows them."""
        antipode.barrier(timeout=HELD_S, at="read")
        found = await self.read_replica(self.rows)
        committed = self.topology.execute(self.rows)
        if [tuple(row) for row in found] != [(row["n"], row["v"]) for row in committed]:
            raise Fault("early", "a held read at the replica shows older rows")

    @step()
    async def ended_by_the_server(self, choose: random.Random) -> None:
        """The server ends the session's connections, as an administrator does."""
        self.trace.append("-- terminated")
        self.terminate()
