"""Redis: ``INFO replication``, commands, companions."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import antipode
from antipode import WriteId
from antipode.shim import record_read, record_write
from antipode_shims import redis
from antipode_shims.redis._commands import Batch, Kind, kind_of
from antipode_shims.redis._format import Shown, pack, unpack
from antipode_shims.redis._look import look
from antipode_shims.redis._position import InfoError, LogHistory
from antipode_shims.redis._stored.keys import keys_of
from tests.agent._values import of_lineage, write_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Given = Mapping[str, Any]

#: The address of a shim that sends nothing.
_NOWHERE = "redis://127.0.0.1:1"
_KINDS = {
    Kind.READ: "read",
    Kind.AWAITING: "awaiting_read",
    Kind.WRITE: "write",
    Kind.OTHER: "unknown",
    Kind.NEUTRAL: "neither",
    Kind.QUEUING: "queues",
}
_SHOWN = {"absent": None, "part": Shown.SOME, "nothing": Shown.NONE}


def look_at(given: Given) -> dict[str, list[str]]:
    """What one look says of each write."""
    return {"statuses": _statuses(given["server"], [*map(write_at, given["writes"])])}


def _statuses(server: Given, writes: list[WriteId]) -> list[str]:
    steps = look(writes, LogHistory())
    commands, first = next(steps), _answer(server)
    try:
        commands = steps.send([first])
        then = _answer({"info": server["then"]}) if "then" in server else first
        _, _, *logs = commands[2]
        steps.send([None, None, None, [then, _history(server, logs)]])
    except StopIteration as end:
        return [str(end.value.statuses[write]) for write in writes]
    except InfoError as error:
        return ["unreachable" if error.passing else "undecidable"] * len(writes)
    msg = "a look asks twice at most"
    raise AssertionError(msg)


def _answer(given: Given, prefix: str = "info", error: str = "error") -> Any:
    """What a server answers to ``INFO replication``; None where it was not asked."""
    if error in given:
        return _refusal(given[error])
    if prefix not in given:
        return None
    return "".join(f"{line}\r\n" for line in given[prefix]).encode()


def _history(server: Given, logs: Sequence[str]) -> Any:
    """What it answers to ``HMGET`` of its log history."""
    found = server.get("history", {})
    if found is None:
        return _refusal("NOPERM no permissions to access a key")
    return [found[log].encode() if log in found else None for log in logs]


def _refusal(text: str) -> Exception:
    from redis import ResponseError

    return ResponseError(text)


def token(given: Given) -> dict[str, Any]:
    """What a write or a read enters, and what is noted about logs that ended."""
    reply = _answer(given)
    with antipode.scope(), closing(redis.shim("posts", _NOWHERE, log_history=True)) as shim:
        match given["after"]:
            case "read":
                record_read(shim.covering(reply))
            case "unknown":
                _enter(shim.minted(reply, _answer(given, "before", "before_error")))
            case _:
                _enter(shim.minted(reply))
        notes = {} if given["after"] == "read" else shim.log_commands(reply)
        held = of_lineage(antipode.current())
    return {"lineage": held, "notes": {log: end for _, _, log, end in notes}}


def _enter(write: WriteId | None) -> None:
    if write is not None:
        record_write(write)


def command(given: Given) -> dict[str, str]:
    """What one command does."""
    return {"does": _KINDS[kind_of(given["command"])]}


def batch(given: Given) -> dict[str, bool]:
    """What several commands sent at once do together."""
    found = Batch.of(given["commands"])
    return {"reads": found.reads, "may_write": found.may_write, "repeatable": found.repeatable}


def keys(given: Given) -> dict[str, list[str]]:
    """The keys that a command names."""
    return {"keys": list(keys_of(given["command"]))}


def stored(given: Given) -> dict[str, str]:
    """The companion of a value."""
    value = given["value"]
    companion = pack(None if value is None else value.encode(), given["text"])
    return {"companion": companion.decode()}


def found(given: Given) -> dict[str, Any]:
    """What is read from a companion."""
    value = given["value"].encode() if given["shown"] == "string" else _SHOWN[given["shown"]]
    companion = given["companion"]
    lineage, match = unpack(value, None if companion is None else companion.encode(), "posts")
    return {"lineage": of_lineage(lineage), "match": match.value}
