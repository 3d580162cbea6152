"""ActiveMQ: names of publications, what receipts can hear, and headers of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antipode import deserialize
from antipode_shims._messages.publisher import Publications
from antipode_shims.activemq._format import OURS, is_topic, labelled
from tests.agent._values import write_at

from . import rabbitmq

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode import WriteId

    Given = Mapping[str, Any]

#: What the consumer of a message depends on: its headers are RabbitMQ's.
message = rabbitmq.message


def publications(given: Given) -> dict[str, list[dict[str, Any]]]:
    """The names of what is published, each by the ordinal of its publisher and its number."""
    now_s = [0.0]
    names = Publications("posts", monotonic=lambda: now_s[0])
    made: list[WriteId] = []
    publishers: dict[str, int] = {}
    for step in given["steps"]:
        now_s[0] = step["at_s"]
        match step["op"]:
            case "publish":
                made.append(names.next(step["to"], ""))
                publishers.setdefault(made[-1].key, len(publishers) + 1)
            case "lost":
                names.void(made[step["nth"] - 1])
            case _:  # Its connection is opened again.
                names = Publications("posts", monotonic=lambda: now_s[0])
    return {
        "writes": [
            {"publisher": publishers[each.key], "version": str(each.version)} for each in made
        ]
    }


def command(given: Given) -> dict[str, str]:
    """What publishing to a destination is."""
    return {"does": "write" if is_topic(given["command"]) else "neither"}


def label(given: Given) -> dict[str, Any]:
    """Our headers of a message that is sent; null where there is no room for them."""
    sent = labelled(
        {"destination": given["destination"], **given["headers"], "m": "x" * given["others"]},
        datastore="posts",
        lineage=deserialize(given["text"]),
        write=write_at(given["write"]),
    )
    ours = None if sent is None else {name: sent[name] for name in sorted(OURS & set(sent))}
    return {"sent": ours}
