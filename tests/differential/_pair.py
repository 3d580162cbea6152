"""Two agents that are asked the same."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as NoAnswer
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from antipode import AntipodeError
from tests.agent.client import AgentFailed, AgentProcess, StoreError, Unsupported

from ._answers import difference

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from typing_extensions import Self

    from ._sequences import Request

#: An agent logs what it is asked to misread; and who interrupts means the comparison.
_QUIET = 'trap "" INT; exec "$0" "$@" 2>/dev/null'
#: Nothing that is asked takes longer, on a virtual clock.
_ANSWER_S = 120.0
#: How often each side is asked again before two answers count as different: pauses are random.
_TIMES = 6


class Difference(NamedTuple):
    """Two answers that are not the same."""

    sequence: list[Request]
    nth: int
    where: str
    left: Any
    right: Any


class _Side:
    """One agent, which is started again after it has ended by itself."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = ["sh", "-c", _QUIET, *command]
        self._running: AgentProcess | None = None

    def begin(self, request: Request) -> Future[Any]:
        if self._running is None:
            self._running = AgentProcess(self._command).__enter__()
        try:
            return self._running.begin(**request)[1]
        except OSError:
            self.close()
            failed: Future[Any] = Future()
            failed.set_exception(AgentFailed("it has ended"))
            return failed

    def answer(  # noqa: PLR0911 - each way to end
        self, begun: Future[Any]
    ) -> dict[str, Any]:
        try:
            return {"value": begun.result(_ANSWER_S)}
        except NoAnswer:
            self.close()
            return {"broken": f"no answer within {_ANSWER_S:.0f} s"}
        except AntipodeError as error:
            return {"code": error.code}
        except (CancelledError, StoreError) as error:
            return {"code": type(error).__name__, "message": str(error)}
        except Unsupported:
            return {"code": "unsupported"}
        except AgentFailed as error:
            if str(error).startswith("agent: "):
                return {"code": "agent"}
            self.close()
            return {"broken": str(error)}

    def close(self) -> None:
        if (ended := self._running) is not None:
            self._running = None
            with suppress(AgentFailed):
                ended.__exit__(None, None, None)


class Pair:
    """Two agents. A context manager.

    Args:
        left: the command of one, which is right where they differ, as far as is known.
        right: that of the other.
    """

    def __init__(self, left: Sequence[str], right: Sequence[str]) -> None:
        self._sides = _Side(left), _Side(right)
        #: Sequences that were answered differently at times.
        self.undetermined = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with ExitStack() as stack:
            for side in self._sides:
                stack.callback(side.close)

    def compare(self, sequence: list[Request]) -> Difference | None:
        """The first answers of *sequence* that differ however often it is asked for."""
        answers = self._ask(sequence)
        if answers is None or (found := _first(sequence, *answers)) is None:
            return None
        lefts, rights = [answers[0]], [answers[1]]
        for _ in range(_TIMES):
            again = self._ask(sequence)
            if again is None:
                return None
            lefts.append(again[0])
            rights.append(again[1])
        if any(_first(sequence, left, right) is None for left in lefts for right in rights):
            self.undetermined += 1
            return None
        return found

    def _ask(self, sequence: list[Request]) -> tuple[list[Any], list[Any]] | None:
        """What both answer to each request in turn; None where a handle is of no request."""
        answers: tuple[list[Any], list[Any]] = ([], [])
        handles: tuple[dict[str, str], dict[str, str]] = ({}, {})
        for request in sequence:
            given = {name: value for name, value in request.items() if name != "as"}
            begun = []
            for side, known in zip(self._sides, handles, strict=True):
                if "scope" in given and given["scope"] not in known:
                    return None
                named = {**given, **({"scope": known[given["scope"]]} if "scope" in given else {})}
                begun.append(side.begin(named))
            for side, known, found, one in zip(self._sides, handles, answers, begun, strict=True):
                answer = side.answer(one)
                if "as" in request and "value" in answer:
                    known[request["as"]] = answer["value"].pop("scope")
                found.append(answer)
            if any(request.get("as") in known for known in handles) and not all(
                request["as"] in known for known in handles
            ):
                break
            if request["op"] == "close_scope":
                for known in handles:
                    known.pop(request["scope"], None)
        self._close_scopes(handles)
        return answers

    def _close_scopes(self, handles: tuple[dict[str, str], dict[str, str]]) -> None:
        """Close what the sequence left open, the inner ones first."""
        for side, known in zip(self._sides, handles, strict=True):
            for handle in reversed(list(known.values())):
                side.answer(side.begin({"op": "close_scope", "scope": handle}))


def _first(sequence: list[Request], left: list[Any], right: list[Any]) -> Difference | None:
    for nth, answers in enumerate(zip(left, right, strict=True)):
        where = difference(sequence[nth], *answers)
        if where is not None:
            return Difference(sequence, nth, where, *answers)
    return None
