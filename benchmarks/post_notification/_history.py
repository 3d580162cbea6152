"""What a strategy's services did, as a history for `antipode check`.

The services say when they wrote, received and read; the messages between them are those of the
paper's figure 2. Each request has processes of its own, as it has a thread in each service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode.checker import History, Operation, check, save

from ._delivery import NOTIFICATIONS
from ._storage import POST_STORAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from ._observations import Observation
    from ._options import Kind, Strategy
    from ._run import Round

#: The version that a post has before a request of each kind, and the one that it writes.
_BEFORE: dict[Kind, str | None] = {"new": None, "update": "1", "delete": "1"}
_WRITTEN: dict[Kind, str] = {"new": "1", "update": "2", "delete": "deleted"}


def record(folder: Path, strategy: Strategy, rounds: Sequence[Round]) -> str:
    """Write the history of *strategy* into *folder*; its name and its verdict, for a person."""
    found = [one for each in rounds if each.strategy == strategy for one in each.observations]
    history = history_of(found)
    path = folder / f"{strategy}.jsonl"
    save(history, path)
    return f"history: {path}: {check(history)}"


def history_of(observations: Iterable[Observation]) -> History:
    """What is known of these requests; of several reads of a post the last, which was shown."""
    operations: list[Operation] = []
    initial: dict[tuple[str, str], str] = {}
    for one in observations:
        before = _BEFORE[one.kind]
        if before is not None:
            initial[POST_STORAGE, one.id] = before
        # A write that was begun may have happened, whatever became of its answer.
        if one.begun_ns is not None:
            operations += _uploaded(one)
        if one.received_ns is not None:
            operations += _followed(one)
    return History(tuple(operations), initial)


def _uploaded(one: Observation) -> Iterator[Operation]:
    """Steps 1 to 4: the post is stored, and then the notification."""
    upload, storage, notifier = (f"{name} {one.id}" for name in ("upload", "storage", "notifier"))
    yield _message("send", upload, one, "store")
    yield _message("receive", storage, one, "store")
    yield Operation("write", storage, one.id, POST_STORAGE, one.id, _WRITTEN[one.kind])
    if one.acknowledged_ns is None:
        return
    yield _message("send", storage, one, "stored")
    yield _message("receive", upload, one, "stored")
    yield _message("send", upload, one, "notify")
    yield _message("receive", notifier, one, "notify")
    yield Operation("write", notifier, one.id, NOTIFICATIONS, one.id, "1")


def _followed(one: Observation) -> Iterator[Operation]:
    """Steps 5 to 8: the notification is received, and then the post is read."""
    follower, storage = f"follower {one.id}", f"storage in the reader's region {one.id}"
    yield Operation("read", follower, one.id, NOTIFICATIONS, one.id, "1")
    if one.version is None:
        return
    yield _message("send", follower, one, "fetch")
    yield _message("receive", storage, one, "fetch")
    yield Operation("read", storage, one.id, POST_STORAGE, one.id, _shown(one))


def _shown(one: Observation) -> str | None:
    """The version that a read showed; where a post is not there after its deletion, that one."""
    if one.version:
        return str(one.version)
    return _WRITTEN["delete"] if one.kind == "delete" else None


def _message(kind: str, process: str, one: Observation, name: str) -> Operation:
    return Operation(kind, process, one.id, message=f"{name} {one.id}")
