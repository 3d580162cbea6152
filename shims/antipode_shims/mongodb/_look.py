"""One poll of a server as a conversation without I/O: the APIs only send and receive."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from antipode import Status
from antipode.shim import Observation, Unreachable

from ._position.history import Fate, judge
from ._position.reply import ASK, state_of_hello
from ._position.timestamps import OpTime, log_of, timestamp_of, version_of

if TYPE_CHECKING:
    from antipode import WriteId

    from ._position.history import LogHistory
    from ._position.reply import Reply, ServerState

#: A database's name and a command for it.
Question = tuple[str, dict[str, Any]]
T = TypeVar("T")
#: Yields a question, is sent its reply or the server's refusal, returns its result.
Conversation = Generator[Question, "Reply | Exception", T]
Look = Conversation[Observation]

_UNAUTHORIZED = 13
HELLO: Question = ("admin", {"hello": 1, **ASK})


def converse(ask: Callable[[Question], Reply | Exception], conversation: Conversation[T]) -> T:
    """Hold *conversation* with who answers *ask*; what it returns."""
    try:
        question = next(conversation)
        while True:
            question = conversation.send(ask(question))
    except StopIteration as end:
        result: T = end.value
        return result


async def converse_async(
    ask: Callable[[Question], Awaitable[Reply | Exception]], conversation: Conversation[T]
) -> T:
    """The asyncio twin of :func:`converse`."""
    try:
        question = next(conversation)
        while True:
            question = conversation.send(await ask(question))
    except StopIteration as end:
        result: T = end.value
        return result


def hello() -> Conversation[ServerState]:
    """Ask a server where it stands.

    Raises:
        Unreachable: it has no data to read now: it recovers, is an arbiter, or joins the set.
        ConfigurationError: it is a mongos, or no member of a replica set.
    """
    reply = yield HELLO
    if isinstance(reply, Exception):
        raise reply
    state = state_of_hello(reply)
    if state is None:
        name = reply.get("me", "the server")
        msg = f"{name} is neither primary nor secondary now: it recovers, or is an arbiter"
        raise Unreachable(msg)
    return state


def look(writes: Collection[WriteId], history: LogHistory, *, majority: bool) -> Look:
    """Ask for the position, and the oplog about writes of earlier terms that are not known yet.

    Args:
        writes: what to judge.
        history: what is known of earlier terms; learns.
        majority: whether reads have read concern ``majority``.

    Raises:
        Unreachable: as :func:`hello`.
        ConfigurationError: as :func:`hello`.
    """
    state = yield from hello()
    return (yield from shown_in(state, writes, history, majority=majority))


def shown_in(
    state: ServerState, writes: Collection[WriteId], history: LogHistory, *, majority: bool
) -> Look:
    """What a server in *state* shows of *writes*; asks the oplog only after a change of term."""
    statuses: dict[WriteId, Status] = {}
    causes: dict[WriteId, str] = {}
    for write in writes:
        status, cause = judge(state, write, history, majority=majority)
        if status is None:
            log = log_of(write.key, state.set_name)
            term = None if log is None else log.term
            if term is not None:
                yield from _ask_oplog(state, term, write, history)
                status, cause = judge(state, write, history, majority=majority)
        statuses[write] = status or Status.NOT_YET
        if cause:
            causes[write] = cause
    return Observation(state.incarnation, statuses, causes=causes)


def _ask_oplog(
    state: ServerState, term: int, write: WriteId, history: LogHistory
) -> Conversation[None]:
    """Learn what became of *write*, whose term is over, as far as it is settled.

    The first entry at or after its timestamp decides: if it is of the same term, the write is
    in this server's log, as is all that its primary wrote before. Otherwise it is not, and the
    log that has a committed entry of a later term will never have it.
    """
    version = int(write.version)
    first = _first((yield _oplog({"ts": {"$gte": timestamp_of(version)}})))
    if first is not None and first.term == term:
        if version <= state.committed.version:
            history.learn(state, term, version, Fate.SURVIVED)
    elif state.committed.term > term:
        oldest = _first((yield _oplog({})))
        reaches_back = oldest is not None and oldest.version <= version
        lost = reaches_back and not write.covering
        history.learn(state, term, version, Fate.LOST if lost else Fate.UNKNOWN)


def _oplog(where: dict[str, Any]) -> Question:
    """The first entry of the oplog that fits; timestamps are its natural order."""
    return "local", {
        "find": "oplog.rs",
        "filter": where,
        "sort": {"$natural": 1},
        "projection": {"ts": 1, "t": 1},
        "limit": 1,
        "singleBatch": True,
    }


def _first(reply: Reply | Exception) -> OpTime | None:
    """The entry that was found; None where there is none, or where this user may not ask.

    Raises:
        Unreachable: the server could not answer now.
    """
    if isinstance(reply, Exception):
        if getattr(reply, "code", None) == _UNAUTHORIZED:
            return None
        raise Unreachable(str(reply)) from reply
    batch = reply["cursor"]["firstBatch"]
    if not batch:
        return None
    # The entry that initiated the set is of no term.
    return OpTime(int(batch[0].get("t", -1)), version_of(batch[0]["ts"]))


@dataclass(frozen=True, slots=True)
class Target:
    """What a server can be made to wait for.

    Attributes:
        version: of the position.
        majority: whether until a majority has it, rather than until the server applied it.
        term: of the position, where the server has not heard of it: it refuses to wait for such a
            cluster time (code 72), but not for a place in its oplog. None where it has.
    """

    version: int
    majority: bool
    term: int | None = None

    @property
    def concern(self) -> dict[str, Any]:
        """The read concern of a command that is to wait."""
        level = "majority" if self.majority else "local"
        timestamp = timestamp_of(self.version)
        if self.term is None:
            return {"level": level, "afterClusterTime": timestamp}
        # What mongos asked config servers with; in no manual, and later servers may refuse it.
        return {"level": level, "afterOpTime": {"ts": timestamp, "t": self.term}}


def target_in(shown: Observation, state: ServerState, *, majority: bool) -> Target | None:
    """The smallest position that was missed at a poll, as the server can be made to wait for it.

    None where there is none that *state* has not reached by its timestamp: a wait for it would end
    at once, as on an old primary that is cut off and has timestamps but not the entries of a later
    term.
    """
    waits = []
    for write, status in shown.statuses.items():
        log = log_of(write.key, state.set_name)
        if status is not Status.NOT_YET or log is None or not isinstance(write.version, int):
            continue
        by_majority = majority or log.term is None
        if write.version > state.shown(majority=by_majority).version:
            # No earlier term than the server's own: a place in it was passed, whatever the time.
            unheard = max(state.applied.term, log.term or 0)
            term = None if write.version <= state.heard else unheard
            waits.append(Target(write.version, by_majority, term))
    return min(waits, key=lambda each: each.version, default=None)
