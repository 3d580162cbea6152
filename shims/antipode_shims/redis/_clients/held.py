"""Reads under a floor: what Redis answers to the questions of the guard.

The question is ``INFO``, which goes in the packet of the read itself where it may. Records of
promises are asked for before, where the floor demands any. So is all of it by a read that has
waited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode.shim import Guarded, Send, Unreachable, Verdict

from .exchange import polling
from .redis_py import response_error, timed_out

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode.shim import Floor, Observation, Repeated, Steps

    from .call import Call, Rules
    from .tap import Tap


class HeldRead(Guarded):
    """One attempt at a read.

    Attributes:
        tap: what went with the read last.
    """

    tap: Tap

    def __init__(
        self,
        rules: Rules,
        call: Call,
        held: Floor,
        connection: Any,
        *,
        refusal: Exception | None = None,
        taps: Callable[[], Tap] | None = None,
    ) -> None:
        """On *connection*.

        Args:
            rules: of its client.
            call: what it is made in.
            held: what it must see.
            connection: of redis-py.
            refusal: why ``INFO`` may not go with commands there; None: it may.
            taps: makes what goes with the read, its question first; None: nothing may.
        """
        self.held = held
        self.shim = rules.shim
        self.places = rules.kept
        self._rules, self._call, self._connection = rules, call, connection
        self._refusal, self._taps = refusal, taps
        self._final = call.begun
        self.leads = self._final or bool(held.promises)
        self._reply: Any = None
        self._error: Exception | None = None

    @property
    def again(self) -> Repeated | None:
        """What makes it again; None for one that has to stay on its connection."""
        call = self._call
        return call.again if call.repeats and call.shim is self.shim else None

    def judge(self) -> Verdict:
        """Whether its connection may be asked, and how."""
        if self._refusal is not None:
            self._rules.excuse(self.held, self._refusal)
            return Verdict.PASS
        return Verdict.HOLD if self._taps is None else Verdict.RIDE

    def poll(self, timeout_s: float, *, outside: bool) -> Steps[Observation]:
        """Ask for the position and for records, alone."""
        del outside
        look = self._rules.shim.look_for(self.held)
        shown = yield from polling(self._connection, self.held, look, timeout_s=timeout_s)
        self._call.recorded = shown.server
        return shown

    def settle(self, seen: Observation | None, *, outside: bool) -> None:
        """The log history was asked with all the rest: the next poll is the last."""
        del seen, outside
        self._final = True

    def ride(self) -> Steps[bool]:
        """Make the read after a poll in the same packet."""
        held, tap = self.held, self._taps()  # type: ignore[misc]
        tap.connection, tap.lead_s = self._connection, held.poll_s
        self.tap, self._reply, self._error = tap, None, None
        try:
            self._reply = yield Send(tap)
        except response_error() as error:
            if not tap.sent:
                raise
            self._error = error
        except Unreachable as away:
            held.expire(away)
            raise timed_out(away) from away
        return self._rules.judge(held, tap.led, final=self._final, recorded=self._call.recorded)

    def answer(self) -> Any:
        """The reply to the read.

        Raises:
            ResponseError: (of redis-py) it is one.
        """
        if self._error is not None:
            raise self._error
        return self._reply
