"""RabbitMQ: receipts, and headers of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode_shims._messages.headers import received
from antipode_shims._messages.ledger import Ledger
from tests.agent._values import of_lineage, promise_of, write_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import Promise

    Given = Mapping[str, Any]

#: When the process of each script begins to listen.
_START_S = 1_800_000_000.0
_GAP_AGE_S = 5.0


def receipts(given: Given) -> dict[str, list[str]]:
    """What is said at each step that asks."""
    now = [_START_S]
    ledger = Ledger(gap_age_s=_GAP_AGE_S, monotonic=lambda: now[0], wall=lambda: now[0])
    statuses = []
    for step in given["steps"]:
        now[0] = _START_S + step["at_s"]
        match step["op"]:
            case "see":
                for version in step["versions"]:
                    ledger.see(write_at({"key": step["key"], "version": version}))
            case "listening":
                ledger.listening()
            case "fulfil":
                ledger.fulfil(_promise_at(step["promise"]))
            case "delivered":
                ledger.deliver(write_at(step["write"]), after=int(step["after"]))
            case _ if "promise" in step:
                promise = _promise_at(step["promise"])
                statuses.append(str(ledger.judge_promises([promise])[promise][0]))
            case _:
                write = write_at(step["write"])
                statuses.append(str(ledger.judge([write])[write][0]))
    return {"statuses": statuses}


def _promise_at(found: Given) -> Promise:
    return promise_of({"datastore": "posts", **found})


def message(given: Given) -> dict[str, Any]:
    """What the consumer of a message with these headers depends on."""
    lineage, write = received(given["headers"], "posts")
    return {"lineage": of_lineage(lineage if write is None else lineage.append(write))}
